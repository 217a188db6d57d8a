package registration

import (
	"context"
	"errors"
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// unreadable fails every read.
type unreadable struct{ client.Reader }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no API server")
}

func TestAComputeShowsItsDrainAlsoAfterAReconciliationThatFails(t *testing.T) {
	s := fenceable(&dataplanev1.OpenStackDataPlaneNode{}, novav1.NovaExternalComputeStatus{})
	s.reader, s.turns = unreadable{}, newTurns()
	s.previous = condition.FalseCondition(novav1.DrainedCondition, novav1.DrainingReason, condition.SeverityInfo, "1 being moved")
	if err := s.Observe(t.Context()); err == nil {
		t.Fatal("the cell cannot be read")
	}
	if shown := s.compute.Status.Conditions.Get(novav1.DrainedCondition); shown == nil || shown.Message != "1 being moved" {
		t.Errorf("it shows %+v, and would not complete the cold migrations of the drain", shown)
	}
}

func TestAHostOfWhichOnlyANameCouldBeGuessedIsLeftAlone(t *testing.T) {
	known := &novav1.ComputeServiceStatus{Host: "known"}
	for title, c := range map[string]struct {
		vars   map[string]any
		status novav1.NovaExternalComputeStatus
		want   string // empty for none
	}{
		"the variables are read":                {map[string]any{hostVar: "given"}, novav1.NovaExternalComputeStatus{}, "given"},
		"its name is recorded":                  {nil, novav1.NovaExternalComputeStatus{NovaHost: "recorded", ComputeService: known}, "recorded"},
		"nova has shown its service":            {nil, novav1.NovaExternalComputeStatus{ComputeService: known}, "known"},
		"nova has shown one before it was read": {map[string]any{hostVar: "given"}, novav1.NovaExternalComputeStatus{ComputeService: known}, "given"},
		"nothing is known":                      {nil, novav1.NovaExternalComputeStatus{}, ""},
	} {
		s := fenceable(&dataplanev1.OpenStackDataPlaneNode{}, c.status)
		s.Vars = c.vars
		got := ""
		if err := s.ifNamed(func(context.Context) error { got = s.hostNames()[0]; return nil })(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: nova is asked for %q (%v), want %q", title, got, err, c.want)
		}
	}
}
