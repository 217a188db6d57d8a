package edpm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/hostlock"
)

// world is everything around the engine: people, the API server, managers that
// come and go, the controller of runs, and hosts.
type world struct {
	t     *rapid.T
	clock *clocktesting.FakePassiveClock
	api   *modelStore
	// operators are the kinds that one manager looks after.
	operators [][]string
	// leaders by operator; those before them may still be at work.
	leaders []*manager
	before  []*manager
	late    []lateWrite
	// strays are runs of old leaders: they may repeat what is done already.
	strays map[stepID]bool
	// strayed is how far the log of runs was when an old leader wrote last.
	strayed int
	runner  *modelRunner
	hosts   map[stepID]*hostState
	steps   int
	tokens  int
	nested  bool
	// calm reports whether nothing changes any more.
	calm     bool
	stubborn map[string]bool
	// obstinacy is how a stubborn host fails.
	obstinacy map[string]outcome
	// refusals are the last runs of steps that hosts refused.
	refusals map[stepID]refusal
	// found are the checks that found differences.
	found map[stepID]map[string]bool
}

type lateWrite struct {
	what string
	do   func() error
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(noon), hosts: map[stepID]*hostState{}, stubborn: map[string]bool{}, obstinacy: map[string]outcome{}, refusals: map[stepID]refusal{}, found: map[stepID]map[string]bool{}, strays: map[stepID]bool{}}
	w.api = newModelStore(w.clock)
	w.operators = [][]string{{nodeKind, computeKind}}
	if chance(t, "two operators", 5) {
		w.operators = [][]string{{nodeKind}, {computeKind}}
	}
	for i := range w.operators {
		w.leaders = append(w.leaders, newManager(w, i))
	}
	w.runner = newModelRunner(w)
	return w
}

// chance is true once in n times. Shrinking makes it false.
func chance(t *rapid.T, what string, n int) bool {
	return rapid.Uint64().Draw(t, what)%uint64(n) == uint64(n)-1
}

func pick[T any](t *rapid.T, what string, from []T) T {
	if len(from) == 1 {
		return from[0]
	}
	return from[rapid.IntRange(0, len(from)-1).Draw(t, what)]
}

// manager is an engine with its cache, and the controllers of the owners.
type manager struct {
	*Engine
	world    *world
	operator int
	cache    *modelCache
	// handled is how far each handler has come, by kind and handler.
	handled map[modelHandler]int
	groups  *modelQueue[Group]
	owners  *modelQueue[ownerID]
	said    sayings
	// claimed is what owners had said when a run was decided on, by its name.
	claimed map[string]sayings
	// wrote is the version of each owner that the manager has written last.
	wrote map[ownerID]int
	// saw is how far the cache had shown the log of runs when the last plan began.
	saw int
	// made are the runs that this plan has created.
	made map[string]bool
	// shaky reports whether writes may arrive late: another manager leads already.
	shaky bool
}

type modelHandler struct{ kind, handler string }

// said is what an owner has last asked of the engine, and what it was answered.
type said struct {
	targets []Target
	state   State
}

type sayings map[ownerID]*said

func newManager(w *world, operator int) *manager {
	m := &manager{
		world: w, operator: operator, handled: map[modelHandler]int{}, said: sayings{}, wrote: map[ownerID]int{}, claimed: map[string]sayings{},
		groups: newModelQueue[Group](w.clock), owners: newModelQueue[ownerID](w.clock),
	}
	opts := DefaultOptions()
	opts.Clock, opts.History = w.clock, 2
	m.Engine = New(modelClient{m: m}, modelReader{store: w.api}, opts)
	m.queue = m.groups
	m.cache = newModelCache(w.api, append([]string{runKind}, w.operators[operator]...)...)
	m.handled[modelHandler{runKind, "engine"}] = m.cache.shown[runKind]
	for _, kind := range w.operators[operator] {
		m.Register(Owner{
			Kind: kind, New: func() client.Object { return &modelOwner{kind: kind} },
			Ledger: func(o client.Object) *common.Ledger { return &o.(*modelOwner).ledger },
		})
		m.handled[modelHandler{runKind, kind}] = m.cache.shown[runKind]
		m.handled[modelHandler{kind, kind}] = m.cache.shown[kind]
	}
	for _, kind := range append([]string{runKind}, w.operators[operator]...) {
		for _, name := range slices.Sorted(maps.Keys(m.cache.objects[kind])) {
			for _, h := range m.handlers(kind) {
				m.handle(modelHandler{kind, h}, change{new: m.cache.objects[kind][name]})
			}
		}
	}
	m.drainWakeups()
	return m
}

