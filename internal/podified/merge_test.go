package podified

import (
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/internal/phase"
)

func TestAnObjectShowsTheWorstOfItsServices(t *testing.T) {
	const kind = condition.DeploymentReadyCondition
	good := func(text string) condition.Conditions {
		return condition.Conditions{*condition.TrueCondition(kind, "%s", text)}
	}
	bad := func(severity condition.Severity, text string) condition.Conditions {
		return condition.Conditions{*condition.FalseCondition(kind, "Bad", severity, "%s", text)}
	}
	for name, c := range map[string]struct {
		services []condition.Conditions
		want     string
	}{
		"one that is well":            {[]condition.Conditions{good("1 of 1")}, "True 1 of 1"},
		"two that are well":           {[]condition.Conditions{good("a"), good("b")}, "True a; b"},
		"two that say the same":       {[]condition.Conditions{good("a"), good("a")}, "True a"},
		"one of two":                  {[]condition.Conditions{good("a"), bad(condition.SeverityInfo, "b")}, "False b"},
		"the worse of two":            {[]condition.Conditions{bad(condition.SeverityInfo, "a"), bad(condition.SeverityError, "b")}, "False b"},
		"the first of two alike":      {[]condition.Conditions{bad(condition.SeverityWarning, "a"), bad(condition.SeverityWarning, "b")}, "False a"},
		"one that is not checked yet": {[]condition.Conditions{good("a"), {*condition.UnknownCondition(kind, "Init", "u")}}, "Unknown u"},
	} {
		t.Run(name, func(t *testing.T) {
			object := condition.Conditions{}
			if err := mergeConditions(&object, c.services, nil); err != nil {
				t.Fatal(err)
			}
			got := object.Get(kind)
			if text := string(got.Status) + " " + got.Message; text != c.want {
				t.Errorf("it shows %q; want %q", text, c.want)
			}
		})
	}
}

func TestTheHaltThatShowsIsReturned(t *testing.T) {
	const kind = condition.DeploymentReadyCondition
	waits, stalls := phase.Waiting(kind, "Waiting", "w"), phase.Stalled(kind, "Stalled", "s")
	object := condition.Conditions{}
	err := mergeConditions(&object, []condition.Conditions{
		{*condition.FalseCondition(kind, waits.Reason, waits.Severity, "w")}, {*condition.FalseCondition(kind, stalls.Reason, stalls.Severity, "s")},
	}, []*phase.Halt{waits, stalls})
	if err != error(stalls) {
		t.Errorf("the halt is %v; want that of the worst condition", err)
	}
}
