package nova

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

func TestWhatAnUpdateWouldLeaveBehind(t *testing.T) {
	hosts := map[string]host{"a": {}, "b": {disabledFor: "repair"}, "c": {deleting: true}}
	for name, c := range map[string]struct {
		service computeservice.Service
		down    bool
		left    bool
	}{
		"a compute that is up":                                {computeservice.Service{Host: "a", Up: true}, false, false},
		"a compute that is down":                              {computeservice.Service{Host: "a"}, true, false},
		"one that a person has disabled":                      {computeservice.Service{Host: "a", Disabled: true, DisabledReason: "repair"}, true, false},
		"one that a person has forced down":                   {computeservice.Service{Host: "a", ForcedDown: true}, true, false},
		"one that its annotation disables":                    {computeservice.Service{Host: "b", Disabled: true, DisabledReason: "repair"}, false, false},
		"one that its annotation disabled before":             {computeservice.Service{Host: "b"}, true, false},
		"one that a person has disabled for another reason":   {computeservice.Service{Host: "b", Disabled: true, DisabledReason: "mine"}, true, false},
		"a compute that is being deleted":                     {computeservice.Service{Host: "c"}, false, false},
		"a host that no compute has, and that is down":        {computeservice.Service{Host: "d"}, false, true},
		"a host of another deployment, which reports":         {computeservice.Service{Host: "d", Up: true}, false, false},
		"a host that no compute has, and that was disabled":   {computeservice.Service{Host: "d", Disabled: true}, false, true},
		"a host that no compute has, disabled without reason": {computeservice.Service{Host: "d", Disabled: true, DisabledReason: ""}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			down, left := leftBehind([]computeservice.Service{c.service}, hosts)
			if (len(down) == 1) != c.down || (len(left) == 1) != c.left {
				t.Errorf("down are %v and left are %v; want one down: %v, one left: %v", down, left, c.down, c.left)
			}
		})
	}
}

func TestServicesThatAreToRunWhatIsDeployed(t *testing.T) {
	template := func(conductor string) novav1.NovaCellTemplate {
		c := novav1.NovaCellTemplate{CellDatabaseInstance: "db"}
		c.ConductorServiceTemplate.ContainerImage = conductor
		return c
	}
	n := &novav1.Nova{ObjectMeta: metav1.ObjectMeta{Name: "nova"}}
	n.Spec.CellTemplates = map[string]novav1.NovaCellTemplate{"cell0": template(""), "cell1": template(""), "behind": template("conductor:0"), "elsewhere": {}}
	n.Status.Images = map[string]string{"conductor": "conductor:2", "behind/conductor": "conductor:0"}
	n.Status.Deployed = map[string]string{"conductor": "conductor:1", "behind/conductor": "conductor:0"}
	s, hosts := scopeOf(n), map[string]host{
		"b": {follows: true}, "a": {follows: true}, "chosen": {}, "leaving": {follows: true, deleting: true}, "repair": {follows: true, disabledFor: "disk"},
	}
	want := &nova.DeployedServices{Conductor: "nova-cell0-conductor", Cells: []string{"cell0", "cell1"}, Computes: []string{"a", "b"}}
	if diff := cmp.Diff(want, s.deployedServices(hosts)); diff != "" {
		t.Errorf("they differ: %s", diff)
	}
	n.Status.UpgradeCheck = &novav1.UpgradeCheck{}
	if got := s.deployedServices(hosts); got != nil {
		t.Errorf("in an update that is in progress they are %+v; want none", got)
	}
}

func TestTheHostOfACompute(t *testing.T) {
	compute := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Name: "n000"}}
	check := func(want string) {
		t.Helper()
		if got, _ := hostOf(compute); got != want {
			t.Errorf("it is %s; want %s", got, want)
		}
	}
	check("n000")
	compute.Status.ComputeService = &novav1.ComputeServiceStatus{Host: "n000.example", DisabledFor: "repair"}
	check("n000.example")
	compute.Status.NovaHost = "recorded"
	check("recorded")
	if _, h := hostOf(compute); cmp.Diff(host{disabledFor: "repair"}, h, cmp.AllowUnexported(host{})) != "" {
		t.Errorf("the host is %+v", h)
	}
}

func TestAServiceThatHadNoImageBeforeAnUpdateHasTheNewOne(t *testing.T) {
	n := &novav1.Nova{}
	n.Status.Images = map[string]string{"api": "api:2", "conductor": "conductor:2"}
	n.Status.Deployed = map[string]string{"conductor": "conductor:1"}
	for component, want := range map[string]string{"api": "api:2", "conductor": "conductor:1", "scheduler": ""} {
		if got := scopeOf(n).image(part{component: component}); got != want {
			t.Errorf("%s runs %q, want %q", component, got, want)
		}
	}
}
