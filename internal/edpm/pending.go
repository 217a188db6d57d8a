package edpm

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// pendingTarget is a host that waits for a run: of a step, and of those that follow it.
type pendingTarget struct {
	// Target of the first step. It has the variables of all.
	Target
	hash, access, podKey string
	// machine that the host is, as Machine returns it.
	machine   string
	serial    int64
	attempt   int32
	notBefore time.Time
	suspicion
	// then are the steps that follow in the same run.
	then []nextStep
	// denied is why the API server did not take its run the last time.
	denied string
	// interrupts reports whether its run can restart a service that is in use, busy what that
	// would interrupt, and busyUntil when that is looked at again.
	interrupts bool
	busy       string
	busyUntil  time.Time
}

// nextStep is a step of a pending target after the first one.
type nextStep struct {
	Step
	hash    string
	serial  int64
	attempt int32
	files   map[string][]byte
}

// newPendingTarget returns the pending target of a host for the steps that are due: the first of
// them, and as many of the others as can be done in the same run.
func newPendingTarget(hostKey string, due []*assessment, now time.Time) *pendingTarget {
	first := due[0]
	o := &pendingTarget{
		Target: *first.Target, hash: first.hash, access: first.access, podKey: first.podKey(),
		machine: Machine(first.Namespace, first.Vars, first.Host, first.JumpHost), serial: first.serial, suspicion: first.suspicion,
		attempt: first.nextAttempt(), notBefore: first.notBefore(),
	}
	o.limit(first)
	for _, next := range due[1:] {
		if first.apart() || !o.takes(next, now) {
			break
		}
		o.add(next)
	}
	o.HostKey = hostKey
	return o
}

// nextAttempt counts the attempts of the next run, from 1.
func (a *assessment) nextAttempt() int32 {
	if a.state.hasFailed() {
		return a.state.Attempt + 1
	}
	return 1
}

// notBefore is when the next run may be started at the earliest.
func (a *assessment) notBefore() time.Time {
	if a.state.hasFailed() {
		return a.state.Retry
	}
	return time.Time{}
}

// apart reports whether the step has a run of its own, because its last one ended
// without a result: so the step is found that is the cause.
func (a *assessment) apart() bool { return a.last != nil && a.last.finished && !a.last.known }

// takes reports whether another step can follow in the same run: it may be run as
// soon as the others, in the same Pod, and with the same variables.
func (o *pendingTarget) takes(next *assessment, now time.Time) bool {
	if next.state.Phase != Pending && !next.state.hasFailed() || next.apart() || len(o.then)+1 == ansibleeev1.MaxSteps {
		return false
	}
	if restricted, err := restriction(next.Target, &next.state); err != nil || restricted != "" || next.Rerun != o.Rerun {
		return false
	}
	if at := next.notBefore(); at.After(now) && at.After(o.notBefore) {
		return false
	}
	return o.importable() && next.importable() && o.sharesPod(next.Target) && o.fitsWith(next.Target)
}

// importable reports whether the playbook of the step can be part of another one.
func (t *Target) importable() bool {
	return t.Step.Playbook != "" && t.Step.PlaybookContents == "" && !strings.Contains(t.Step.Playbook, "{{")
}

// sharesPod reports whether the run of another target of the host would have the same Pod but
// for the playbook.
func (t *Target) sharesPod(other *Target) bool {
	same := *other
	same.Step.Playbook = t.Step.Playbook
	return same.podKey() == t.podKey() && same.Access() == t.Access()
}

// fitsWith reports whether one inventory can hold the variables of another target, too, and the
// inputs of a run both.
func (o *pendingTarget) fitsWith(next *Target) bool {
	for name, value := range next.Vars {
		if own, has := o.Vars[name]; has && !equality.Semantic.DeepEqual(own, value) {
			return false
		}
	}
	both := Target{Vars: union(o.Vars, next.Vars), Files: map[string][]byte{}}
	for _, files := range append(o.files(), next.Files) {
		for _, content := range files {
			both.Files[contentKey(content)] = content
		}
	}
	return both.tooLarge() == ""
}

