package edpm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

func TestMachine(t *testing.T) {
	type vars = map[string]any
	for name, c := range map[string]struct {
		vars vars
		want string
	}{
		"the name of the host":                   {nil, "ns/edpm-0:22"},
		"an address":                             {vars{"ansible_host": "10.0.0.1"}, "10.0.0.1:22"},
		"a name in capitals":                     {vars{"ansible_host": "EDPM-0.Example.COM"}, "edpm-0.example.com:22"},
		"a name with a final dot":                {vars{"ansible_host": "edpm-0.example.com."}, "edpm-0.example.com:22"},
		"IPv6 in full":                           {vars{"ansible_host": "2001:0DB8:0:0:0:0:0:1"}, "[2001:db8::1]:22"},
		"IPv6 in brackets":                       {vars{"ansible_host": "[2001:db8::1]"}, "[2001:db8::1]:22"},
		"IPv4 with a final dot":                  {vars{"ansible_host": "10.0.0.1."}, "10.0.0.1:22"},
		"IPv4 as IPv6":                           {vars{"ansible_host": "::ffff:10.0.0.1"}, "10.0.0.1:22"},
		"a port":                                 {vars{"ansible_host": "10.0.0.1", "ansible_port": int32(2222)}, "10.0.0.1:2222"},
		"a port from JSON":                       {vars{"ansible_host": "10.0.0.1", "ansible_port": 2222.0}, "10.0.0.1:2222"},
		"a port as text":                         {vars{"ansible_host": "10.0.0.1", "ansible_port": "2222"}, "10.0.0.1:2222"},
		"the older names, which Ansible prefers": {vars{"ansible_host": "10.0.0.1", "ansible_ssh_host": "10.0.0.2", "ansible_port": 22, "ansible_ssh_port": 23}, "10.0.0.2:23"},
		"an address that is a template":          {vars{"ansible_host": "{{ ctlplane_ip }}"}, ""},
		"a port that is a template":              {vars{"ansible_port": "{{ port }}"}, ""},
		"spaces around it":                       {vars{"ansible_host": " 10.0.0.1 "}, "10.0.0.1:22"},
		"nothing is an address of its own":       {vars{"ansible_host": nil}, "ns/edpm-0:22"},
	} {
		if got := Machine("ns", c.vars, "edpm-0", nil); got != c.want {
			t.Errorf("%s: the machine is %q; want %q", name, got, c.want)
		}
	}
}

func TestMachinesBehindAJumpHost(t *testing.T) {
	for name, c := range map[string]struct {
		host, want string
		jump       common.JumpHost
	}{
		"a name":            {"10.0.0.1", "10.0.0.1:22 through bastion.example.com:22", common.JumpHost{Address: "Bastion.example.com."}},
		"an address":        {"edpm-0", "ns/edpm-0:22 through [fd00::1]:22", common.JumpHost{Address: "FD00:0::1", Port: 22}},
		"a port":            {"10.0.0.1", "10.0.0.1:22 through 192.0.2.1:2222", common.JumpHost{Address: "192.0.2.1", Port: 2222}},
		"an unknown target": {"{{ x }}", "", common.JumpHost{Address: "192.0.2.1"}},
	} {
		if got := Machine("ns", map[string]any{"ansible_host": c.host}, "edpm-0", &c.jump); got != c.want {
			t.Errorf("%s: the machine is %q; want %q", name, got, c.want)
		}
	}
}

// at gives a host an address.
func at(address string) func(*Target) {
	return func(t *Target) { t.Vars = map[string]any{"ansible_host": address} }
}

func TestTwoHostsThatAreOneMachineAreNotInOneRun(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", at("10.0.0.1")))
	y.converge(&common.Ledger{}, wantedOf("b", at("10.0.0.1.")))
	y.converge(&common.Ledger{}, wantedOf("c", at("::ffff:10.0.0.1")))
	y.converge(&common.Ledger{}, wantedOf("d", at("10.0.0.2")))
	y.plan(group1)
	run := y.onlyRun()
	var got []string
	for _, target := range run.Spec.Targets {
		got = append(got, target.Host+" "+target.Machine)
	}
	if diff := cmp.Diff([]string{"a 10.0.0.1:22", "d 10.0.0.2:22"}, got); diff != "" {
		t.Errorf("the hosts of the run differ (-want +got):\n%s", diff)
	}
	y.seen()
	y.plan(group1)
	if got := y.runs(); len(got) != 1 {
		t.Errorf("the runs are %v; want none for b and c while that of a is at work", got)
	}
	y.end(run, ok("a"), ok("d"))
	y.plan(group1)
	if got := y.runs(); len(got) != 2 {
		t.Errorf("the runs are %v; want one more, for b", got)
	}
}

func TestAHostThatIsHeldDoesNotKeepItsMachineFromAnother(t *testing.T) {
	all := pending(func(o *pendingTarget) { o.machine = "10.0.0.1:22" }, "a", "b")
	all[0].Strategy.MaxFailures = ptr.To[int32](0)
	p := makePlan(all, snapshot{now: noon, failed: map[string]bool{"c": true}})
	if len(p.batches) != 1 || p.batches[0][0].Host != "b" || p.held["a"] == "" {
		t.Errorf("the plan is %+v; want that b starts, as only a is held", p)
	}
}

func TestAMachineIsBusyInEveryNamespace(t *testing.T) {
	y := newYard(t)
	other := func(t *Target) { t.Namespace = "other"; at("10.0.0.1")(t) }
	y.converge(&common.Ledger{}, wantedOf("a", at("10.0.0.1")))
	y.converge(&common.Ledger{}, wantedOf("b", other))
	y.plan(group1)
	run := y.onlyRun()
	elsewhere := group1
	elsewhere.Namespace = "other"
	y.plan(elsewhere) // before the cache shows the run
	y.onlyRun()
	y.seen()
	y.plan(elsewhere)
	y.onlyRun()
	y.end(run, ok("a"))
	y.plan(elsewhere)
	if got := y.runs(); len(got) != 2 {
		t.Errorf("the runs are %v; want one more, for b", got)
	}
}

func TestGroupsThatWaitForAMachineAreFound(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("b", func(t *Target) { t.Namespace = "other"; at("10.0.0.1")(t) }))
	y.mu.Lock()
	defer y.mu.Unlock()
	for machine, want := range map[string]int{"10.0.0.1:22": 1, "10.0.0.2:22": 0, "": 0} {
		n := 0
		for range y.planner.waitingFor("ns", []ansibleeev1.Target{{Host: "a", Machine: machine}}) {
			n++
		}
		if n != want {
			t.Errorf("%d groups wait for machine %q; want %d", n, machine, want)
		}
	}
}

func TestTheNameOfARunDoesNotDependOnTheMachine(t *testing.T) {
	old, now := pending(nil, "a"), pending(func(o *pendingTarget) { o.machine = "10.0.0.1:22" }, "a")
	if a, b := runName(old), runName(now); a != b {
		t.Errorf("the names are %s and %s; a run of an earlier release must be found again", a, b)
	}
}
