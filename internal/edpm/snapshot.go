package edpm

import (
	"slices"
	"time"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// snapshot is the state of a group at which a plan is made.
type snapshot struct {
	now time.Time
	// first and last time that a target joined since none waited for others.
	first, last time.Time
	// awaited is until when hosts of the role are expected; zero if none is.
	awaited time.Time
	// debounce is how long no target may be pending before a run is started
	// that is not full; after patience it is started in any case.
	debounce, patience time.Duration
	// inFlight are the hosts of the group that are in a run.
	inFlight map[string]bool
	// retrying are those of them that have failed before.
	retrying map[string]bool
	// acknowledged are the runs that hosts have failed in, as far as their owners know.
	acknowledged map[Key]string
	// failed are hosts that have failed and are not pending yet: their owners
	// do not know of it.
	failed map[string]bool
	// members is how many hosts the role has.
	members int
	// busy are the hosts that are in a run of any step, machines those that hosts of
	// any namespace and name are that are in one.
	busy, machines map[string]bool
	// unstarted are the hosts that are not busy, but for a check that gives way to a run.
	unstarted unstartedChecks
	// named are the hosts that messages name by now, by limit.
	named map[string]naming
}

// start notes that a host of the group is in a run.
func (m *snapshot) start(t ansibleeev1.Target) {
	m.inFlight[t.Host] = true
	if t.Attempt > 1 {
		m.retrying[t.Host] = true
	}
}

// addGroup notes which hosts are in runs of the group.
func (m *snapshot) addGroup(runs []ansibleeev1.OpenStackAnsibleEE) {
	for i := range runs {
		for _, host := range indexBusy(&runs[i]) {
			t, _ := runs[i].Target(host)
			m.start(t)
			for _, step := range t.Steps {
				m.start(ansibleeev1.Target{Host: host, Attempt: step.Attempt})
			}
		}
	}
}

// addActive notes for a group which hosts and machines are in runs, of whatever group.
func (m *snapshot) addActive(runs []ansibleeev1.OpenStackAnsibleEE, g Group) {
	for i := range runs {
		if !g.Check && isUnstartedCheck(&runs[i]) {
			m.unstarted.add(&runs[i], g.Namespace)
			continue
		}
		for _, machine := range runs[i].Machines() {
			m.machines[machine] = true
		}
		if runs[i].Namespace != g.Namespace {
			continue
		}
		for _, t := range runs[i].Spec.Targets {
			m.busy[t.Host] = true
		}
	}
}

// isBusy reports whether a host is in a run of any step, by itself or as the machine of
// another name.
func (m snapshot) isBusy(o *pendingTarget) bool {
	return m.busy[o.Host] || o.machine != "" && m.machines[o.machine]
}

// isUnreported reports whether the failure of a host in its last run is one that its owner
// does not know of.
func (m snapshot) isUnreported(key Key, r *run, pending []*pendingTarget) bool {
	if m.acknowledged[key] == r.name || r.converged() || !r.finished || m.inFlight[key.Host] {
		return false
	}
	return !slices.ContainsFunc(pending, func(o *pendingTarget) bool { return o.Host == key.Host })
}
