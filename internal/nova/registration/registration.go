// Package registration looks after the service nova-compute of a host in nova: what
// nova says of it, that it is disabled and enabled, and that it is deleted with the
// compute.
package registration

import (
	"context"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// hostVar is the variable with the name of the host in nova.
const hostVar = "edpm_nova_host"

// onHost has the words of a compute on a host.
var onHost = words{
	log: "its log on the host", look: "the unit edpm_nova_compute on the host",
	renamed: "; if the host has another name there, set " + hostVar + " in ansibleVars of the node",
}

// Registration is the service of one NovaExternalCompute in nova, in one reconciliation.
type Registration struct {
	*hosted.Scope
	service
	compute *novav1.NovaExternalCompute
	drains  *drain.Memory
	turns   *turns
	fences  *fences
	// before is the last run of step nova before this reconciliation.
	before common.RunRecord
	// previous is what the compute showed of its drain before, previousFence of its evacuation, and
	// previousStanding of migrations that stand still; nil for nothing.
	previous, previousFence, previousStanding *condition.Condition
	// previousLive is what it showed of its live migrations.
	previousLive *condition.Condition
	// mayReturn reports whether the steps of a host that was off are run, and evacuees are the
	// guests of which something can be left on it.
	mayReturn bool
	evacuees  []string
}

// Registrar looks after the services of all computes on hosts.
type Registrar struct {
	observer *computeservice.Observer
	drains   *drain.Memory
	turns    *turns
	fences   *fences
}

// NewRegistrar returns one that has the services observed.
func NewRegistrar(services *computeservice.Observer) *Registrar {
	return &Registrar{services, drain.NewMemory(), newTurns(), newFences()}
}

// Of returns the service of the compute of a scope.
func (r *Registrar) Of(s *hosted.Scope) *Registration {
	compute := s.Object.(*novav1.NovaExternalCompute)
	conditions := compute.Status.Conditions
	reg := &Registration{Scope: s, compute: compute, drains: r.drains, turns: r.turns, fences: r.fences,
		previous: conditions.Get(novav1.DrainedCondition).DeepCopy(), previousFence: conditions.Get(novav1.EvacuatedCondition).DeepCopy(),
		previousLive: conditions.Get(novav1.LiveMigrationReadyCondition).DeepCopy(), previousStanding: conditions.Get(novav1.MigrationsProgressingCondition).DeepCopy()}
	reg.service = service{
		reader: s, observer: r.observer, name: computeservice.Name{NamespacedName: client.ObjectKeyFromObject(compute)}, cellName: compute.Spec.CellName,
		status: &compute.Status.ComputeService, findRival: reg.findConflict, warn: s.Warn, toDisable: reg.disableReason, drainedFor: reg.drainedFor, words: onHost,
		fence: func() *novav1.FenceStatus { return compute.Status.Fence },
	}
	reg.words.recorded = compute.Status.NovaHost
	return reg
}

// Forget what is known of a compute that no longer exists.
func (r *Registrar) Forget(compute types.NamespacedName) {
	r.observer.Withdraw(compute)
	r.drains.Forget(compute)
	r.turns.end(compute)
	r.fences.forget(compute)
}

// Phases that halt for nothing, of a compute that is not deleted. They need nothing of the host but
// its name in nova.
func (s *Registration) Phases() []phase.Phase {
	return []phase.Phase{
		phase.OptionalOf(novav1.ComputeServiceReadyCondition, s.ifNamed(s.Observe)), phase.NoticeOf(novav1.MigrationsProgressingCondition, s.ifNamed(s.ShowStanding)),
		phase.OptionalOf(novav1.EvacuatedCondition, s.ifNamed(s.Evacuate)), phase.OptionalOf(novav1.DrainedCondition, s.ifNamed(s.MoveGuests)),
	}
}

// ifNamed leaves a phase out while the name of the host in nova could only be guessed: the variables,
// which may give it another one, could not be read, and nova has never known the host. A service of
// the guessed name would be another user's.
func (s *Registration) ifNamed(run phase.Func) phase.Func {
	return func(ctx context.Context) error {
		if s.Vars == nil && s.compute.Status.NovaHost == "" && s.compute.Status.ComputeService == nil {
			return nil
		}
		return run(ctx)
	}
}

// Observe is the phase that finds out what nova says of the service. It halts for
// nothing: what is wrong with the service keeps nothing from being deployed.
func (s *Registration) Observe(ctx context.Context) error {
	if err := s.observeService(ctx); err != nil {
		s.keep()
		return err
	}
	return nil
}

// keep keeps what the compute shows of its guests although this reconciliation ends before it looks at
// them: what a drain has begun is completed only while the compute shows it.
func (s *Registration) keep() {
	for _, shown := range []*condition.Condition{s.previous, s.previousFence, s.previousStanding} {
		if shown != nil {
			s.compute.Status.Conditions.Set(shown)
		}
	}
}

func (s *Registration) observeService(ctx context.Context) error {
	s.noteFence()
	s.noteDrain()
	cell, api, err := findAPI(ctx, s.reader, s.compute.Namespace, s.cellName)
	if err != nil {
		return err
	}
	if api == nil {
		s.observer.Withdraw(s.name.NamespacedName)
		s.compute.Status.ComputeService = nil
		return nil
	}
	s.before = s.lastRun()
	if err := s.observe(ctx, cell, api, s.hostNames()); err != nil {
		return err
	}
	s.recallFence()
	if err := s.adjust(ctx, false); err != nil {
		return err
	}
	if halt := s.unwritten(); halt != nil { // another phase may halt before Ready says so
		s.compute.Status.Conditions.MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
	}
	return s.drainForNode(ctx)
}

// Observes reports whether a Nova runs an API that can be asked.
func Observes(nova client.Object) bool {
	return nova.(*novav1.Nova).RunsAPI() && nova.GetDeletionTimestamp().IsZero()
}

// hostNames are the names that the host can have in nova: the one that is recorded, which
// does not change whatever the variables say; else the one that it is given, or its own,
// which is that of the node unless a user has chosen another. While the variables cannot be read
// it is the one that nova has shown.
func (s *Registration) hostNames() []string {
	if recorded := s.compute.Status.NovaHost; recorded != "" {
		return []string{recorded}
	}
	if known := s.compute.Status.ComputeService; s.Vars == nil && known != nil {
		return []string{known.Host}
	}
	if given, _ := s.Vars[hostVar].(string); given != "" {
		return []string{given}
	}
	names := []string{s.compute.Name}
	if s.Node != nil && s.Node.Spec.HostName != "" {
		names = []string{s.Node.Spec.HostName, s.compute.Name}
	}
	for _, name := range names {
		if short, _, found := strings.Cut(name, "."); found {
			names = append(names, short)
		}
	}
	return slices.Compact(names)
}

// Ready is the last phase of a compute: nova can put a guest on it.
func (s *Registration) Ready(ctx context.Context) error {
	conditions := &s.compute.Status.Conditions
	if s.api == nil {
		conditions.Set(notObserved(s.cellName))
		return nil
	}
	s.await()
	s.noteRestart()
	if err := s.adjust(ctx, true); err != nil {
		return err
	}
	s.record()
	if halt := s.judge(s.hostNames()); halt != nil {
		return halt
	}
	conditions.MarkTrue(novav1.ComputeServiceReadyCondition, "nova-compute on host %s is up and mapped to its cell", s.compute.Status.ComputeService.Host)
	return nil
}

// lastRun is the last run of step nova.
func (s *Registration) lastRun() common.RunRecord { return s.compute.Status.Runs[novav1.NovaStep] }

// noteRestart notes that step nova has just ended on a host that nova knows, and asks whether
// nova-compute has reported since.
func (s *Registration) noteRestart() {
	service := s.compute.Status.ComputeService
	if service == nil {
		return
	}
	if run := s.lastRun(); s.compute.Status.NovaHost != "" && run.Serial != s.before.Serial {
		service.RestartedAt = run.End
	}
	now := s.ask(s.hostNames())
	if now.Asked && now.Reported {
		service.RestartedAt = nil
	}
	s.view.Trouble = now.Trouble
}

// record notes the name by which nova knows the host, now that the step nova has run with
// it and nova-compute reports: from then on the role refuses another one.
func (s *Registration) record() {
	service := s.compute.Status.ComputeService
	if s.compute.Status.NovaHost == "" && s.conflict == nil && s.view.Asked && service != nil && service.Up {
		s.compute.Status.NovaHost = service.Host
	}
}

// identify has step nova make a machine that is new, or was installed again, the compute that
// nova knows, and refuse one that would be a second host of that name.
func (s *Registration) identify(t *edpm.Target) {
	service := s.compute.Status.ComputeService
	if t.Step.Name != novav1.NovaStep || service == nil {
		return
	}
	t.Hints = map[string]any{"edpm_nova_compute_id": service.ComputeID, "edpm_nova_known_host": s.compute.Status.NovaHost}
	if service.Up && s.compute.Status.NovaHost == "" {
		t.Hints["edpm_nova_in_use"] = service.Host
	}
}
