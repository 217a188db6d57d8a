package edpm

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// Phase is where a target stands.
type Phase string

// Phases of a target.
const (
	// Converged : the last run on the host succeeded for what is wanted now.
	Converged Phase = "Converged"
	// Pending : a run starts as soon as its batch is complete. Remedy: nothing: it continues
	// automatically.
	Pending Phase = "Pending"
	// RolloutHeld : not started because of `maxUnavailable`, `maxFailures` or
	// `--max-concurrent-runs`, or because the API server rejects the run; the message says
	// which, and names up to three failed hosts. Remedy: fix the failed hosts, raise the
	// limit, or fix the error of the API server; it is retried automatically.
	RolloutHeld Phase = "RolloutHeld"
	// HostBusy : the host does something for nova that restarting nova-compute or libvirt would
	// interrupt: a migration, or a server that is being built, resized, snapshotted or changed
	// otherwise; the message names the first. Other hosts do not wait for it. Remedy: nothing:
	// it continues automatically when that has ended. If it never ends, abort it in nova, or set
	// annotation `edpm.openstack.org/ignore-busy: "true"` on the service.
	HostBusy Phase = "HostBusy"
	// HostNotEmpty : the step needs a host without guests, for example for a reboot, or to replace
	// libvirtd by virtqemud, and the host has some; the message has their number and what is
	// awaited. The guests are as before. Remedy: nothing while the host is being drained; else run
	// `kubectl edpm drain <node>`, or allow it by
	// [deployStrategy.drain](how-to/drain.md#steps-that-need-an-empty-host). The step is run when
	// the host is empty.
	HostNotEmpty Phase = "HostNotEmpty"
	// Running : a run is in progress; the message names it. Remedy: nothing: it continues
	// automatically. `kubectl edpm logs <node> -f` follows its output.
	Running Phase = "Running"
	// Failed : the last run failed on this host; the message has the failed task, the number
	// of the attempt, and the time of the next one. Remedy: fix the cause, which `kubectl edpm
	// logs <node>` shows; the step is retried automatically, and immediately when the inputs
	// or the access to the host change.
	Failed Phase = "Failed"
	// RetriesExhausted : as `Failed`, but retries are exhausted (removal only). Remedy: see
	// [scale in](how-to/scale-in.md#a-host-that-cannot-be-cleaned-up).
	RetriesExhausted Phase = "RetriesExhausted"
	// Refused : the last run failed on this host, and would fail each time with the same inputs, for
	// example because the image refuses the configuration, or another tool runs the service;
	// what was on the host is unchanged. Remedy: correct what the message names, see [hosts of
	// other tools](how-to/hosts-of-other-tools.md); the step is run again when its inputs or its
	// access to the host change, or after `kubectl edpm rerun <node>`.
	Refused Phase = "Refused"
	// Paused : there is something to run, and `deploy` is false. Remedy: set `deploy: true`.
	Paused Phase = "DeployDisabled"
	// Excluded : there is something to run, and `ansibleLimit` does not match the host.
	// Remedy: change or remove the limit.
	Excluded Phase = "OutsideLimit"
	// TooLarge : the files, variables or `env` of the host are too large for a run; the
	// message names the largest. Remedy: shorten it.
	TooLarge Phase = "InputsTooLarge"
	// Limited : a run restricted by tags succeeded; the other tasks are still to be run.
	// Remedy: remove `ansibleTags` and `ansibleSkipTags`.
	Limited Phase = "LimitedByTags"
)

// State is what the engine says of a target.
type State struct {
	Phase Phase
	Step  string
	// Run that is under way, that failed, or that brought the host here as long as it exists.
	Run string
	// Message of the host's result, or the reason why it is held. Of a host that is well it
	// is what modules noted.
	Message string
	// More are the steps after Step that are Limited, too, or Running in the same run.
	More []string
	// Due are all steps that are to be run or are running.
	Due []string
	// Unreachable reports whether the host did not answer.
	Unreachable bool
	// Attempt that failed, from 1.
	Attempt int32
	// Repeated reports whether the attempt before failed in the same way.
	Repeated bool
	// Retry is when a failed host is tried again.
	Retry time.Time
	// Emptied reports whether a host that was HostNotEmpty has become empty since.
	Emptied bool

	fixed   bool // whether the host is reached in another way than when it failed
	refused bool // whether it fails in this way each time with the same inputs
	pending bool // whether it waits for a run
}

// want is what a target asks for.
type want struct {
	hash, access, rerun, limited string
	// tokens of all sources; rerun is the one in force.
	tokens map[string]string
	// emptySince is since when the host has no guests; zero if it has.
	emptySince time.Time
}

// want of a target.
func (t *Target) want() want {
	return want{hash: t.Hash(), access: t.Access(), rerun: t.Rerun, limited: t.Strategy.limited(), tokens: t.Tokens, emptySince: t.EmptySince}
}

