package registration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// fenceReason is with which the service of a compute is disabled whose host is off. By it the
// service is known when the host returns.
const fenceReason = "edpm-operators: the host is fenced"

// evacuatedStep stops what nova has evacuated, before anything else is started on the host.
var evacuatedStep = edpm.Step{Name: "evacuated", Playbook: "edpm.operators.nova_evacuated", Interrupts: true}

// deployingSteps have been run once more before nova uses a host again.
var deployingSteps = []string{"libvirt", novav1.NovaStep}

// noteFence notes who says that the host is off, or that no one does any more. Nothing
// changes while what the node says is not valid.
func (s *Registration) noteFence() {
	by, errs := s.fencedBy()
	fence := &s.compute.Status.Fence
	switch {
	case len(errs) > 0, by == "" && *fence == nil:
	case by == "":
		(*fence).Ended = true
	case *fence == nil, (*fence).Ended:
		*fence = &novav1.FenceStatus{By: by, Since: metav1.Now()}
		s.drains.Forget(client.ObjectKeyFromObject(s.compute)) // what kept guests from being migrated
	default:
		(*fence).By = by
	}
}

// fencedBy returns who says that the host is off; empty for no one. A machine whose node is
// drained is powered off to come back with its guests.
func (s *Registration) fencedBy() (by string, errs field.ErrorList) {
	if s.Node == nil {
		return "", nil
	}
	by, errs = validate.Fence(s.Node.Annotations)
	if machine := s.Node.Status.BareMetalHost; by == "" && machine != nil && machine.PoweredOff && !s.wantsDrain() {
		by = "BareMetalHost " + machine.Name + ", whose power is off"
	}
	return by, errs
}

// recallFence finds out that a host was fenced of which that is no longer noted: by a compute
// that was deleted, or whose status was lost.
func (s *Registration) recallFence() {
	service := s.compute.Status.ComputeService
	if s.compute.Status.Fence == nil && s.view.Asked && service != nil && service.ForcedDown && service.Disabled &&
		slices.Contains([]string{fenceReason, removalReason}, service.DisabledReason) {
		s.compute.Status.Fence = &novav1.FenceStatus{By: "a compute that had the host before", Since: metav1.Now(), Ended: true}
	}
}

// Evacuate is the phase that has the guests of a host that is off evacuated, and brings the
// host back when it no longer is. It halts for nothing.
func (s *Registration) Evacuate(ctx context.Context) error {
	if _, errs := s.fencedBy(); s.compute.Status.Fence == nil && len(errs) == 0 {
		return nil
	}
	return s.display(novav1.EvacuatedCondition, s.evacuate(ctx))
}

func (s *Registration) evacuate(ctx context.Context) error {
	service, t := s.compute.Status.ComputeService, novav1.EvacuatedCondition
	halt := s.unevacuable()
	switch {
	case halt != nil:
		return halt
	case !s.isOff() && (s.api == nil || s.view.Asked && service == nil):
		s.endFence()
		return nil
	case !s.view.Asked:
		return s.repeat(s.previousFence, t, novav1.EvacuatingReason)
	case service == nil:
		return phase.Waiting(t, novav1.ServiceNotReportedReason, "nova knows no service nova-compute of the host, and so no guests: see condition %s", novav1.ComputeServiceReadyCondition)
	}
	nova, err := s.unburdened(ctx)
	if err != nil {
		return err
	}
	fresh, err := nova.Refresh(ctx, s.view.Service)
	switch {
	case err != nil:
		return err
	case !s.isOff():
		return s.bringBack(ctx, nova, fresh)
	}
	outcome, err := s.carry(ctx, nova, fresh)
	if err == nil {
		s.conclude(outcome)
	}
	return err
}

// unevacuable returns why no guest can be evacuated, nil if they can.
func (s *Registration) unevacuable() *phase.Halt {
	t := novav1.EvacuatedCondition
	_, errs := s.fencedBy()
	_, _, wrong := s.drainOrder()
	switch halt := s.unwritten(); {
	case len(errs)+len(wrong) > 0:
		return phase.Stalled(t, novav1.InvalidSpecReason, "OpenStackDataPlaneNode %s: %v", s.compute.Spec.DataplaneNodeName, append(errs, wrong...).ToAggregate())
	case s.api == nil && s.isOff():
		return phase.Stalled(t, novav1.EvacuationNotPossibleReason,
			"No Nova with an API manages NovaCell %s, so the operator cannot evacuate guests: enable the API with apiServiceTemplate.replicas of the Nova, or evacuate the guests and remove annotation %s of the node",
			s.compute.Spec.CellName, common.FenceAnnotation)
	case halt != nil:
		return &phase.Halt{Type: t, Reason: halt.Reason, Severity: halt.Severity, Message: halt.Message}
	}
	return nil
}

