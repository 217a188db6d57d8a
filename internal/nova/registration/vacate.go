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
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// drainIndex holds the role of a compute that is drained for a step: drainOf.
const drainIndex = "status.drain"

// mostDrained is the most hosts that a message names.
const mostDrained = 3

// drainOf returns the value of drainIndex, none for a compute that is not drained for a step.
func drainOf(obj client.Object) []string {
	if drain := obj.(*novav1.NovaExternalCompute).Status.Drain; drain != nil {
		return []string{drain.Role}
	}
	return nil
}

// WatchDrains indexes the computes that are drained for a step, and wakes computes when a step of
// their node needs the host empty, or no longer, and when another one of their role is no longer
// drained for a step.
func WatchDrains(ctx context.Context, b *builder.Builder, c client.Reader, indexer client.FieldIndexer) error {
	listNodes := func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneNodeList{} }
	ofRole := watch.Users(c, listNodes, dataplane.RoleIndex, func(obj client.Object) string { return strings.Join(drainOf(obj), "") })
	b.Watches(&dataplanev1.OpenStackDataPlaneNode{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Changes(nodeNeed))).
		Watches(&novav1.NovaExternalCompute{}, handler.EnqueueRequestsFromMapFunc(ofRole), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(e event.UpdateEvent) bool { return drainOf(e.ObjectOld) != nil && drainOf(e.ObjectNew) == nil },
			DeleteFunc: func(e event.DeleteEvent) bool { return drainOf(e.Object) != nil },
		}))
	return indexer.IndexField(ctx, &novav1.NovaExternalCompute{}, drainIndex, drainOf)
}

// nodeNeed is why the steps of a node are not run, as far as it concerns whether the host is
// drained: empty for other reasons.
func nodeNeed(node client.Object) edpm.Phase {
	deployed := node.(*dataplanev1.OpenStackDataPlaneNode).Status.Conditions.Get(condition.DeploymentReadyCondition)
	if deployed == nil {
		return ""
	}
	switch need := edpm.Phase(deployed.Reason); need {
	case edpm.HostNotEmpty, edpm.Paused, edpm.Excluded:
		return need
	}
	return ""
}

// EmptySince is since when a compute, as it is in the API, shows that its host is drained; zero
// if it does not.
func EmptySince(compute hosted.Object) metav1.Time {
	if drained := compute.GetConditions().Get(novav1.DrainedCondition); drained != nil && drained.Status == corev1.ConditionTrue {
		return drained.LastTransitionTime
	}
	return metav1.Time{}
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

// permitDrain says to a step since when the host is drained, and to libvirt that it can be: it
// asks for that only then where guests in its container keep it from being restarted.
func (s *Registration) permitDrain(t *edpm.Target) {
	t.EmptySince = s.emptySince()
	if t.Step.Name == "libvirt" && s.api != nil && s.permitted() != "" {
		t.Hints = map[string]any{"edpm_libvirt_drain": true}
	}
}

// noteDrain ends the drain for a step that the role no longer permits, and of a node whose runs are
// paused or excluded.
func (s *Registration) noteDrain() {
	if s.Node == nil {
		return
	}
	if need := nodeNeed(s.Node); s.permitted() == "" || need == edpm.Paused || need == edpm.Excluded {
		s.endDrain()
	}
}

// drainForNode has the host drained if a step of its node needs it empty.
func (s *Registration) drainForNode(ctx context.Context) error {
	if s.Node == nil || s.compute.Status.Fence != nil || s.wantsDrain() || s.permitted() == "" || nodeNeed(s.Node) != edpm.HostNotEmpty {
		return nil
	}
	_, err := s.takeTurn(ctx, "")
	return err
}

// endDrain forgets that a step needs the host empty.
func (s *Registration) endDrain() {
	s.compute.Status.Drain = nil
	s.turns.end(client.ObjectKeyFromObject(s.compute))
}

// Vacate has the host drained while a step needs it empty, and gives it back once the steps have
// run, or are paused or excluded.
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
		return fmt.Sprintf("No Nova with an API manages NovaCell %s, so the operator cannot move the guests. The step is tried again automatically", s.cellName), nil
	case s.permitted() == "":
		return fmt.Sprintf("Run kubectl edpm drain %s, or set deployStrategy.drain of the node or its role, which permits to drain hosts for such steps", s.compute.Spec.DataplaneNodeName), nil
	}
	switch others, err := s.takeTurn(ctx, state.Step); {
	case err != nil:
		return "", err
	case len(others) > 0:
		return fmt.Sprintf("It is drained when its turn comes: maxUnavailable permits no more hosts at a time than %s", strings.Join(others, ", ")), nil
	}
	return "The host is drained for it, as deployStrategy.drain permits", nil
}

// takeTurn notes that the host is drained for a step of the compute, or for one of the node if
// that is empty. If it is not its turn, some of those are returned whose it is.
func (s *Registration) takeTurn(ctx context.Context, step string) (others []string, err error) {
	others, err = s.turns.take(client.ObjectKeyFromObject(s.compute), s.roleName(), s.MayInterrupt(), func() ([]string, error) { return s.drainedForSteps(ctx) })
	if err == nil && len(others) == 0 {
		s.compute.Status.Drain = &novav1.DrainStatus{Step: step, Role: s.roleName(), Since: metav1.Now()}
		phase.Soon(ctx) // nova is asked for nothing before the status says why
	}
	return others, err
}

func (s *Registration) roleName() string { return s.Node.Spec.Role }

// drainedForSteps are the names of the computes of the role that are drained for a step.
func (s *Registration) drainedForSteps(ctx context.Context) ([]string, error) {
	list := &novav1.NovaExternalComputeList{}
	err := s.reader.List(ctx, list, client.InNamespace(s.compute.Namespace), client.MatchingFields{drainIndex: s.roleName()}, client.UnsafeDisableDeepCopy)
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
	now := EmptySince(s.compute).Time
	if !now.IsZero() && s.previous != nil && s.previous.Status == corev1.ConditionTrue {
		return s.previous.LastTransitionTime.Time
	}
	return now
}

// turns has the computes that may be drained for a step, with their roles, until the cache shows
// that. It is lost with the manager, and so is a turn that no status has.
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
