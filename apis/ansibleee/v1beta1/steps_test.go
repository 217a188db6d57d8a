package v1beta1

import (
	"testing"

	"k8s.io/utils/ptr"
)

func TestStepHost(t *testing.T) {
	const converged, failed, untouched, unknown, notReached = "converged", "failed", "untouched", "unknown", "not reached"
	for name, c := range map[string]struct {
		host *HostStatus
		want [3]string
	}{
		"all is well":                          {&HostStatus{OK: 9, StepsDone: ptr.To[int32](3)}, [3]string{converged, converged, converged}},
		"failed in the second step":            {&HostStatus{OK: 9, Failed: 1, StepsDone: ptr.To[int32](1)}, [3]string{converged, failed, notReached}},
		"failed in the first step":             {&HostStatus{OK: 9, Failed: 1, StepsDone: ptr.To[int32](0)}, [3]string{failed, notReached, notReached}},
		"lost in the last step":                {&HostStatus{OK: 9, Unreachable: 1, StepsDone: ptr.To[int32](2)}, [3]string{converged, converged, failed}},
		"stood by when a play was aborted":     {&HostStatus{OK: 9, StepsDone: ptr.To[int32](1)}, [3]string{converged, failed, notReached}},
		"took part in steps after a failure":   {&HostStatus{OK: 9, Failed: 1, StepsDone: ptr.To[int32](0), StepsBegun: ptr.To[int32](2)}, [3]string{failed, unknown, notReached}},
		"a failure that was forgiven":          {&HostStatus{OK: 9, Failed: 1, StepsDone: ptr.To[int32](3)}, [3]string{converged, converged, failed}},
		"more steps than there are":            {&HostStatus{OK: 9, StepsDone: ptr.To[int32](7)}, [3]string{converged, converged, converged}},
		"never logged in":                      {&HostStatus{Unreachable: 1, StepsDone: ptr.To[int32](0), NotConnected: true}, [3]string{untouched, notReached, notReached}},
		"nothing to do":                        {&HostStatus{StepsDone: ptr.To[int32](3)}, [3]string{untouched, untouched, untouched}},
		"well, of an image without steps":      {&HostStatus{OK: 9}, [3]string{converged, converged, converged}},
		"failed, of an image without steps":    {&HostStatus{OK: 9, Failed: 1}, [3]string{failed, unknown, unknown}},
		"untouched, of an image without steps": {&HostStatus{}, [3]string{untouched, notReached, notReached}},
		"without a result":                     {nil, [3]string{unknown, unknown, unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			run := &OpenStackAnsibleEE{Spec: OpenStackAnsibleEESpec{Steps: []RunStep{{Name: "one"}, {Name: "two"}, {Name: "three"}}}}
			if c.host != nil {
				c.host.Name = "h"
				run.Status.Hosts = []HostStatus{*c.host}
			}
			for i, step := range run.StepNames() {
				got := failed
				switch h, known, reached := run.StepHost(step, "h"); {
				case !reached:
					got = notReached
				case !known:
					got = unknown
				case h.Converged():
					got = converged
				case h.Untouched():
					got = untouched
				}
				if got != c.want[i] {
					t.Errorf("step %s is %s; want %s", step, got, c.want[i])
				}
			}
			if whole := c.host != nil && run.Converged(*c.host); whole != (c.want == [3]string{converged, converged, converged}) {
				t.Errorf("Converged is %v", whole)
			}
		})
	}
}

func TestARunOfOneStep(t *testing.T) {
	run := &OpenStackAnsibleEE{
		Spec:   OpenStackAnsibleEESpec{Step: "nova", Targets: []Target{{Host: "h", Hash: "H", Serial: 3, Attempt: 2}}},
		Status: OpenStackAnsibleEEStatus{Hosts: []HostStatus{{Name: "h", OK: 1, Failed: 1}}},
	}
	if target, ok := run.StepTarget("nova", "h"); !ok || target.Hash != "H" || target.Serial != 3 || target.Attempt != 2 {
		t.Errorf("StepTarget is %+v, %v", target, ok)
	}
	if _, ok := run.StepTarget("libvirt", "h"); ok {
		t.Error("StepTarget finds a step that the run does not have")
	}
	if h, known, reached := run.StepHost("nova", "h"); h.Failed != 1 || !known || !reached {
		t.Errorf("StepHost is %+v, %v, %v", h, known, reached)
	}
}