// bringBack has nova use the host again, once its steps have been run since and its
// nova-compute has removed the guests that were evacuated.
func (s *Registration) bringBack(ctx context.Context, nova *computeservice.Client, fresh computeservice.Service) error {
	if !fresh.ForcedDown { // it never was, or another user has decided
		s.endFence()
		return nil
	}
	migrations, err := nova.Migrations(ctx, fresh.Host)
	if err != nil {
		return err
	}
	s.mayReturn = true
	waits := func(format string, args ...any) error {
		return phase.Waiting(novav1.EvacuatedCondition, novav1.HostReturningReason, format, args...)
	}
	open, left := evacuations(migrations, fresh.Host)
	s.evacuees = left
	switch {
	case open > 0:
		s.mayReturn = false
		if guests := drain.Standstill(drain.Host{Name: fresh.Host, Migrations: migrations, Now: time.Now()}); guests != "" {
			return standstill(fresh.Host, guests)
		}
		return waits("No one says any more that host %s is off: waiting for %d evacuations that have begun", fresh.Host, open)
	case !s.isDeployedSince():
		return waits("No one says any more that host %s is off: waiting until its steps have been run since: see conditions %s and %s",
			fresh.Host, novav1.DataPlaneNodeReadyCondition, condition.DeploymentReadyCondition)
	case len(left) > 0:
		return waits("Waiting until nova-compute on host %s has removed what is left there of %d guests that were evacuated: if it does not, see its log", fresh.Host, len(left))
	}
	return s.lift(ctx, nova, fresh)
}

// standstill says what ends evacuations that nova does not: so it is if the new host died meanwhile.
func standstill(host, guests string) *phase.Halt {
	return phase.Stalled(novav1.EvacuatedCondition, novav1.HostReturningReason,
		"No one says any more that host %s is off, but it cannot return before evacuations that have begun have ended: guest %s. If an evacuation does not continue when nova-compute runs there, openstack server delete of the guest ends it; volumes that are not deleted with it can be attached to another one",
		host, guests)
}

// evacuations returns how many evacuations from a host have not ended, and the guests of which
// something can be left on it, sorted.
func evacuations(migrations []computeservice.Migration, host string) (open int, left []string) {
	for _, m := range migrations {
		if !m.Leaves(host) {
			continue
		}
		left = append(left, m.Guest)
		if m.IsOpen() {
			open++
		}
	}
	slices.Sort(left)
	return open, slices.Compact(left)
}

// isDeployedSince reports whether the steps have been run since the host was fenced.
func (s *Registration) isDeployedSince() bool {
	return !slices.ContainsFunc(deployingSteps, func(step string) bool { return !s.isRunSince(step) })
}

func (s *Registration) isRunSince(step string) bool {
	return edpm.IsHonored(s.compute.Status.Runs[step], s.fenceToken())
}

// fenceToken asks for one run of each step.
func (s *Registration) fenceToken() string {
	return "fenced-" + s.compute.Status.Fence.Since.UTC().Format(time.RFC3339)
}

// lift has nova take the host for up again, and enables its service unless it is to stay
// disabled.
func (s *Registration) lift(ctx context.Context, nova *computeservice.Client, fresh computeservice.Service) error {
	s.show(fresh)
	fence := s.compute.Status.Fence
	s.endFence()
	reason, wanted := s.toDisable()
	change, ours := adjustment(s.compute.Status.ComputeService, wanted, reason, true)
	updated, err := nova.Update(ctx, fresh, change.ForceDown(false))
	if err != nil {
		s.compute.Status.Fence = fence
		return err
	}
	s.show(updated)
	s.compute.Status.ComputeService.DisabledFor = ours
	return nil
}

// endFence forgets that the host was off.
func (s *Registration) endFence() {
	s.compute.Status.Fence, s.mayReturn = nil, false
	s.fences.forget(client.ObjectKeyFromObject(s.compute))
	s.drains.Forget(client.ObjectKeyFromObject(s.compute))
}

