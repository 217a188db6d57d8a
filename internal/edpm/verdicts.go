package edpm

import (
	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// verdicts is what owners have said of runs. That they have recorded what the runs
// did is in their ledgers.
type verdicts struct {
	// failed is the newest run that each owner knows of, of those that failed on its host.
	failed map[Key]string
	// unwanted are runs that have not started and that the owner does not want.
	unwanted map[Key]string
}

func newVerdicts() verdicts { return verdicts{failed: map[Key]string{}, unwanted: map[Key]string{}} }

// acknowledge notes that an owner knows how its last run has ended, and reports whether
// it is news that it failed.
func (v *verdicts) acknowledge(key Key, last *run) bool {
	if last == nil || !last.finished || last.converged() {
		delete(v.failed, key)
		return false
	}
	news := v.failed[key] != last.name
	v.failed[key] = last.name
	return news
}

// refuse notes whether the owner of a target does not want a run, and reports whether
// it is news that it does not.
func (v *verdicts) refuse(key Key, run *ansibleeev1.OpenStackAnsibleEE, refused bool) bool {
	was := v.unwanted[key] == run.Name
	switch {
	case refused && isUnstarted(run):
		v.unwanted[key] = run.Name
		return !was
	case was:
		delete(v.unwanted, key)
	}
	return false
}

// refuses reports whether the owner of a host of a run does not want it.
func (v *verdicts) refuses(run *ansibleeev1.OpenStackAnsibleEE, host string) bool {
	for _, key := range keysOf(run, host) {
		if v.unwanted[key] == run.Name {
			return true
		}
	}
	return false
}

// forget what the owner of a step said of runs that have failed.
func (v *verdicts) forget(key Key) { delete(v.failed, key) }
