package registration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// immobile returns why no guest can be moved off the host while it runs, empty if nova can try. nova
// accepts such a migration, and only libvirt finds out.
//
// The conditions of this reconciliation do not say that yet, and those of the last one may have ended
// before that: what lasts in the status decides, and they only say it in words. A certificate that
// cannot be renewed, peers that change and a run that is repeated are no reason, because the host
// keeps what it has.
func (s *Registration) immobile(ctx context.Context, mode string) (string, error) {
	if mode != validate.DrainLive {
		return "", nil
	}
	shown := s.previousLive
	isFalse := shown != nil && shown.Status == corev1.ConditionFalse
	why := "it is not configured yet"
	if isFalse {
		why = shown.Message
	}
	if migration.IsConfigured(s.compute) {
		if !isFalse || shown.Reason != novav1.PeerUnreachableReason {
			return "", nil
		}
		if isolated, err := s.isIsolated(ctx); err != nil || !isolated {
			return "", err
		}
	}
	return fmt.Sprintf("Live migration from the host is not possible: %s (condition %s). Running guests are moved once it is; to move them with a restart instead, kubectl edpm drain %s --cold (annotation %s: cold)",
		why, novav1.LiveMigrationReadyCondition, s.compute.Spec.DataplaneNodeName, common.DrainAnnotation), nil
}

// isIsolated reports whether the host reaches none of the hosts that nova may choose for a guest. As
// long as it reaches one, guests can get there; and where nova may choose none, nova says so itself.
// Hosts that are down or disabled do not matter: an unreachable one is often about to be repaired.
func (s *Registration) isIsolated(ctx context.Context) (bool, error) {
	list := &novav1.NovaExternalComputeList{}
	if err := s.reader.List(ctx, list, client.InNamespace(s.compute.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the computes that guests can be moved to: %w", err)
	}
	mayTake := 0
	for i := range list.Items {
		other := &list.Items[i]
		service := other.Status.ComputeService
		if other.Name == s.compute.Name || other.Spec.CellName != s.compute.Spec.CellName || service == nil || !service.Up || service.Disabled || service.ForcedDown {
			continue
		}
		if migration.Reaches(s.compute, other) {
			return false, nil
		}
		mayTake++
	}
	return mayTake > 0, nil
}