// run is what matters of an OpenStackAnsibleEE for one step of one of its targets.
type run struct {
	name, step string
	// target of the step.
	target   ansibleeev1.Target
	limited  string
	finished bool
	end      time.Time
	result   ansibleeev1.HostStatus
	known    bool // whether there is a result
	twin     bool // whether another run on the host has the same serial number
	// lost is the number of hosts of the run, this one among them, whose outcome is unknown.
	lost int
	// void is whether the run ended without ever having started, or without having
	// got to the step on the host.
	void bool
	// problem is what the run itself complains of.
	problem string
	object  *ansibleeev1.OpenStackAnsibleEE
}

func (r *run) converged() bool { return r.finished && r.known && r.result.Converged() }

// limitedKey is where the ledger keeps runs that were restricted by tags.
func limitedKey(step string) string { return step + "@limited" }

// touchedKey is where the ledger keeps the last run that may have changed the
// host and did not bring it to a hash: it failed, its outcome is unknown, or it
// was restricted by tags. What the ledger says of the step is true of the host
// as long as no such run came later.
func touchedKey(step string) string { return step + "@touched" }

// recordRuns writes what the runs, the oldest first, did to the host into the ledger.
// It does so whatever is wanted now: the ledger says what is true of the host,
// also once the runs are gone.
func recordRuns(l *common.Ledger, step string, runs []*run) {
	for _, r := range runs {
		if l.HostKey == "" {
			l.HostKey = r.result.HostKey
		}
		if !r.finished || isRecorded(l, step, r) {
			continue
		}
		record := r.record(lastSerial(l, step) + 1)
		switch {
		case !r.converged():
			recordTouch(l, step, record)
		case r.limited == "":
			recordSuccess(l, step, r.target.Hash, record)
		default:
			if l.Hash[step] != r.target.Hash {
				recordTouch(l, step, record)
			}
			recordSuccess(l, limitedKey(step), r.target.Hash+" "+r.limited, record)
		}
	}
}

// record of the run, with a serial number that is not below the given one.
func (r *run) record(next int64) common.RunRecord {
	record := common.RunRecord{Name: r.name, Serial: max(r.target.Serial, next), Rerun: r.target.Rerun, Tokens: r.target.Tokens}
	if !r.end.IsZero() {
		record.End = &metav1.Time{Time: r.end}
	}
	return record
}

// recordSuccess records a successful run, and keeps the tokens that earlier ones honoured.
func recordSuccess(l *common.Ledger, key, hash string, record common.RunRecord) {
	record.Tokens = merged(l.Runs[key].Tokens, record.Tokens)
	l.Set(key, hash, record)
}

func recordTouch(l *common.Ledger, step string, record common.RunRecord) {
	if l.Runs == nil {
		l.Runs = map[string]common.RunRecord{}
	}
	l.Runs[touchedKey(step)] = record
}

// records of the step in the ledger.
func records(l *common.Ledger, step string) [3]common.RunRecord {
	return [3]common.RunRecord{l.Runs[step], l.Runs[limitedKey(step)], l.Runs[touchedKey(step)]}
}

// lastSerial of the runs of the step on the host that the ledger knows of.
func lastSerial(l *common.Ledger, step string) int64 {
	last := int64(0)
	for _, record := range records(l, step) {
		last = max(last, record.Serial)
	}
	return last
}

// isRecorded reports whether the ledger has the finished run, or need not have it.
func isRecorded(l *common.Ledger, step string, r *run) bool {
	if r.result.HostKey != "" && l.HostKey == "" {
		return false
	}
	return r.void || r.known && r.result.Untouched() || r.target.Serial <= lastSerial(l, step) && !r.isNews(l, step)
}

// isNews reports whether a run whose serial number is not a new one came after all
// that the ledger has. It has the number of another run, or was created after the
// last one had ended: two leaders whose terms overlapped gave out the numbers,
// neither of them knowing of the other's runs. The runs themselves did not
// overlap, so that their ends are in order.
func (r *run) isNews(l *common.Ledger, step string) bool {
	twin, last := r.twin, time.Time{}
	for _, record := range records(l, step) {
		if record.Name == r.name && (record.End == nil || !r.end.After(record.End.Time)) {
			return false
		}
		twin = twin || record.Name != "" && record.Serial == r.target.Serial
		if record.End != nil && record.End.After(last) {
			last = record.End.Time
		}
	}
	late := r.object != nil && !last.IsZero() && r.object.CreationTimestamp.After(last)
	// Within one second the worse outcome is believed.
	return (twin || late) && (r.end.After(last) || r.end.Equal(last) && !r.converged())
}

