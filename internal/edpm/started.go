package edpm

import (
	"time"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// staleAfter is how long a created run may be missing from the cache before the API
// server is asked whether it still exists.
const staleAfter = 30 * time.Second

// startedRuns are the runs that were created and that the cache has not shown yet: what
// is expected of it. There is one for each step and host of a run.
type startedRuns map[Key]startedRun

type startedRun struct {
	run
	group Group
	owner ownerID
	at    time.Time
}

// add expects the run of a batch.
func (s startedRuns) add(name string, batch []*pendingTarget, now time.Time) {
	for _, o := range batch {
		steps, targets := o.steps()
		for i, step := range steps {
			r := run{name: name, target: o.target(), limited: o.Strategy.limited()}
			r.target.Hash, r.target.Serial, r.target.Attempt, r.target.Steps = targets[i].Hash, targets[i].Serial, targets[i].Attempt, nil
			s[o.key(step)] = startedRun{run: r, group: o.Group(), owner: o.owner(), at: now}
		}
	}
}

// remove expects the run of a batch no more: it was not created.
func (s startedRuns) remove(batch []*pendingTarget) {
	for _, o := range batch {
		steps, _ := o.steps()
		for _, step := range steps {
			delete(s, o.key(step))
		}
	}
}

// ofGroup reports whether runs of a group are expected, and returns those that were
// created too long ago.
func (s startedRuns) ofGroup(g Group, now time.Time) (any bool, overdue map[Key]startedRun) {
	overdue = map[Key]startedRun{}
	for key, r := range s {
		if r.group != g {
			continue
		}
		any = true
		if now.Sub(r.at) > staleAfter {
			overdue[key] = r
		}
	}
	return any, overdue
}

// addTo adds the hosts of the runs to a snapshot of a group, and the machines that
// they are.
func (s startedRuns) addTo(m *snapshot, g Group) {
	for key, r := range s {
		m.machines[r.target.Machine] = true
		if key.Namespace != g.Namespace {
			continue
		}
		m.busy[key.Host] = true
		if r.group == g {
			m.start(r.target)
		}
	}
}

// isOf reports whether a pending target is what became the run: when the answer to its
// creation was lost, it still waits.
func (r *startedRun) isOf(key Key, o *pendingTarget) bool {
	if !o.has(key.Step) || o.check != key.Check || o.OwnerUID != r.target.OwnerUID {
		return false
	}
	steps, targets := o.steps()
	for i, step := range steps {
		if step.Name == key.Step && targets[i].Serial == r.target.Serial {
			return true
		}
	}
	return false
}

// shownBy returns the steps and hosts of a run for which it was expected.
func (s startedRuns) shownBy(run *ansibleeev1.OpenStackAnsibleEE) []Key {
	var keys []Key
	for _, t := range run.Spec.Targets {
		for _, key := range keysOf(run, t.Host) {
			if r, ok := s[key]; ok && r.name == run.Name {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