func (m *manager) handlers(kind string) []string {
	if kind != runKind {
		return []string{kind}
	}
	return append([]string{"engine"}, m.world.operators[m.operator]...)
}

// handle passes an event to a handler of the engine, or to one of the
// controllers of owners.
func (m *manager) handle(h modelHandler, c change) {
	switch {
	case h.handler == "engine":
		deliver(m.runHandler(), c, m.groups)
	case h.kind == runKind:
		q := newModelQueue[reconcile.Request](m.world.clock)
		deliver(m.OwnerHandler(h.handler), c, q)
		for request := range q.at {
			m.owners.Add(ownerID{h.handler, modelNamespace, request.Name})
		}
	default:
		m.handleOwner(c)
	}
}

// deliver calls the function of a handler that is for the event.
func deliver[R comparable](h handler.TypedEventHandler[client.Object, R], c change, q workqueue.TypedRateLimitingInterface[R]) {
	switch {
	case c.old == nil:
		h.Create(ctx, event.CreateEvent{Object: c.new}, q)
	case c.new == nil:
		h.Delete(ctx, event.DeleteEvent{Object: c.old}, q)
	default:
		h.Update(ctx, event.UpdateEvent{ObjectOld: c.old, ObjectNew: c.new}, q)
	}
}

// handleOwner is what the watches of the controllers of nodes and computes do: a
// node that is new is expected, and changes of status wake no one.
func (m *manager) handleOwner(c change) {
	if c.old != nil && c.new != nil && c.old.GetGeneration() == c.new.GetGeneration() && c.old.GetUID() == c.new.GetUID() {
		return
	}
	o, _ := c.new.(*modelOwner)
	if o == nil {
		o = c.old.(*modelOwner)
	} else if c.old == nil || o.kind == computeKind {
		m.expect(expectedOwner{roleKey: roleKey{o.Namespace, o.spec.role}}, o.id())
	}
	m.owners.Add(o.id())
}

// drainWakeups moves what the engine has woken into the queues of the owners.
func (m *manager) drainWakeups() {
	for _, kind := range m.world.operators[m.operator] {
		for len(m.Engine.owners.wakeups[kind]) > 0 {
			obj := (<-m.Engine.owners.wakeups[kind]).Object
			m.owners.Add(ownerID{kind, obj.GetNamespace(), obj.GetName()})
		}
	}
}

var (
	errModel = errors.New("the API server did not answer")
	errStale = errors.New("the object is newer: its ledger is not overwritten")
)

// write is a write of a manager. Its answer can be lost, and that of a manager that
// no longer leads can arrive at the API server late.
func (m *manager) write(what string, do func() error) error {
	w := m.world
	if w.calm {
		return do()
	}
	switch n := rapid.IntRange(0, 63).Draw(w.t, "fault"); {
	case n == 60:
		w.logf("%s: %s: lost", m.name(), what)
		return errModel
	case n == 61:
		w.logf("%s: %s: done, and the answer is lost (%v)", m.name(), what, do())
		m.noteStray()
		return errModel
	case n%2 == 1 && m.shaky:
		w.logf("%s: %s: late", m.name(), what)
		w.late = append(w.late, lateWrite{what, do})
		return errModel
	}
	err := do()
	m.noteStray()
	w.logf("%s: %s: %v", m.name(), what, err)
	w.interleave()
	return err
}

// noteStray notes that an old leader has written.
func (m *manager) noteStray() {
	if m.shaky {
		m.world.strayed = len(m.world.api.tables[runKind].log)
	}
}

