package registration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// DrainIndex holds the role of a compute that is drained for a step, and awaitsEmptyHost for one
// on which a step waits for that: DrainOf.
const DrainIndex = "status.drain"

// awaitsEmptyHost is no name of a role.
const awaitsEmptyHost = "?"

// mostDrained is the most hosts that a message names.
const mostDrained = 3

// DrainOf returns the value of DrainIndex, none for a compute that neither is drained for a
// step nor waits for it.
func DrainOf(obj client.Object) []string {
	status := &obj.(*novav1.NovaExternalCompute).Status
	deployed := status.Conditions.Get(condition.DeploymentReadyCondition)
	switch {
	case status.Drain != nil:
		return []string{"role/" + status.Drain.Role}
	case deployed != nil && deployed.Reason == condition.Reason(edpm.HostNotEmpty):
		return []string{awaitsEmptyHost}
	}
	return nil
}

// WatchDrains wakes computes on which a step waits for an empty host when another compute is no
// longer drained for one.
func WatchDrains(b *builder.Builder, c client.Reader, list func() client.ObjectList) {
	waiting := watch.Users(c, list, DrainIndex, func(client.Object) string { return awaitsEmptyHost })
	isDrained := func(obj client.Object) bool { return obj.(*novav1.NovaExternalCompute).Status.Drain != nil }
	b.Watches(&novav1.NovaExternalCompute{}, handler.EnqueueRequestsFromMapFunc(waiting), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return isDrained(e.ObjectOld) && !isDrained(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isDrained(e.Object) },
	}))
}

// permitted is the way in which the role, or the node, has guests moved for a step; empty if it
// does not.
func (s *Registration) permitted() string {
	if s.Node == nil {
		return ""
	}
	if policy := inherit.Strategy(s.Node, s.Role).Drain; policy != dataplanev1.DrainNone {
		return string(policy)
	}
	return ""
}

// noteDrain ends the drain for a step that the role no longer permits.
func (s *Registration) noteDrain() {
	if s.Node != nil && s.permitted() == "" {
		s.endDrain()
	}
}

// endDrain forgets that a step needs the host empty.
func (s *Registration) endDrain() {
	s.compute.Status.Drain = nil
	s.turns.end(client.ObjectKeyFromObject(s.compute))
}

// Vacate has the host drained while a step needs it empty, and gives it back once the steps have
// run, or are not to be run.
func (s *Registration) Vacate(ctx context.Context, state *edpm.State) error {
	switch {
	case state.Phase == edpm.HostNotEmpty:
		text, err := s.requestDrain(ctx, state)
		state.Message += ". " + text
		return err
	case isOver(state):
		if s.compute.Status.Drain != nil {
			phase.Soon(ctx)
		}
		s.endDrain()
	case s.compute.Status.Drain == nil:
	case state.Phase == edpm.Failed || state.Phase == edpm.Refused:
		state.Message += ". The host stays drained until the step has run"
	}
	return nil
}

// isOver reports whether no step is about to be run that may need the host empty.
func isOver(state *edpm.State) bool {
	paused := state.Phase == edpm.Paused || state.Phase == edpm.Excluded
	return paused || !slices.ContainsFunc(deployingSteps, func(step string) bool { return slices.Contains(state.Due, step) })
}

// requestDrain has the host drained for a step if that is permitted and it is its turn, and
// returns what the step waits for.
func (s *Registration) requestDrain(ctx context.Context, state *edpm.State) (string, error) {
	drained := s.compute.Status.Conditions.IsTrue(novav1.DrainedCondition)
	switch {
	case drained && state.Emptied:
		return "The host is empty by now, and the step is run again", nil
	case drained:
		return "The host is drained, so these guests are not nova's: shut them down with virsh on the host. The step is tried again automatically", nil
	case s.wantsDrain():
		return fmt.Sprintf("The host is being drained: see condition %s", novav1.DrainedCondition), nil
	case s.api == nil:
		return fmt.Sprintf("NovaCell %s belongs to no Nova that runs an API, so no one can be asked to move the guests. The step is tried again automatically", s.cellName), nil
	case s.permitted() == "":
		return fmt.Sprintf("Run kubectl edpm drain %s, or set deployStrategy.drain of the node or its role, which permits to drain hosts for such steps", s.compute.Spec.DataplaneNodeName), nil
	}
	others, err := s.turns.take(client.ObjectKeyFromObject(s.compute), s.roleName(), s.MayInterrupt(), func() ([]string, error) { return s.drainedForSteps(ctx) })
	if err != nil {
		return "", err
	}
	if len(others) > 0 {
		return fmt.Sprintf("It is drained when its turn comes: maxUnavailable permits no more hosts at a time than %s", strings.Join(others, ", ")), nil
	}
	s.compute.Status.Drain = &novav1.DrainStatus{Step: state.Step, Role: s.roleName(), Since: metav1.Now()}
	phase.Soon(ctx)
	return "The host is drained for it, as deployStrategy.drain permits", nil
}

func (s *Registration) roleName() string { return s.Node.Spec.Role }

// drainedForSteps are the names of the computes of the role that are drained for a step.
func (s *Registration) drainedForSteps(ctx context.Context) ([]string, error) {
	list := &novav1.NovaExternalComputeList{}
	err := s.reader.List(ctx, list, client.InNamespace(s.compute.Namespace), client.MatchingFields{DrainIndex: "role/" + s.roleName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the computes that are drained: %w", err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// emptySince is since when the host is drained, zero if it is not.
func (s *Registration) emptySince() time.Time {
	now := s.compute.Status.Conditions.Get(novav1.DrainedCondition)
	switch {
	case now == nil || now.Status != corev1.ConditionTrue:
		return time.Time{}
	case s.previous != nil && s.previous.Status == corev1.ConditionTrue:
		return s.previous.LastTransitionTime.Time
	}
	return now.LastTransitionTime.Time
}

// turns has the computes whose turn it is to be drained for a step, with their roles, until the
// cache shows that. It is lost with the manager, and so is a turn that no status has.
type turns struct {
	mu    sync.Mutex
	given map[types.NamespacedName]string
}

func newTurns() *turns { return &turns{given: map[types.NamespacedName]string{}} }

// take gives a compute its turn, unless as many others of its role have theirs as may at a time:
// some of them are returned. drained lists those of the role whose status shows it.
func (t *turns) take(compute types.NamespacedName, role string, limit int, drained func() ([]string, error)) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	names, err := drained()
	if err != nil {
		return nil, err
	}
	others := map[string]bool{}
	for _, name := range names {
		others[name] = true
		delete(t.given, types.NamespacedName{Namespace: compute.Namespace, Name: name})
	}
	for other, of := range t.given {
		if other.Namespace == compute.Namespace && of == role {
			others[other.Name] = true
		}
	}
	delete(others, compute.Name)
	if len(others) >= limit {
		some := slices.Sorted(maps.Keys(others))
		return some[:min(len(some), mostDrained)], nil
	}
	t.given[compute] = role
	return nil, nil
}

// end takes the turn of a compute back.
func (t *turns) end(compute types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.given, compute)
}
