package registration

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/types"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
)

func TestNoMoreHostsAreDrainedForStepsThanMayBeUnavailable(t *testing.T) {
	turns := newTurns()
	var shown []string // by the cache
	take := func(name, role string, limit int) []string {
		t.Helper()
		others, err := turns.take(types.NamespacedName{Namespace: "ns", Name: name}, role, limit, func() ([]string, error) { return shown, nil })
		if err != nil {
			t.Fatal(err)
		}
		return others
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("a is the first", take("a", "compute", 1))
	expect("b waits for a, which no cache shows yet", take("b", "compute", 1), "a")
	expect("a has its turn still", take("a", "compute", 1))
	expect("c is of another role", take("c", "other", 1))
	shown = []string{"a"}
	expect("b waits for a as the cache shows it", take("b", "compute", 1), "a")
	expect("b need not wait where two may be unavailable", take("b", "compute", 2))
	expect("d waits for both", take("d", "compute", 2), "a", "b")
	turns.end(types.NamespacedName{Namespace: "ns", Name: "b"})
	expect("d need not wait for b any more", take("d", "compute", 2))
	shown = []string{"a", "b", "c", "d", "e"}
	expect("three are named", take("f", "compute", 2), "a", "b", "c")
	broken := errors.New("no index")
	if _, err := turns.take(types.NamespacedName{Namespace: "ns", Name: "g"}, "compute", 9, func() ([]string, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v; want %v", err, broken)
	}
}

func TestADrainForAStepIsOverWhenNoStepMayNeedIt(t *testing.T) {
	for name, c := range map[string]struct {
		state edpm.State
		want  bool
	}{
		"all steps have run":           {edpm.State{Phase: edpm.Converged}, true},
		"only images are pulled":       {edpm.State{Phase: edpm.Pending, Due: []string{"pull-images"}}, true},
		"libvirt is about to be run":   {edpm.State{Phase: edpm.Pending, Due: []string{"libvirt", "nova"}}, false},
		"nova is running":              {edpm.State{Phase: edpm.Running, Due: []string{"nova"}}, false},
		"libvirt has failed":           {edpm.State{Phase: edpm.Failed, Due: []string{"libvirt", "nova"}}, false},
		"nothing may be run":           {edpm.State{Phase: edpm.Paused, Due: []string{"libvirt"}}, true},
		"the host is outside a limit":  {edpm.State{Phase: edpm.Excluded, Due: []string{"libvirt"}}, true},
		"only some tasks are ever run": {edpm.State{Phase: edpm.Limited}, true},
	} {
		if got := isOver(&c.state); got != c.want {
			t.Errorf("%s: over is %v; want %v", name, got, c.want)
		}
	}
}

func TestTheWayGuestsAreMovedIsThatOfAPersonElseOfTheRole(t *testing.T) {
	drained := &novav1.DrainStatus{Step: "libvirt"}
	for name, c := range map[string]struct {
		annotation string
		policy     dataplanev1.DrainPolicy
		drain      *novav1.DrainStatus
		why, mode  string
	}{
		"no one asks":                   {"", "live", nil, "", ""},
		"a step":                        {"", "live", drained, "step libvirt needs it empty", "live"},
		"a person":                      {"stop", "live", nil, "annotation edpm.openstack.org/drain of the node", "stop"},
		"both":                          {"stop", "live", drained, "annotation edpm.openstack.org/drain of the node", "stop"},
		"a step that no longer may":     {"", "none", drained, "", ""},
		"a person where no step may":    {"cold", "none", drained, "annotation edpm.openstack.org/drain of the node", "cold"},
		"a step where nothing is said":  {"", "", drained, "", ""},
		"a step that moves guests cold": {"", "cold", drained, "step libvirt needs it empty", "cold"},
	} {
		annotations := map[string]string{}
		if c.annotation != "" {
			annotations[common.DrainAnnotation] = c.annotation
		}
		s := fenceable(nodeWith(nil, annotations), novav1.NovaExternalComputeStatus{Drain: c.drain})
		s.Role = &dataplanev1.OpenStackDataPlaneRole{}
		s.Role.Spec.DeployStrategy.Drain = c.policy
		s.turns = newTurns()
		s.noteDrain()
		if mode, _, _ := s.drainOrder(); s.drainedFor() != c.why || mode != c.mode {
			t.Errorf("%s: drained %q for %q; want %q for %q", name, mode, s.drainedFor(), c.mode, c.why)
		}
	}
}

func TestADrainOfANodeThatCannotBeReadContinues(t *testing.T) {
	s := &Registration{Scope: &hosted.Scope{}, turns: newTurns(), compute: &novav1.NovaExternalCompute{}}
	s.compute.Status.Drain = &novav1.DrainStatus{Step: "libvirt"}
	if s.noteDrain(); s.compute.Status.Drain == nil {
		t.Error("the drain has ended")
	}
}

func TestANodeSaysWhetherItsStepsNeedAnEmptyHost(t *testing.T) {
	for reason, want := range map[condition.Reason]edpm.Phase{
		"": "", "Failed": "", "Running": "", "HostNotEmpty": edpm.HostNotEmpty, "DeployDisabled": edpm.Paused, "OutsideLimit": edpm.Excluded,
	} {
		node := &dataplanev1.OpenStackDataPlaneNode{}
		if reason != "" {
			node.Status.Conditions.MarkFalse(condition.DeploymentReadyCondition, reason, condition.SeverityInfo, "")
		}
		if got := nodeNeed(node); got != want {
			t.Errorf("with reason %q it is %q; want %q", reason, got, want)
		}
	}
}