func (m *manager) name() string {
	if m.shaky {
		return fmt.Sprintf("old leader %d", m.operator)
	}
	return fmt.Sprintf("leader %d", m.operator)
}

// plan reconciles a group.
func (m *manager) plan(g Group) {
	saw, made := m.saw, m.made // it may be in the midst of another plan
	defer func() { m.saw, m.made = saw, made }()
	m.saw, m.made = m.cache.shown[runKind], map[string]bool{}
	m.groups.process(g, func() (time.Duration, error) {
		result, err := m.reconcile(ctx, g)
		m.world.logf("%s: plan %s: next in %v, %v", m.name(), g, result.RequeueAfter, err)
		return result.RequeueAfter, err
	})
	m.drainWakeups()
}

// look reconciles an owner.
func (m *manager) look(id ownerID) {
	m.owners.process(id, func() (time.Duration, error) {
		owner, _ := m.cache.objects[id.kind][id.name].(*modelOwner)
		switch {
		case owner != nil && versionOf(owner) < m.wrote[id]:
			return 100 * time.Millisecond, nil
		case owner == nil:
			delete(m.said, id)
			m.Withdraw(id.kind, id.namespace, id.name)
			m.world.logf("%s: %s %s does not exist", m.name(), id.kind, id.name)
			return 0, nil
		case owner.DeletionTimestamp != nil:
			return 0, m.release(owner)
		}
		_, err := m.converge(owner, targetsOf(owner)...)
		return 0, err
	})
	m.drainWakeups()
}

// converge asks the engine for the targets and writes the status.
func (m *manager) converge(owner *modelOwner, targets ...Target) (State, error) {
	ledger := owner.ledger.DeepCopy()
	state, err := m.Converge(ctx, ledger, targets...)
	if err != nil {
		return state, err
	}
	m.said[owner.id()] = &said{targets, state}
	m.world.logf("%s: %s %s with %s is %s at %s %s", m.name(), owner.kind, owner.Name, describe(owner), state.Phase, state.Step, state.Message)
	m.world.checkState(m, owner, targets, state)
	return state, m.writeStatus(owner, ledger, state.Phase)
}

func describe(o *modelOwner) string {
	return fmt.Sprintf("versions %v, at %q, access %s, tokens %q %q, role %s, %+v", o.spec.versions, o.spec.address, o.spec.access, o.spec.token, o.spec.roleToken, o.spec.role, o.spec.strategy)
}

// release is what the controllers do with an owner that is being deleted: a
// compute is cleaned up if anything was run for it.
func (m *manager) release(owner *modelOwner) error {
	if err := m.Forget(ctx, owner.kind, owner.Namespace, owner.Name, stepsOfKind(owner.kind)...); err != nil {
		return err
	}
	delete(m.said, owner.id())
	m.world.logf("%s: %s %s is being deleted", m.name(), owner.kind, owner.Name)
	if owner.kind == computeKind && len(owner.Finalizers) > 0 {
		if run, err := m.Unfinished(ctx, owner.kind, owner, stepsOfKind(owner.kind)...); err != nil || run != "" {
			m.Withdraw(owner.kind, owner.Namespace, owner.Name) // as the controller does
			return err
		}
		touched, err := m.Touched(ctx, owner.kind, &owner.ledger, owner, stepsOfKind(owner.kind)...)
		if err != nil {
			return err
		}
		if touched {
			if state, err := m.converge(owner, cleanupOf(owner)); err != nil || state.Phase != Converged {
				return err
			}
		}
		if err := m.Forget(ctx, owner.kind, owner.Namespace, owner.Name, cleanupStep); err != nil {
			return err
		}
	} else {
		m.Withdraw(owner.kind, owner.Namespace, owner.Name)
	}
	return client.IgnoreNotFound(m.write("let "+owner.Name+" go", func() error { return m.world.api.dropFinalizers(owner) }))
}

