package registration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

// hostIndex holds the host in nova that a compute takes for its own: hostOf.
const hostIndex = "status.novaHost"

// hostOf returns the host in nova that a compute is recorded by, or else whose service it
// takes for its own; empty if nova knows none.
func hostOf(obj client.Object) string {
	status := obj.(*novav1.NovaExternalCompute).Status
	if status.ComputeService == nil {
		return status.NovaHost
	}
	return cmp.Or(status.NovaHost, status.ComputeService.Host)
}

// findConflict returns that another compute of the same Nova has the host of this name, nil
// if none has: what is written to nova for one would hit the other.
func (s *Registration) findConflict(ctx context.Context, api *novav1.Nova, host string) (*computeservice.Trouble, error) {
	other, err := s.occupant(ctx, api, host, func(other *novav1.NovaExternalCompute) bool { return rivals(s.compute, other) })
	if err != nil {
		return nil, err
	}
	text := conflictText(s.compute.Name, other, host)
	if other == "" && s.compute.Status.NovaHost == "" { // pods give way to one that is recorded
		if other, err = s.ownerOfPod(ctx, api, host); err != nil {
			return nil, err
		}
		text = fmt.Sprintf("NovaExternalCompute %s and NovaCompute %s both register host %s in nova; nova is not updated for the NovaExternalCompute. Fix %s in ansibleVars of its node",
			s.compute.Name, other, host, hostVar)
	}
	if other == "" {
		return nil, nil
	}
	return &computeservice.Trouble{Reason: novav1.ServiceConflictReason, Message: text}, nil
}

// ownerOfPod returns the name of the NovaCompute of the same Nova whose pod is the host of
// this name, empty if none is.
func (s *service) ownerOfPod(ctx context.Context, api *novav1.Nova, host string) (string, error) {
	pods, name := &novav1.NovaCompute{}, host[:max(0, strings.LastIndex(host, "-"))]
	if name == "" {
		return "", nil
	}
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: api.Namespace, Name: name}, pods); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	known := slices.ContainsFunc(pods.Status.Hosts, func(h novav1.PodHostStatus) bool { return h.Name == host && h.ComputeService != nil })
	_, theirs, err := findAPI(ctx, s.reader, pods.Namespace, pods.Spec.CellName)
	if err != nil || !known || theirs == nil || theirs.UID != api.UID {
		return "", err
	}
	return name, nil
}

// occupant returns the name of a NovaExternalCompute of the same Nova that has the host of
// this name and disputes it, empty if none does.
func (s *service) occupant(ctx context.Context, api *novav1.Nova, host string, disputes func(*novav1.NovaExternalCompute) bool) (string, error) {
	list := &novav1.NovaExternalComputeList{}
	if err := s.reader.List(ctx, list, client.InNamespace(api.Namespace), client.MatchingFields{hostIndex: host}); err != nil {
		return "", fmt.Errorf("listing the computes of host %s: %w", host, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if !disputes(other) {
			continue
		}
		_, theirs, err := findAPI(ctx, s.reader, other.Namespace, other.Spec.CellName)
		if err != nil {
			return "", err
		}
		if theirs != nil && theirs.UID == api.UID {
			return other.Name, nil
		}
	}
	return "", nil
}

// rivals reports whether another compute that has the host of a compute disputes it: one
// that is not recorded by its name takes it from none that is.
func rivals(compute, other *novav1.NovaExternalCompute) bool {
	return other.Name != compute.Name && (compute.Status.NovaHost == "" || other.Status.NovaHost != "")
}

func conflictText(compute, other, host string) string {
	return fmt.Sprintf("NovaExternalComputes %s and %s both register host %s in nova; nova is not updated for %s. Fix %s in ansibleVars of the node with the wrong name",
		compute, other, host, compute, hostVar)
}
