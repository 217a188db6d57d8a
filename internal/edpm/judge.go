package edpm

import (
	"time"

	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// Phase is where a target stands.
type Phase string

// Phases of a target.
const (
	// Converged : the last run on the host succeeded for what is wanted now.
	Converged Phase = "Converged"
	// Pending : a run will be started.
	Pending Phase = "Pending"
	// Held : no run is started because of maxUnavailable or maxFailures.
	Held Phase = "Held"
	// Running : a run of the step is under way on the host.
	Running Phase = "Running"
	// Failed : the last run failed on the host; it will be tried again.
	Failed Phase = "Failed"
	// GaveUp : as Failed, but it will not be tried again.
	GaveUp Phase = "GaveUp"
	// Paused : something is to be done, but deploy is false.
	Paused Phase = "DeployDisabled"
	// Excluded : something is to be done, but the host is outside ansibleLimit.
	Excluded Phase = "OutsideLimit"
	// Limited : a run restricted by tags succeeded; the rest is still to be done.
	Limited Phase = "LimitedByTags"
)

// State is what the engine says of a target.
type State struct {
	Phase Phase
	Step  string
	// Run that is under way or that failed.
	Run string
	// Message of the host's result, or the reason why it is held.
	Message string
	// Unreachable tells that the host did not answer.
	Unreachable bool
	// Attempt that failed, from 1.
	Attempt int32
	// Retry is when a failed host is tried again.
	Retry time.Time
}

// want is what a target asks for.
type want struct{ hash, access, rerun, limited string }

// run is what matters of an OpenStackAnsibleEE for one of its targets.
type run struct {
	name, role string
	target     ansibleeev1.Target
	limited    string
	finished   bool
	end        time.Time
	result     ansibleeev1.HostStatus
	known      bool // whether there is a result
}

func (r *run) converged() bool { return r.finished && r.known && r.result.Converged() }

// limitedKey is where the ledger keeps runs that were restricted by tags.
func limitedKey(step string) string { return step + "@limited" }

// note writes the success of the newest run into the ledger. It does so
// whatever is wanted now: the ledger says what is true of the host.
func note(l *edpmv1.Ledger, step string, newest *run) {
	if newest == nil || !newest.converged() {
		return
	}
	key, hash := step, newest.target.Hash
	if newest.limited != "" {
		key, hash = limitedKey(step), hash+" "+newest.limited
	}
	if newest.target.Serial > l.Runs[key].Serial {
		l.Set(key, hash, edpmv1.RunRecord{Name: newest.name, Serial: newest.target.Serial, Rerun: newest.target.Rerun})
	}
}

// judge says where a target stands, given the ledger (after note) and the
// newest run of the step on the host.
func judge(l *edpmv1.Ledger, step string, newest *run, w want, backoff Backoff) State {
	switch {
	case newest != nil && !newest.finished:
		return State{Phase: Running, Run: newest.name}
	case clean(l, step, newest) && satisfied(l, step, w.hash, w.rerun):
		return State{Phase: Converged}
	case w.limited != "" && newest != nil && newest.converged() && asked(newest, w):
		return State{Phase: Limited, Run: newest.name}
	case newest != nil && !newest.converged() && asked(newest, w):
		return failure(newest, w, backoff)
	}
	return State{Phase: Pending}
}

// satisfied tells whether the ledger has what is wanted.
func satisfied(l *edpmv1.Ledger, step, hash, rerun string) bool {
	return l.Hash[step] == hash && (rerun == "" || l.Runs[step].Rerun == rerun)
}

// clean tells whether nothing has touched the host since what the ledger says.
func clean(l *edpmv1.Ledger, step string, newest *run) bool {
	switch {
	case newest == nil, newest.target.Serial <= l.Runs[step].Serial:
		return true
	case newest.known && newest.result.Untouched():
		return true
	}
	return newest.converged() && newest.limited != "" && newest.target.Hash == l.Hash[step]
}

// asked tells whether the run was started for what is wanted.
func asked(r *run, w want) bool {
	return r.target.Hash == w.hash && r.target.Rerun == w.rerun && r.limited == w.limited
}

func failure(r *run, w want, backoff Backoff) State {
	s := State{Phase: Failed, Run: r.name, Attempt: r.target.Attempt, Message: "the run ended without a result for this host", Retry: r.end}
	if r.known {
		s.Message, s.Unreachable = r.result.Message, r.result.Unreachable > 0
	}
	if r.target.Access == w.access {
		s.Retry = r.end.Add(backoff.After(r.target.Attempt, r.name))
	}
	return s
}

// nextSerial of a run on the host.
func nextSerial(l *edpmv1.Ledger, step string, newest *run) int64 {
	last := max(l.Runs[step].Serial, l.Runs[limitedKey(step)].Serial)
	if newest != nil {
		last = max(last, newest.target.Serial)
	}
	return last + 1
}
