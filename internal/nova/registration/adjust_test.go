package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

// The stories are in controllers/*_test.go.

func TestOnlyWhatTheOperatorHasDisabledIsEnabled(t *testing.T) {
	disabled := func(reason, ours string) novav1.ComputeServiceStatus {
		return novav1.ComputeServiceStatus{Disabled: true, DisabledReason: reason, DisabledFor: ours}
	}
	for title, c := range map[string]struct {
		service          novav1.ComputeServiceStatus
		wanted, deployed bool
		change           computeservice.Change
		ours             string
	}{
		"enabled":                                    {novav1.ComputeServiceStatus{}, false, true, nil, ""},
		"enabled, to be disabled":                    {novav1.ComputeServiceStatus{}, true, true, computeservice.Disable("r"), "r"},
		"disabled as wanted":                         {disabled("r", "r"), true, true, nil, "r"},
		"disabled as wanted, which was not noted":    {disabled("r", ""), true, true, nil, "r"},
		"disabled by us for another reason":          {disabled("old", "old"), true, true, computeservice.Disable("r"), "r"},
		"disabled by us, to be enabled":              {disabled("r", "r"), false, false, computeservice.Enable(), ""},
		"disabled by us, and then by somebody else":  {disabled("theirs", "r"), false, true, nil, ""},
		"disabled by somebody else":                  {disabled("theirs", ""), false, true, nil, ""},
		"disabled by somebody else, to be disabled":  {disabled("theirs", ""), true, true, nil, ""},
		"disabled without a reason":                  {disabled("", ""), false, true, nil, ""},
		"disabled for a drain, which was not noted":  {disabled(drainReason, ""), false, false, computeservice.Enable(), ""},
		"disabled for a drain, and to be drained":    {disabled(drainReason, ""), true, true, computeservice.Disable("r"), "r"},
		"back after its removal, not yet deployed":   {disabled(removalReason, ""), false, false, nil, ""},
		"back after its removal":                     {disabled(removalReason, ""), false, true, computeservice.Enable().ForceDown(false), ""},
		"back after its removal, and to be disabled": {disabled(removalReason, ""), true, true, computeservice.Disable("r"), "r"},
	} {
		change, ours := adjustment(&c.service, c.wanted, "r", c.deployed)
		if diff := cmp.Diff(c.change, change); diff != "" || ours != c.ours {
			t.Errorf("%s: ours is %q, want %q; change (-want +got):\n%s", title, ours, c.ours, diff)
		}
	}
}