// files of each step.
func (o *pendingTarget) files() []map[string][]byte {
	files := []map[string][]byte{o.Files}
	for _, s := range o.then {
		files = append(files, s.files)
	}
	return files
}

// limit has few hosts do a step at a time that interrupts what they do already.
func (o *pendingTarget) limit(a *assessment) {
	if a.Step.Interrupts && a.ran {
		o.Strategy, o.interrupts = o.Strategy.interrupting(), true
	}
}

// add lets a step follow.
func (o *pendingTarget) add(next *assessment) {
	o.limit(next)
	o.then = append(o.then, nextStep{next.Step, next.hash, next.serial, next.nextAttempt(), next.Files})
	o.Vars, o.Hints = union(o.Vars, next.Vars), union(o.Hints, next.Hints)
	o.podKey = digest([]string{o.podKey, next.podKey()})
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

// steps of the pending target with what each brings the host to.
func (o *pendingTarget) steps() ([]Step, []ansibleeev1.TargetStep) {
	steps, targets := []Step{o.Step}, []ansibleeev1.TargetStep{{Hash: o.hash, Serial: o.serial, Attempt: o.attempt}}
	for _, s := range o.then {
		steps, targets = append(steps, s.Step), append(targets, ansibleeev1.TargetStep{Hash: s.hash, Serial: s.serial, Attempt: s.attempt})
	}
	return steps, targets
}

// key of a step of the pending target.
func (o *pendingTarget) key(step Step) Key {
	return Key{o.Namespace, o.OwnerKind, step.Name, o.Host, o.check}
}

// has reports whether the pending target is for the step, among others. None has no step.
func (o *pendingTarget) has(step string) bool {
	return o != nil && (o.Step.Name == step || slices.ContainsFunc(o.then, func(s nextStep) bool { return s.Name == step }))
}

// retry reports whether the host has failed before in one of the steps for the same hash.
func (o *pendingTarget) retry() bool {
	return o.attempt > 1 || slices.ContainsFunc(o.then, func(s nextStep) bool { return s.attempt > 1 })
}

// joinsAnew reports whether it is another thing to do than the old pending target, so that others
// may still join it.
func (o *pendingTarget) joinsAnew(old *pendingTarget) bool {
	return !o.does(old, func(s ansibleeev1.TargetStep) any { return [2]any{s.Hash, s.Attempt} }) || old.Rerun != o.Rerun
}

// runsAs reports whether it would make the same run as the old pending target.
func (o *pendingTarget) runsAs(old *pendingTarget) bool {
	return o.does(old, func(s ansibleeev1.TargetStep) any { return s.Hash }) && old.podKey == o.podKey && old.access == o.access
}

// does reports whether both pending targets have the same steps, and the same of what each is brought to.
func (o *pendingTarget) does(old *pendingTarget, what func(ansibleeev1.TargetStep) any) bool {
	steps, targets := o.steps()
	oldSteps, oldTargets := old.steps()
	return slices.EqualFunc(steps, oldSteps, func(a, b Step) bool { return a.Name == b.Name }) &&
		slices.EqualFunc(targets, oldTargets, func(a, b ansibleeev1.TargetStep) bool { return what(a) == what(b) })
}

// target of the run that the pending target becomes.
func (o *pendingTarget) target() ansibleeev1.Target {
	t := ansibleeev1.Target{Host: o.Host, Owner: o.Owner, OwnerUID: o.OwnerUID, Access: o.access, Rerun: o.Rerun, Tokens: o.Tokens, Machine: o.machine}
	_, steps := o.steps()
	if o.check { // it brings the host to nothing
		for i := range steps {
			steps[i].Hash = ""
		}
	}
	if len(steps) == 1 {
		t.Hash, t.Serial, t.Attempt = steps[0].Hash, steps[0].Serial, steps[0].Attempt
		return t
	}
	t.Steps = steps
	return t
}