// writeStatus patches what has changed since the cache showed the owner: a ledger
// only as it was seen, as phase.Runner does. It is not modelled that an old leader
// overwrites the phase that a new one shows: the next look at the object fixes it.
func (m *manager) writeStatus(seen *modelOwner, ledger *common.Ledger, phase Phase) error {
	patch := ledgerPatch(&seen.ledger, ledger)
	if len(patch) == 0 && phase == seen.phase {
		return nil
	}
	return m.write("status of "+seen.Name, func() error {
		stored := m.world.api.owner(seen.kind, seen.Name)
		if stored == nil || stored.UID != seen.UID {
			return nil
		}
		if stale := stored.ResourceVersion != seen.ResourceVersion; stale && len(patch) > 0 {
			return errStale
		} else if stale && m.shaky {
			return nil
		}
		stored = stored.DeepCopyObject().(*modelOwner)
		for _, apply := range patch {
			apply(&stored.ledger)
		}
		if phase != seen.phase {
			stored.phase = phase
		}
		m.world.api.put(stored)
		if !m.shaky {
			m.wrote[seen.id()] = versionOf(stored)
		}
		return nil
	})
}

func versionOf(o *modelOwner) (n int) {
	n, _ = strconv.Atoi(o.ResourceVersion)
	return n
}

// ledgerPatch is the merge patch from one ledger to another, field by field.
func ledgerPatch(from, to *common.Ledger) (patch []func(*common.Ledger)) {
	if !equality.Semantic.DeepEqual(from.Drift, to.Drift) {
		patch = append(patch, func(l *common.Ledger) { l.Drift = to.Drift })
	}
	for step, hash := range to.Hash {
		if from.Hash[step] != hash {
			patch = append(patch, func(l *common.Ledger) { l.Set(step, hash, l.Runs[step]) })
		}
	}
	for step, run := range to.Runs {
		old := from.Runs[step]
		if reflect.DeepEqual(old, run) {
			continue
		}
		patch = append(patch, func(l *common.Ledger) {
			if l.Runs == nil {
				l.Runs = map[string]common.RunRecord{}
			}
			r := l.Runs[step]
			patchField(&r.Name, old.Name, run.Name)
			patchField(&r.Serial, old.Serial, run.Serial)
			patchField(&r.Rerun, old.Rerun, run.Rerun)
			if !reflect.DeepEqual(old.Tokens, run.Tokens) {
				r.Tokens = merged(r.Tokens, run.Tokens)
			}
			if !old.End.Equal(run.End) {
				r.End = run.End
			}
			l.Runs[step] = r
		})
	}
	return patch
}

func patchField[T comparable](field *T, from, to T) {
	if from != to {
		*field = to
	}
}

const cleanupStep = "nova-cleanup"

// stepsOfKind have one of the same name.
func stepsOfKind(kind string) []string {
	if kind == nodeKind {
		return []string{"network", "nova"}
	}
	return []string{"libvirt", "nova"}
}

func targetsOf(o *modelOwner) []Target {
	var targets []Target
	for i, step := range stepsOfKind(o.kind) {
		targets = append(targets, targetOf(o, step, o.spec.versions[i]))
	}
	return targets
}

func targetOf(o *modelOwner, step string, version int) Target {
	rerun, tokens := cmp.Or(o.spec.token, o.spec.roleToken), map[string]string{}
	if o.spec.token != "" {
		tokens["node"] = o.spec.token
	}
	if o.spec.roleToken != "" {
		tokens["role"] = o.spec.roleToken
	}
	t := Target{
		Namespace: modelNamespace, Host: o.Name, OwnerKind: o.kind, OwnerUID: o.UID, Step: Step{Name: step, Playbook: step},
		Role: o.spec.role, Strategy: o.spec.strategy, Rerun: rerun, Tokens: tokens, SSHKeyDigest: o.spec.access,
		Vars: map[string]any{"version_" + step: version, "ansible_host": cmp.Or(o.spec.address, o.Name)},
	}
	if o.spec.inline {
		t.Step.Playbook, t.Step.PlaybookContents = "", step
	}
	return t
}