// inOrder sorts runs by when they were on the host, the oldest first: by serial
// number, and where two have the same by their end.
func inOrder(runs []*run) {
	slices.SortStableFunc(runs, func(a, b *run) int { return cmp.Compare(a.target.Serial, b.target.Serial) })
	twins := false
	for i := 1; i < len(runs); i++ {
		if runs[i-1].target.Serial == runs[i].target.Serial {
			runs[i-1].twin, runs[i].twin, twins = true, true, true
		}
	}
	if twins {
		slices.SortStableFunc(runs, func(a, b *run) int {
			if a.finished != b.finished {
				return map[bool]int{true: -1, false: 1}[a.finished]
			}
			return a.end.Compare(b.end)
		})
	}
}

// judge says where a target stands, given the ledger (after recordRuns) and the runs
// of the step on the host, the oldest first.
func judge(l *common.Ledger, step string, runs []*run, w want, backoff Backoff) State {
	for _, r := range runs {
		if !r.finished {
			return State{Phase: Running, Run: r.name, Message: r.problem}
		}
	}
	last := newest(runs)
	switch {
	case isUntouched(l, step) && isSatisfied(l, step, w.hash, w.rerun):
		return converged(last)
	case w.limited != "" && isPartlyDone(l, step, w):
		return State{Phase: Limited, Run: l.Runs[limitedKey(step)].Name}
	case last != nil && !last.converged() && isAskedFor(last, w):
		s := failure(last, w, backoff)
		s.Repeated = isRepeated(runs, s)
		return s
	}
	return State{Phase: Pending}
}

// converged is the state of a host that is as it is wanted, since the run if that exists.
func converged(last *run) State {
	s := State{Phase: Converged}
	if last != nil && last.converged() {
		s.Run, s.Message = last.name, last.result.Message
	}
	return s
}

// effective are the runs that may have touched the host.
func effective(runs []*run) []*run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return r.void })
}

// newest of the runs, or nil.
func newest(runs []*run) *run {
	if len(runs) == 0 {
		return nil
	}
	return runs[len(runs)-1]
}

// isSatisfied reports whether the ledger has what is wanted under the key.
func isSatisfied(l *common.Ledger, key, hash, rerun string) bool {
	return l.Hash[key] == hash && honoured(l.Runs[key].Rerun, l.Runs[key].Tokens, rerun)
}

// isUntouched reports whether nothing has touched the host since what the ledger says.
func isUntouched(l *common.Ledger, step string) bool {
	return l.Runs[touchedKey(step)].Serial <= l.Runs[step].Serial
}

// isPartlyDone reports whether the part that the tags select has run, and nothing else since.
func isPartlyDone(l *common.Ledger, step string, w want) bool {
	serial := l.Runs[limitedKey(step)].Serial
	return isSatisfied(l, limitedKey(step), w.hash+" "+w.limited, w.rerun) &&
		serial >= l.Runs[touchedKey(step)].Serial && serial > l.Runs[step].Serial
}

// isAskedFor reports whether the run was started for what is wanted. A rerun token
// that was taken back asks for nothing.
func isAskedFor(r *run, w want) bool {
	return r.target.Hash == w.hash && honoured(r.target.Rerun, r.target.Tokens, w.rerun) && r.limited == w.limited
}

func failure(r *run, w want, backoff Backoff) State {
	s := State{Phase: Failed, Run: r.name, Attempt: r.target.Attempt, Message: "the run ended without a result for this host", Retry: r.end}
	if r.problem != "" {
		s.Message += ": " + r.problem
	}
	if r.known {
		s.Message, s.Unreachable, s.refused = r.result.Message, r.result.Unreachable > 0, r.result.Refused
	}
	if r.known && r.result.HostNotEmpty {
		s.Phase, s.Emptied = HostNotEmpty, w.emptySince.After(r.end)
	}
	if s.fixed = r.target.Access != w.access; !s.fixed && !s.Emptied {
		s.Retry = r.end.Add(backoff.After(r.target.Attempt, r.name))
	}
	return s
}

// hasFailed reports whether the last run did not do the step, which is tried again.
func (s State) hasFailed() bool { return s.Phase == Failed || s.Phase == HostNotEmpty }

// isRepeated reports whether the attempt before the last failed as this one did: the
// host answered both times, or neither time. Of an attempt whose run is gone
// already the same is believed.
func isRepeated(runs []*run, s State) bool {
	if s.Attempt <= 1 || len(runs) < 2 || runs[len(runs)-2].target.Attempt != s.Attempt-1 {
		return s.Attempt > 1
	}
	return (runs[len(runs)-2].result.Unreachable > 0) == s.Unreachable
}

// nextSerial of a run on the host.
func nextSerial(l *common.Ledger, step string, runs []*run) int64 {
	n := lastSerial(l, step)
	if last := newest(runs); last != nil {
		n = max(n, last.target.Serial)
	}
	return n + 1
}