// Hold is the phase that has nothing run on a host that is off, nor on one that returns before
// it is known what nova has evacuated from it.
func (s *Registration) Hold(context.Context) error {
	fence := s.compute.Status.Fence
	if fence == nil || s.mayReturn {
		return nil
	}
	if halt := s.judge(s.hostNames()); s.api != nil && halt != nil {
		s.compute.Status.Conditions.MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
	}
	text := fmt.Sprintf("is off, as %s says", fence.By)
	if fence.Ended {
		text = "returns"
	}
	return phase.Waiting(condition.DeploymentReadyCondition, novav1.HostFencedReason, "Nothing is run on the host, which %s: see condition %s", text, novav1.EvacuatedCondition)
}

// Steps returns the steps of the compute with what the return of a host needs before them. All
// are run once more then.
func (s *Registration) Steps(steps []hosted.Step) []hosted.Step {
	all := append([]hosted.Step{{Step: evacuatedStep, Complete: s.stopEvacuees, Applies: func() bool { return s.mayReturn }}}, steps...)
	for i := range all {
		complete := all[i].Complete
		all[i].Complete = func(t *edpm.Target) {
			complete(t)
			s.permitDrain(t)
			s.askForRun(t)
			s.identify(t)
		}
	}
	return all
}

func (s *Registration) stopEvacuees(t *edpm.Target) {
	t.Hints = map[string]any{"edpm_nova_evacuated": append([]string{}, s.evacuees...)}
}

func (s *Registration) askForRun(t *edpm.Target) {
	if !s.mayReturn {
		return
	}
	if t.Tokens = maps.Clone(t.Tokens); t.Tokens == nil {
		t.Tokens = map[string]string{}
	}
	if t.Tokens["fence"] = s.fenceToken(); !s.isRunSince(t.Step.Name) {
		t.Rerun = s.fenceToken()
	}
}

// checkSilence is an error unless it is certain that nova-compute no longer reports to nova
// since the service was forced down: nova does not say whether such a service is up.
func (s *Registration) checkSilence(fresh computeservice.Service) error {
	now, pause := time.Now(), s.observer.Pause(false)
	seen := s.fences.note(client.ObjectKeyFromObject(s.compute), fresh.LastReport(), now)
	t := novav1.EvacuatedCondition
	switch {
	case now.Sub(seen.since) >= pause:
		return nil
	case seen.changes > 1: // one can be a change by a user
		return phase.Stalled(t, novav1.HostAliveReason,
			"%s says that host %s is off, but its nova-compute reports to nova: the host is not off, and no guest is evacuated. Power it off, or remove annotation %s of the node",
			s.compute.Status.Fence.By, fresh.Host, common.FenceAnnotation)
	}
	return phase.Waiting(t, novav1.EvacuatingReason, "Waiting %s to make sure that nova-compute on host %s no longer reports to nova", pause, fresh.Host)
}

// uncleanable waits for a person to decide about a compute that is being deleted whose host
// is off, once nova has nothing on it.
func (s *Registration) uncleanable() error {
	if !s.isOff() {
		return nil
	}
	return phase.Stalled(novav1.ComputeServiceReadyCondition, novav1.HostFencedReason,
		"Deleting: nova has nothing on host %s, which cannot be cleaned up as it is off, as %s says. To delete the compute without clean-up, set annotation %s: \"true\"; to have the host cleaned up, power it on and remove annotation %s of the node",
		s.leaving.service.Host, s.compute.Status.Fence.By, common.SkipCleanupAnnotation, common.FenceAnnotation)
}

// report is the last report of a nova-compute by the clock of nova, since when by that of the
// manager it is the last, and how many were before it since the host was fenced.
type report struct {
	at, since time.Time
	changes   int
}

// fences has the last reports of hosts that are fenced. They are lost with the manager: it is
// made certain once more then that a host no longer reports.
type fences struct {
	mu      sync.Mutex
	reports map[types.NamespacedName]report
}

func newFences() *fences { return &fences{reports: map[types.NamespacedName]report{}} }

// note notes a report of the nova-compute of a compute, and returns what is known of it.
func (f *fences) note(compute types.NamespacedName, at, now time.Time) report {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.reports[compute]
	switch {
	case !found:
		f.reports[compute] = report{at: at, since: now}
	case !known.at.Equal(at):
		f.reports[compute] = report{at: at, since: now, changes: known.changes + 1}
	}
	return f.reports[compute]
}

func (f *fences) forget(compute types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.reports, compute)
}
