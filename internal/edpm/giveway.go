package edpm

import (
	"maps"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// unstartedChecks are the hosts and machines that are in a check that has not started, each with
// the group of the check. Runs that are due do not wait for such a check: it gives way.
type unstartedChecks struct{ hosts, machines map[string]Group }

// isUnstartedCheck reports whether a run is a check whose Pod has not begun to run. One that is
// being deleted is, too: until that has ended its host waits for it.
func isUnstartedCheck(run *ansibleeev1.OpenStackAnsibleEE) bool {
	return run.Spec.Check && isPending(run)
}

// add notes the hosts of a check, as far as they are in the namespace, and its machines.
func (u *unstartedChecks) add(run *ansibleeev1.OpenStackAnsibleEE, namespace string) {
	if u.hosts == nil {
		u.hosts, u.machines = map[string]Group{}, map[string]Group{}
	}
	for _, t := range run.Spec.Targets {
		if run.Namespace == namespace {
			u.hosts[t.Host] = groupOf(run)
		}
		if t.Machine != "" {
			u.machines[t.Machine] = groupOf(run)
		}
	}
}

// of returns the group of the check in which the host of a pending target is, if there is one.
func (u unstartedChecks) of(o *pendingTarget) (Group, bool) {
	if g, found := u.hosts[o.Host]; found {
		return g, true
	}
	g, found := u.machines[o.machine]
	return g, found && o.machine != ""
}

// displace leaves out hosts that only wait for a check to give way, and notes which one.
func (p *plan) displace(due []*pendingTarget, m snapshot) []*pendingTarget {
	var free []*pendingTarget
	for _, o := range due {
		if check, found := m.unstarted.of(o); found {
			p.displaced[o.Host] = check
		} else {
			free = append(free, o)
		}
	}
	return free
}

// recordDisplaced notes which checks give way to the hosts of a group. Their groups are planned
// again, and so are hosts that wait for a check where others no longer wait for their run.
func (p *planner) recordDisplaced(g Group, displaced map[string]Group) {
	grp := p.groups[g]
	if grp == nil {
		return
	}
	for _, check := range displaced {
		p.enqueue(check, 0)
	}
	if !maps.Equal(grp.displaced, displaced) {
		p.wakeChecks()
	}
	grp.displaced = displaced
}

// wakeChecks plans the checks again that wait.
func (p *planner) wakeChecks() {
	for g := range p.groups {
		if g.Check {
			p.enqueue(g, p.opts.Debounce)
		}
	}
}

// displacing calls a function with each pending target that a check gives way to.
func (p *planner) displacing(found func(*pendingTarget)) {
	for _, grp := range p.groups {
		for host := range grp.displaced {
			if o := grp.pending[host]; o != nil {
				found(o)
			}
		}
	}
}

// addDisplacing has no check started on hosts that others give way to.
func (p *planner) addDisplacing(m *snapshot, g Group) {
	if !g.Check {
		return
	}
	p.displacing(func(o *pendingTarget) {
		if o.Namespace == g.Namespace {
			m.busy[o.Host] = true
		}
		m.machines[o.machine] = o.machine != ""
	})
}

// displaces reports whether a check gives way to a run that a host of it waits for.
func (p *planner) displaces(run *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) bool {
	if !run.Spec.Check {
		return false
	}
	waits := false
	p.displacing(func(o *pendingTarget) {
		waits = waits || o.Namespace == run.Namespace && o.Host == t.Host || o.machine != "" && o.machine == t.Machine
	})
	return waits
}