func cleanupOf(o *modelOwner) Target {
	t := targetOf(o, cleanupStep, 0)
	t.Strategy, t.MaxAttempts, t.Step.Removal = Strategy{Deploy: true}, 5, true
	return t
}

// modelRunner is the controller of runs, which admits them, and Kubernetes, which
// carries them out.
type modelRunner struct {
	world    *world
	cache    *modelCache
	admitted map[types.UID]bool
	// jobs are the runs that are at work on their hosts, done those that were.
	jobs  map[types.UID]*ansibleeev1.OpenStackAnsibleEE
	began map[types.UID]time.Time
	done  map[types.UID]bool
}

// shortestRun is how long a run takes at least: the API server stores its end in
// seconds.
const shortestRun = 2 * time.Second

func newModelRunner(w *world) *modelRunner {
	return &modelRunner{world: w, cache: newModelCache(w.api, runKind), admitted: map[types.UID]bool{}, jobs: map[types.UID]*ansibleeev1.OpenStackAnsibleEE{}, began: map[types.UID]time.Time{}, done: map[types.UID]bool{}}
}

// open runs, as far as the cache shows, are those that are to be admitted, or to
// be cancelled.
func (r *modelRunner) open() []*ansibleeev1.OpenStackAnsibleEE {
	var open []*ansibleeev1.OpenStackAnsibleEE
	for _, run := range r.cache.runs {
		if run.Finished() || r.done[run.UID] || r.jobs[run.UID] != nil && run.DeletionTimestamp == nil {
			continue
		}
		if run.DeletionTimestamp != nil || run.Status.JobStatus == "" && r.rival(run) == nil {
			open = append(open, run)
		}
	}
	return open
}

// rival is the run for which a run has to wait.
func (r *modelRunner) rival(run *ansibleeev1.OpenStackAnsibleEE) *ansibleeev1.OpenStackAnsibleEE {
	var rivals []ansibleeev1.OpenStackAnsibleEE
	for _, other := range r.cache.runs {
		if other.Name != run.Name && !other.Finished() && sharesHost(run, other) {
			rivals = append(rivals, *other)
		}
	}
	rival, _ := hostlock.FirstBefore(run, rivals, func(other *ansibleeev1.OpenStackAnsibleEE) (bool, error) {
		return r.admitted[other.UID] || r.jobs[other.UID] != nil || other.Status.JobStatus != "", nil
	})
	return rival
}

// sharesHost reports whether two runs have a host in common, be it by its name or as
// a machine.
func sharesHost(a, b *ansibleeev1.OpenStackAnsibleEE) bool {
	return slices.ContainsFunc(a.Spec.Targets, func(t ansibleeev1.Target) bool {
		_, ok := b.Target(t.Host)
		return ok || t.Machine != "" && slices.Contains(b.Machines(), t.Machine)
	})
}

// step admits a run, or cancels it.
func (r *modelRunner) step(run *ansibleeev1.OpenStackAnsibleEE) {
	stored := r.world.api.run(run.Name)
	if stored == nil || stored.UID != run.UID {
		return
	}
	if run.DeletionTimestamp != nil {
		r.world.logf("runner: cancel %s", run.Name)
		r.end(run, func(string, int) ending { return ending{outcome: unknown} })
		return
	}
	if stored.DeletionTimestamp != nil {
		return // which the API server is asked for before
	}
	r.world.logf("runner: start %s", run.Name)
	r.admitted[run.UID], r.jobs[run.UID], r.began[run.UID] = true, run, r.world.clock.Now()
	r.world.checkStart(run)
	r.status(run.Name, func(s *ansibleeev1.OpenStackAnsibleEEStatus) { s.JobStatus = ansibleeev1.JobRunning })
}

// outcome of a run on a host.
type outcome int

const (
	succeeds outcome = iota
	fails
	refuses // as the same inputs do each time
	unreachable
	unknown
)

// ending is how a run ends on a host, and after how many steps.
type ending struct {
	outcome
	done int
}

// of a step, by its index. A host keeps what it had of steps that it does not get to.
func (e ending) of(step int) outcome {
	switch {
	case e.outcome == unknown || step == e.done:
		return e.outcome
	case step < e.done:
		return succeeds
	}
	return unreachable
}

