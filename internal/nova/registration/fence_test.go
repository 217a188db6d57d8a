package registration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
)

func fenceable(node *dataplanev1.OpenStackDataPlaneNode, status novav1.NovaExternalComputeStatus) *Registration {
	compute := &novav1.NovaExternalCompute{Status: status}
	s := &Registration{Scope: &hosted.Scope{Node: node}, compute: compute, drains: drain.NewMemory(), fences: newFences()}
	s.service = service{status: &compute.Status.ComputeService, toDisable: s.disableReason, fence: func() *novav1.FenceStatus { return compute.Status.Fence }}
	return s
}

func nodeWith(machine *dataplanev1.ClaimedHost, annotations map[string]string) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Status: dataplanev1.OpenStackDataPlaneNodeStatus{BareMetalHost: machine},
	}
}

func TestAHostIsOffAsLongAsSomeoneSaysSo(t *testing.T) {
	off := &dataplanev1.ClaimedHost{Name: "m0", PoweredOff: true}
	says := func(by string) map[string]string { return map[string]string{common.FenceAnnotation: by} }
	before := func(ended bool) *novav1.FenceStatus {
		return &novav1.FenceStatus{By: "bert", Since: metav1.NewTime(time.Unix(1, 0)), Ended: ended}
	}
	for title, c := range map[string]struct {
		node        *dataplanev1.OpenStackDataPlaneNode
		before      *novav1.FenceStatus
		by          string // empty for none
		ended, news bool
	}{
		"no one says so":                            {nodeWith(nil, nil), nil, "", false, false},
		"a person says so":                          {nodeWith(nil, says("anna")), nil, "anna", false, true},
		"another person says so since":              {nodeWith(nil, says("anna")), before(false), "anna", false, false},
		"a person says so again":                    {nodeWith(nil, says("anna")), before(true), "anna", false, true},
		"a person no longer says so":                {nodeWith(nil, nil), before(false), "bert", true, false},
		"what a person says has become invalid":     {nodeWith(nil, says("")), before(false), "bert", false, false},
		"what a person says is invalid":             {nodeWith(nil, says("")), nil, "", false, false},
		"its machine is off":                        {nodeWith(off, nil), nil, "BareMetalHost m0, whose power is off", false, true},
		"its machine is on":                         {nodeWith(&dataplanev1.ClaimedHost{Name: "m0"}, nil), nil, "", false, false},
		"a person says so of a machine that is off": {nodeWith(off, says("anna")), nil, "anna", false, true},
		"its machine is off for maintenance":        {nodeWith(off, map[string]string{common.DrainAnnotation: "stop"}), nil, "", false, false},
		"its node is gone":                          {nil, before(false), "bert", true, false},
	} {
		s := fenceable(c.node, novav1.NovaExternalComputeStatus{Fence: c.before})
		s.noteFence()
		got := s.compute.Status.Fence
		switch {
		case got == nil:
			if c.by != "" {
				t.Errorf("%s: it is not off", title)
			}
		case got.By != c.by || got.Ended != c.ended || got.Since.After(time.Unix(1, 0)) != c.news:
			t.Errorf("%s: %+v", title, got)
		}
	}
}

