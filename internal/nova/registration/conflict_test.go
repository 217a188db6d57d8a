package registration

import (
	"slices"
	"strings"
	"testing"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

func compute(name, recorded, shown string) *novav1.NovaExternalCompute {
	c := &novav1.NovaExternalCompute{}
	c.Name, c.Status.NovaHost = name, recorded
	if shown != "" {
		c.Status.ComputeService = &novav1.ComputeServiceStatus{ID: "1", Host: shown, Up: true}
	}
	return c
}

func registrationOf(c *novav1.NovaExternalCompute, nameInVars string) *Registration {
	return &Registration{Scope: &hosted.Scope{Vars: map[string]any{hostVar: nameInVars}}, compute: c, service: service{view: computeservice.View{Asked: true}}}
}

func TestARecordedHostIsLookedForWhateverTheVariablesSay(t *testing.T) {
	for title, c := range map[string]struct {
		compute *novav1.NovaExternalCompute
		vars    string
		want    []string
	}{
		"not recorded":               {compute("n0", "", ""), "", []string{"n0"}},
		"not recorded, and given":    {compute("n0", "", "n0"), "n1", []string{"n1"}},
		"recorded":                   {compute("n0", "n0", ""), "", []string{"n0"}},
		"recorded, and renamed":      {compute("n0", "n0", "n0"), "n1", []string{"n0"}},
		"recorded, and a template":   {compute("n0", "n0", ""), "{{ x }}", []string{"n0"}},
		"recorded by the given name": {compute("n0", "other", ""), "", []string{"other"}},
	} {
		if got := registrationOf(c.compute, c.vars).hostNames(); !slices.Equal(got, c.want) {
			t.Errorf("%s: looked for are %q; want %q", title, got, c.want)
		}
	}
}

func TestAHostIsRecordedOnceItsServiceReports(t *testing.T) {
	for title, c := range map[string]struct {
		change func(*Registration)
		want   string
	}{
		"its service is up":        {func(*Registration) {}, "n0"},
		"its service is down":      {func(r *Registration) { r.compute.Status.ComputeService.Up = false }, ""},
		"nova does not know it":    {func(r *Registration) { r.compute.Status.ComputeService = nil }, ""},
		"nova was not asked":       {func(r *Registration) { r.view.Asked = false }, ""},
		"another compute has it":   {func(r *Registration) { r.conflict = &computeservice.Trouble{} }, ""},
		"it is recorded by a name": {func(r *Registration) { r.compute.Status.NovaHost = "n1" }, "n1"},
	} {
		r := registrationOf(compute("n0", "", "n0"), "")
		c.change(r)
		if r.record(); r.compute.Status.NovaHost != c.want {
			t.Errorf("%s: recorded is %q; want %q", title, r.compute.Status.NovaHost, c.want)
		}
	}
}

func TestWhoIsNotRecordedTakesNoHostFromWhoIs(t *testing.T) {
	recorded, looking := compute("n0", "n0", "n0"), compute("n1", "", "n0")
	for title, c := range map[string]struct {
		compute, other *novav1.NovaExternalCompute
		want           bool
	}{
		"itself":                           {recorded, recorded, false},
		"one that is recorded, by another": {recorded, looking, false},
		"another, by one that is recorded": {looking, recorded, true},
		"two that are recorded":            {recorded, compute("n2", "n0", ""), true},
		"two that are not":                 {looking, compute("n2", "", "n0"), true},
	} {
		if got := rivals(c.compute, c.other); got != c.want {
			t.Errorf("%s: disputed is %v; want %v", title, got, c.want)
		}
	}
	if text := conflictText("n1", "n0", "h"); !strings.HasPrefix(text, "NovaExternalComputes n1 and n0 both register host h in nova") {
		t.Errorf("it says %q", text)
	}
}