// result that the runner reports of a host; none if it is unknown.
func (e ending) result(host string) (results []ansibleeev1.HostStatus) {
	switch e.outcome {
	case succeeds:
		return append(results, ok(host))
	case fails, refuses:
		results = append(results, failed(host))
		results[0].Refused = e.outcome == refuses
	case unreachable:
		results = append(results, ansibleeev1.HostStatus{Name: host, Unreachable: 1})
	}
	for i := range results {
		if e.done > 0 { // an image that does not record steps says nothing
			results[i].OK, results[i].StepsDone = 1, ptr.To(int32(e.done))
		}
	}
	return results
}

// end ends the work of a run, which may not have begun, and reports it.
func (r *modelRunner) end(run *ansibleeev1.OpenStackAnsibleEE, endingOf func(host string, steps int) ending) {
	results, status, started := []ansibleeev1.HostStatus{}, ansibleeev1.JobSucceeded, r.jobs[run.UID] != nil
	for _, host := range run.Spec.Targets {
		e := endingOf(host.Host, len(run.StepNames()))
		for i, step := range run.StepNames() {
			t, _ := run.StepTarget(step, host.Host)
			if run.Spec.Check {
				continue
			}
			r.world.state(t.OwnerUID, step).end(run, t, e.of(i), started)
			if started && i <= e.done {
				r.world.noteRefusal(run, step, t, e.of(i))
			}
		}
		if results = append(results, e.result(host.Host)...); e.outcome != succeeds {
			status = ansibleeev1.JobFailed
		}
		if run.Spec.Check && started && e.outcome == succeeds {
			results[len(results)-1].Differences = r.world.differences(run, host.Host)
		}
	}
	delete(r.jobs, run.UID)
	delete(r.admitted, run.UID)
	r.done[run.UID] = true
	r.status(run.Name, func(s *ansibleeev1.OpenStackAnsibleEEStatus) {
		now := r.world.api.stamp()
		s.JobStatus, s.Hosts, s.CompletionTime = status, results, &now
		if !started {
			s.JobStatus = ansibleeev1.JobFailed
			s.Conditions.Set(condition.FalseCondition(ansibleeev1.JobReadyCondition, ansibleeev1.JobNotStartedReason, condition.SeverityError, "it never had a Job"))
		}
	})
}

// differences that a check finds on a host, none once it is calm.
func (w *world) differences(run *ansibleeev1.OpenStackAnsibleEE, host string) []ansibleeev1.StepDifference {
	var all []ansibleeev1.StepDifference
	for i, step := range run.StepNames() {
		if w.calm || !chance(w.t, step+" differs on "+host, 2) {
			continue
		}
		t, _ := run.StepTarget(step, host)
		id := stepID{t.OwnerUID, step}
		if w.found[id] == nil {
			w.found[id] = map[string]bool{}
		}
		w.found[id][run.Name] = true
		w.logf("%s finds that %s differs on %s", run.Name, step, host)
		all = append(all, ansibleeev1.StepDifference{Step: int32(i + 1), Difference: common.Difference{Task: "Write it"}}) //nolint:gosec // two steps
	}
	return all
}

func (r *modelRunner) status(name string, change func(*ansibleeev1.OpenStackAnsibleEEStatus)) {
	stored := *r.world.api.run(name)
	change(&stored.Status)
	stored.Status.ObservedGeneration = stored.Generation
	r.world.api.put(&stored)
}

// running are the runs that are at work, in a stable order.
func (r *modelRunner) running() []*ansibleeev1.OpenStackAnsibleEE {
	runs := slices.Collect(maps.Values(r.jobs))
	slices.SortFunc(runs, func(a, b *ansibleeev1.OpenStackAnsibleEE) int {
		if hostlock.CreatedBefore(a, b) {
			return -1
		}
		return 1
	})
	return runs
}

var modelOwnerMeta = metav1.ObjectMeta{Namespace: modelNamespace, Finalizers: []string{"model"}}