func TestTheServiceOfAHostThatIsOffIsDisabledAndForcedDownInOneRequest(t *testing.T) {
	for title, c := range map[string]struct {
		service computeservice.Service
		ended   bool
		want    computeservice.Change
	}{
		"it is up":                              {computeservice.Service{}, false, computeservice.Disable(fenceReason).ForceDown(true)},
		"it is drained":                         {computeservice.Service{Disabled: true, DisabledReason: drainReason}, false, computeservice.Disable(fenceReason).ForceDown(true)},
		"it is disabled by another user":        {computeservice.Service{Disabled: true, DisabledReason: "theirs"}, false, computeservice.Change{"forced_down": true}},
		"another user has lifted that":          {computeservice.Service{Disabled: true, DisabledReason: fenceReason}, false, computeservice.Change{"forced_down": true}},
		"it is done":                            {computeservice.Service{Disabled: true, DisabledReason: fenceReason, ForcedDown: true}, false, nil},
		"the host returns":                      {computeservice.Service{Disabled: true, DisabledReason: fenceReason, ForcedDown: true}, true, nil},
		"the host returns, and was forced down": {computeservice.Service{Disabled: true, DisabledReason: removalReason, ForcedDown: true}, true, computeservice.Disable(fenceReason)},
	} {
		c.service.ID = "1"
		s := fenceable(nodeWith(nil, nil), novav1.NovaExternalComputeStatus{
			ComputeService: serviceStatus(c.service), Fence: &novav1.FenceStatus{By: "anna", Ended: c.ended},
		})
		got, _ := s.due(false)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

func TestAHostWasFencedIfItsServiceSaysSo(t *testing.T) {
	for title, c := range map[string]struct {
		service computeservice.Service
		want    bool
	}{
		"fenced":                            {computeservice.Service{Disabled: true, DisabledReason: fenceReason, ForcedDown: true}, true},
		"fenced, and its compute deleted":   {computeservice.Service{Disabled: true, DisabledReason: removalReason, ForcedDown: true}, true},
		"deleted":                           {computeservice.Service{Disabled: true, DisabledReason: removalReason}, false},
		"forced down by another user":       {computeservice.Service{Disabled: true, DisabledReason: "theirs", ForcedDown: true}, false},
		"forced down, and enabled, by some": {computeservice.Service{ForcedDown: true}, false},
	} {
		c.service.ID = "1"
		s := fenceable(nil, novav1.NovaExternalComputeStatus{ComputeService: serviceStatus(c.service)})
		s.view.Asked = true
		s.recallFence()
		if got := s.compute.Status.Fence; (got != nil) != c.want || got != nil && !got.Ended {
			t.Errorf("%s: %+v", title, got)
		}
	}
}

func TestWhatEvacuationsLeaveOnAHost(t *testing.T) {
	evacuated := func(guest, status string) computeservice.Migration {
		return computeservice.Migration{Guest: guest, Source: "h", Target: "other", Kind: computeservice.Evacuation, Status: status}
	}
	elsewhere := evacuated("other-host", "done")
	elsewhere.Source = "other"
	moved := evacuated("moved", "completed")
	moved.Kind = "live-migration"
	open, left := evacuations([]computeservice.Migration{
		evacuated("b", "done"), evacuated("a", "error"), evacuated("a", "pre-migrating"), evacuated("removed", "completed"), evacuated("failed", "failed"), evacuated("b", "done"), elsewhere, moved,
	}, "h")
	if diff := cmp.Diff([]string{"a", "b"}, left); diff != "" || open != 1 {
		t.Errorf("%d have not ended; left (-want +got):\n%s", open, diff)
	}
}

func TestReportsOfAHostThatIsFenced(t *testing.T) {
	f, compute, start := newFences(), types.NamespacedName{Name: "n"}, time.Unix(1e9, 0)
	for i, c := range []struct {
		report, now time.Duration
		since       time.Duration
		changes     int
	}{
		{0, 0, 0, 0},
		{0, 9 * time.Second, 0, 0},
		{10 * time.Second, 12 * time.Second, 12 * time.Second, 1},
		{20 * time.Second, 21 * time.Second, 21 * time.Second, 2},
		{20 * time.Second, time.Minute, 21 * time.Second, 2},
	} {
		got := f.note(compute, start.Add(c.report), start.Add(c.now))
		if !got.since.Equal(start.Add(c.since)) || got.changes != c.changes {
			t.Errorf("%d: %+v", i, got)
		}
	}
	f.forget(compute)
	if got := f.note(compute, start, start); got.changes != 0 {
		t.Errorf("reports are remembered of a host that is not fenced: %+v", got)
	}
}
