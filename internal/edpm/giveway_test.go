package edpm

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

var checks1 = Group{Namespace: group1.Namespace, Kind: kind, Role: group1.Role, Check: true}

// stuckCheck is a yard with a check of a and b that has a Job, whose Pod has not started.
func stuckCheck(t *testing.T) (*checkYard, map[string]*common.Ledger, *ansibleeev1.OpenStackAnsibleEE) {
	t.Helper()
	y, ledgers := newCheckYard(t, common.RepairNever), map[string]*common.Ledger{}
	y.toTurn()
	for _, host := range []string{"a", "b"} {
		w := y.wantedOn(host, nil)
		ledgers[host] = &common.Ledger{}
		ledgers[host].Set("nova", w.Hash(), common.RunRecord{Name: "nova-run", Serial: 1})
		y.converge(ledgers[host], w)
	}
	y.pass(time.Second)
	y.plan(checks1)
	check := y.onlyRun()
	check.CreationTimestamp = metav1.NewTime(y.clock.Now())
	if err := y.api.Update(ctx, check); err != nil {
		t.Fatal(err)
	}
	y.hasJob(check, ansibleeev1.JobPending)
	y.seen()
	return y, ledgers, check
}

func (y *checkYard) wantedOn(host string, change func(*Target)) Target {
	w := wantedOf(host, change)
	w.Strategy.Checks = y.checks
	return w
}

// hostsOf returns the hosts of the runs that have not ended, of a kind of owner.
func (y *checkYard) hostsOf(ownerKind string, check bool) []string {
	y.t.Helper()
	var hosts []string
	for _, run := range y.all() {
		if run.Spec.OwnerKind == ownerKind && run.Spec.Check == check && !run.Finished() {
			for _, target := range run.Spec.Targets {
				hosts = append(hosts, target.Host)
			}
		}
	}
	return hosts
}

func TestACheckOfSeveralHostsGivesWayToARunOfOne(t *testing.T) {
	y, ledgers, check := stuckCheck(t)
	change := func(t *Target) { t.Vars["another"] = true }
	y.converge(ledgers["a"], y.wantedOn("a", change))
	y.converge(ledgers["b"], y.wantedOn("b", nil))
	y.plan(checks1)
	if y.takenBack() {
		t.Fatal("the check is taken back although its Pod may be about to start")
	}
	y.pass(startup)
	y.plan(checks1)
	if !y.takenBack() {
		t.Fatal("the check is not taken back, and holds the run back")
	}
	y.neverRan(check)
	y.converge(ledgers["a"], y.wantedOn("a", change))
	y.converge(ledgers["b"], y.wantedOn("b", nil))
	y.plan(group1)
	y.planNow(checks1) // drops the finalizer
	y.plan(checks1)
	if got := y.hostsOf(kind, false); !slices.Equal(got, []string{"a"}) {
		t.Errorf("there are runs of %v; want one of a", got)
	}
	if got := y.hostsOf(kind, true); !slices.Equal(got, []string{"b"}) {
		t.Errorf("there are checks of %v; want one of b: its turn is still to come", got)
	}
	if d := ledgers["b"].DriftOf("nova"); !d.Checked.IsZero() {
		t.Errorf("b is recorded as checked: %+v", d)
	}
}

func TestACheckGivesWayToARunOfAnotherOwner(t *testing.T) {
	y, ledgers, check := stuckCheck(t)
	others := Group{Namespace: group1.Namespace, Kind: "Other", Role: group1.Role}
	other := wantedOf("a", func(t *Target) { t.OwnerKind = others.Kind })
	y.converge(&common.Ledger{}, other)
	y.plan(others)
	if got := y.hostsOf(others.Kind, false); len(got) > 0 {
		t.Fatalf("a run of %v is started next to a check", got)
	}
	y.pass(startup)
	for host, ledger := range ledgers { // the owners of the check have nothing against it
		y.converge(ledger, y.wantedOn(host, nil))
	}
	y.plan(checks1)
	if !y.takenBack() {
		t.Fatal("the check is not taken back, and holds the run of the other owner back")
	}
	y.plan(others)
	y.neverRan(check)
	y.plan(checks1)
	for host, ledger := range ledgers {
		y.converge(ledger, y.wantedOn(host, nil))
	}
	y.plan(checks1)
	if got := y.hostsOf(kind, true); !slices.Equal(got, []string{"b"}) {
		t.Errorf("there are checks of %v; want b: that of a comes after the run", got)
	}
	y.plan(others)
	if got := y.hostsOf(others.Kind, false); !slices.Equal(got, []string{"a"}) {
		t.Errorf("there are runs of %v; want one of a", got)
	}
}

func TestACheckDoesNotGiveWayToARunThatIsNoLongerWanted(t *testing.T) {
	y, _, _ := stuckCheck(t)
	others := Group{Namespace: group1.Namespace, Kind: "Other", Role: group1.Role}
	y.converge(&common.Ledger{}, wantedOf("a", func(t *Target) { t.OwnerKind = others.Kind }))
	y.plan(others)
	y.Withdraw(others.Kind, "ns", "a")
	y.pass(startup)
	y.plan(checks1)
	if y.takenBack() {
		t.Error("the check is taken back for a run that no one wants")
	}
}

func TestWhichHostsAreOnlyKeptByACheck(t *testing.T) {
	check := &ansibleeev1.OpenStackAnsibleEE{}
	check.Namespace, check.Spec.OwnerKind, check.Spec.Check = "ns", kind, true
	check.Spec.Targets = []ansibleeev1.Target{{Host: "h000"}, {Host: "h001"}, {Host: "known by another name", Machine: "[::1]:22"}}
	m := later()
	m.addActive([]ansibleeev1.OpenStackAnsibleEE{*check}, Group{Namespace: "ns"})
	all := pending(canary, numbered(3)...)
	all[2].machine, all[2].Strategy = "[::1]:22", Strategy{Deploy: true}
	p := makePlan(all, m)
	if len(p.batches) > 0 {
		t.Errorf("started %v next to a check", p.batches)
	}
	if _, held := p.held["h001"]; !held || len(p.displaced) != 2 || p.displaced["h000"] != groupOf(check) || p.displaced["h002"] != groupOf(check) {
		t.Errorf("the check gives way to %v, and %v are held; want h000 and h002, and h001 by maxUnavailable", p.displaced, p.held)
	}
}
