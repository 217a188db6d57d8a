package registration

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// obstacles returns why no guest can be moved off the host by a call of nova's API; empty for a call
// that nova can try. nova accepts such migrations, and only libvirt or ssh find out. Guests that are
// shut off are migrated cold whatever the mode is.
//
// The conditions of this reconciliation do not say that yet, and those of the last one may have ended
// before that: what lasts in the status decides, and they only say it in words. A certificate that
// cannot be renewed, peers or keys that change and a run that is repeated are no reason, because the
// host keeps what it has.
func (s *Registration) obstacles(ctx context.Context, mode string) (map[drain.Call]string, error) {
	if mode != validate.DrainLive && mode != validate.DrainCold {
		return nil, nil
	}
	others, err := s.destinations(ctx)
	if err != nil {
		return nil, err
	}
	found := map[drain.Call]string{drain.Migrate: s.coldObstacle(others)}
	if mode == validate.DrainLive {
		found[drain.LiveMigrate] = s.liveObstacle(others)
	}
	return found, nil
}

// destinations returns the computes that nova may choose for a guest of the host, by name. Hosts that
// are down or disabled do not matter: an unreachable one is often about to be repaired.
func (s *Registration) destinations(ctx context.Context) ([]*novav1.NovaExternalCompute, error) {
	list := &novav1.NovaExternalComputeList{}
	if err := s.reader.List(ctx, list, client.InNamespace(s.compute.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the computes that guests can be moved to: %w", err)
	}
	var found []*novav1.NovaExternalCompute
	for i := range list.Items {
		other := &list.Items[i]
		service := other.Status.ComputeService
		if other.Name != s.compute.Name && other.Spec.CellName == s.compute.Spec.CellName && service != nil && service.Up && !service.Disabled && !service.ForcedDown {
			found = append(found, other)
		}
	}
	slices.SortFunc(found, func(a, b *novav1.NovaExternalCompute) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// liveObstacle returns why no guest can be migrated while it runs, empty if nova can try.
func (s *Registration) liveObstacle(others []*novav1.NovaExternalCompute) string {
	shown := s.previousLive
	isFalse := shown != nil && shown.Status == corev1.ConditionFalse
	why := "it is not configured yet"
	if isFalse {
		why = shown.Message
	}
	isReached := func(other *novav1.NovaExternalCompute) bool { return migration.Reaches(s.compute, other) }
	if migration.IsConfigured(s.compute) && (!isFalse || shown.Reason != novav1.PeerUnreachableReason || isAny(others, isReached)) {
		return ""
	}
	return fmt.Sprintf("Live migration from the host is not possible: %s (condition %s). Running guests are moved once it is; to move them with a restart instead, kubectl edpm drain %s --cold (annotation %s: cold)",
		why, novav1.LiveMigrationReadyCondition, s.compute.Spec.DataplaneNodeName, common.DrainAnnotation)
}

// coldObstacle returns why no guest can be migrated cold, empty if nova can try.
func (s *Registration) coldObstacle(others []*novav1.NovaExternalCompute) string {
	copiesDisks := func(other *novav1.NovaExternalCompute) bool { return migration.WhyNotCopied(other) == "" }
	why := migration.WhyNotCopied(s.compute)
	if why == "" && isAny(others, copiesDisks) {
		return ""
	}
	if why == "" {
		why = fmt.Sprintf("of the %d hosts that nova may choose none takes disks. Host %s: %s", len(others), others[0].Name, migration.WhyNotCopied(others[0]))
	}
	return fmt.Sprintf("Cold migration from the host is not possible: %s. Guests are migrated cold once it is", why)
}

// isAny reports whether one of the hosts that nova may choose for a guest is such. Where it may choose
// none it says so itself.
func isAny(others []*novav1.NovaExternalCompute, is func(*novav1.NovaExternalCompute) bool) bool {
	return len(others) == 0 || slices.ContainsFunc(others, is)
}
