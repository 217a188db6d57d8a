package registration

import (
	"cmp"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

// HostIndex holds the host in nova that a compute takes for its own: HostOf.
const HostIndex = "status.novaHost"

// HostOf returns the host in nova that a compute is recorded by, or else whose service it
// takes for its own; empty if nova knows none.
func HostOf(obj client.Object) string {
	status := obj.(*novav1.NovaExternalCompute).Status
	if status.ComputeService == nil {
		return status.NovaHost
	}
	return cmp.Or(status.NovaHost, status.ComputeService.Host)
}

// findConflict returns that another compute of the same Nova has the host of this name, nil
// if none has: what is written to nova for one would hit the other.
func (s *Registration) findConflict(ctx context.Context, api *novav1.Nova, host string) (*computeservice.Trouble, error) {
	list := &novav1.NovaExternalComputeList{}
	if err := s.List(ctx, list, client.InNamespace(s.compute.Namespace), client.MatchingFields{HostIndex: host}); err != nil {
		return nil, fmt.Errorf("listing the computes of host %s: %w", host, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if !rivals(s.compute, other) {
			continue
		}
		_, theirs, err := s.findAPI(ctx, other.Spec.CellName)
		if err != nil {
			return nil, err
		}
		if theirs != nil && theirs.UID == api.UID {
			return &computeservice.Trouble{Reason: novav1.ServiceConflictReason, Message: conflictText(s.compute.Name, other.Name, host)}, nil
		}
	}
	return nil, nil
}

// rivals reports whether another compute that has the host of a compute disputes it: one
// that is not recorded by its name takes it from none that is.
func rivals(compute, other *novav1.NovaExternalCompute) bool {
	return other.Name != compute.Name && (compute.Status.NovaHost == "" || other.Status.NovaHost != "")
}

func conflictText(compute, other, host string) string {
	return fmt.Sprintf("NovaExternalComputes %s and %s are both host %s in nova, so nothing is changed there for %s: correct %s in ansibleVars of the node that has the wrong name",
		compute, other, host, compute, hostVar)
}
