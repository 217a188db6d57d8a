// Package registration looks after the service nova-compute of a host in nova: what
// nova says of it, that it is disabled and enabled, and that it is deleted with the
// compute.
package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// hostVar is the variable with the name of the host in nova.
const hostVar = "edpm_nova_host"

// Registration is the service of one compute in nova, in one reconciliation.
type Registration struct {
	*hosted.Scope
	compute  *novav1.NovaExternalCompute
	services *computeservice.Observer
	// api is the Nova that is asked for the service, nil if none is, and view what it said.
	api  *novav1.Nova
	view computeservice.View
	// before is the last run of step nova before this reconciliation.
	before common.RunRecord
	// cellTrouble is why the cell is not Ready.
	cellTrouble condition.Reason
	// conflict is that another compute has the service, nil if none does.
	conflict *computeservice.Trouble
	// unchanged is why the service could not be disabled or enabled in nova.
	unchanged *computeservice.Trouble
	leaving   leaving
}

// New returns the service of the compute of a scope.
func New(s *hosted.Scope, services *computeservice.Observer) *Registration {
	return &Registration{Scope: s, compute: s.Object.(*novav1.NovaExternalCompute), services: services}
}

// Observe is the phase that finds out what nova says of the service. It halts for
// nothing: what is wrong with the service keeps nothing from being deployed.
func (s *Registration) Observe(ctx context.Context) error {
	cell, api, err := s.findAPI(ctx, s.compute.Spec.CellName)
	if err != nil {
		return err
	}
	s.cellTrouble = CellTrouble(cell)
	status := &s.compute.Status
	if s.api = api; api == nil {
		s.services.Withdraw(client.ObjectKeyFromObject(s.compute))
		status.ComputeService = nil
		return nil
	}
	s.view, s.before = s.ask(), s.lastRun()
	if s.view.Asked {
		s.show(s.view.Service)
	}
	if service := status.ComputeService; service != nil {
		if s.conflict, err = s.findConflict(ctx, api, service.Host); err != nil {
			return err
		}
	}
	if err := s.adjust(ctx, false); err != nil {
		return err
	}
	if halt := s.unwritten(); halt != nil { // another phase may halt before Ready says so
		status.Conditions.MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
	}
	return nil
}

// ask returns what nova says of the service.
func (s *Registration) ask() computeservice.View {
	subject := computeservice.Subject{Name: client.ObjectKeyFromObject(s.compute), Hosts: s.hostNames(), Since: s.restarted()}
	if known := s.compute.Status.ComputeService; known != nil && known.Mapped {
		subject.Mapped = known.ID
	}
	return s.services.Observe(client.ObjectKeyFromObject(s.api), subject)
}

// restarted is when nova-compute was restarted, zero if it has reported since.
func (s *Registration) restarted() time.Time {
	if service := s.compute.Status.ComputeService; service != nil && service.RestartedAt != nil {
		return service.RestartedAt.Time
	}
	return time.Time{}
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
	now := s.ask()
	if now.Asked && now.Reported {
		service.RestartedAt = nil
	}
	s.view.Trouble = now.Trouble
}

// show puts what nova says of the service into the status.
func (s *Registration) show(service computeservice.Service) {
	known, now := s.compute.Status.ComputeService, serviceStatus(service)
	if now != nil && known != nil && now.ID == known.ID {
		now.DisabledFor, now.RestartedAt = known.DisabledFor, known.RestartedAt
	}
	s.view.Service, s.compute.Status.ComputeService = service, now
}

// findAPI returns a cell, and the Nova that runs the API of it, nil if none does.
func (s *Registration) findAPI(ctx context.Context, cellName string) (*novav1.NovaCell, *novav1.Nova, error) {
	cell, nova := &novav1.NovaCell{}, &novav1.Nova{}
	if err := s.Get(ctx, types.NamespacedName{Namespace: s.compute.Namespace, Name: cellName}, cell); err != nil {
		return cell, nil, client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOf(cell)
	if owner == nil || owner.Kind != "Nova" {
		return cell, nil, nil
	}
	if err := s.Get(ctx, types.NamespacedName{Namespace: cell.Namespace, Name: owner.Name}, nova); err != nil {
		return cell, nil, client.IgnoreNotFound(err)
	}
	if nova.UID != owner.UID || !Observes(nova) {
		return cell, nil, nil
	}
	return cell, nova, nil
}

// Observes reports whether a Nova runs an API that can be asked.
func Observes(nova client.Object) bool {
	return nova.(*novav1.Nova).RunsAPI() && nova.GetDeletionTimestamp().IsZero()
}

// hostNames are the names that the host can have in nova: the one that is recorded, which
// does not change whatever the variables say; else the one that it is given, or its own,
// which is that of the node unless a user has chosen another.
func (s *Registration) hostNames() []string {
	if recorded := s.compute.Status.NovaHost; recorded != "" {
		return []string{recorded}
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

// serviceStatus is what is shown of a service: nothing that differs while nothing
// has changed.
func serviceStatus(service computeservice.Service) *novav1.ComputeServiceStatus {
	if service.ID == "" {
		return nil
	}
	status := &novav1.ComputeServiceStatus{
		ID: service.ID, Host: service.Host, Up: service.Up, ForcedDown: service.ForcedDown, Mapped: service.Mapped, Duplicated: service.Rival,
		Disabled: service.Disabled, DisabledReason: service.DisabledReason,
	}
	if !service.Up && !service.Seen.IsZero() {
		status.DownSince = ptr.To(metav1.NewTime(service.Seen))
	}
	return status
}

// Ready is the last phase of a compute: nova can put a guest on it.
func (s *Registration) Ready(ctx context.Context) error {
	if s.api == nil {
		notObserved := condition.TrueCondition(novav1.ComputeServiceReadyCondition,
			"Not observed: NovaCell %s belongs to no Nova that runs an API", s.compute.Spec.CellName)
		notObserved.Reason = novav1.NotObservedReason
		s.compute.Status.Conditions.Set(notObserved)
		return nil
	}
	s.services.Await(client.ObjectKeyFromObject(s.api), client.ObjectKeyFromObject(s.compute))
	s.noteRestart()
	if err := s.adjust(ctx, true); err != nil {
		return err
	}
	s.record()
	if halt := s.judgeService(); halt != nil {
		return halt
	}
	s.compute.Status.Conditions.MarkTrue(novav1.ComputeServiceReadyCondition, "nova-compute on host %s is up and mapped to its cell", s.compute.Status.ComputeService.Host)
	return nil
}

// record notes the name by which nova knows the host, now that the step nova has run with
// it and nova-compute reports: from then on the role refuses another one.
func (s *Registration) record() {
	service := s.compute.Status.ComputeService
	if s.compute.Status.NovaHost == "" && s.conflict == nil && s.view.Asked && service != nil && service.Up {
		s.compute.Status.NovaHost = service.Host
	}
}

// unwritten returns why nothing is written to nova, or what is due could not be; nil
// if neither is so.
func (s *Registration) unwritten() *phase.Halt {
	t := novav1.ComputeServiceReadyCondition
	switch {
	case s.conflict != nil:
		return phase.Stalled(t, s.conflict.Reason, "%s", s.conflict.Message)
	case s.unchanged != nil:
		return phase.Failing(t, s.unchanged.Reason, "The service is to be disabled or enabled, but %s. It is tried again automatically", s.unchanged.Message)
	}
	return nil
}

// judgeService returns what keeps nova from putting a guest on the compute.
func (s *Registration) judgeService() *phase.Halt {
	service, trouble := s.compute.Status.ComputeService, s.view.Trouble
	t := novav1.ComputeServiceReadyCondition
	if halt := s.unwritten(); halt != nil {
		return halt
	}
	switch {
	case trouble != nil && isUnsure(service):
		return phase.Failing(t, trouble.Reason, "%s. It is tried again automatically", trouble.Message)
	case service == nil && s.compute.Status.NovaHost != "":
		return phase.Waiting(t, novav1.ServiceNotReportedReason,
			"nova no longer has a service nova-compute of host %s, the name of the compute in status.novaHost. Waiting for it to report again: see its log on the host", s.compute.Status.NovaHost)
	case service == nil:
		return phase.Waiting(t, novav1.ServiceNotReportedReason,
			"Waiting for nova-compute to report to nova as host %s. If it does not, see its log on the host; if the host has another name there, set %s in ansibleVars of the node",
			strings.Join(s.hostNames(), " or "), hostVar)
	case service.Duplicated:
		return phase.Stalled(t, novav1.ServiceDuplicatedReason,
			"nova has services nova-compute of host %s in two cells: delete the one that is down with openstack compute service delete, after its guests", service.Host)
	case !service.Up:
		return phase.Failing(t, novav1.ServiceDownReason, "%s", downText(service, s.compute.Spec.CellName, s.cellTrouble))
	case !service.Mapped:
		return phase.Waiting(t, novav1.HostNotMappedReason, "Waiting until host %s is mapped to its cell: see condition %s of Nova %s", service.Host, novav1.NovaComputeServicesReadyCondition, s.api.Name)
	case service.RestartedAt != nil:
		return phase.Waiting(t, novav1.ServiceNotReportedReason,
			"Waiting for nova-compute on host %s to report to nova since step %s ended at %s. If it does not, see its log on the host", service.Host, novav1.NovaStep, service.RestartedAt.UTC().Format(time.RFC3339))
	case service.Disabled:
		return phase.Waiting(t, novav1.ServiceDisabledReason, "nova puts no guest on host %s: %s", service.Host, disabledText(service))
	}
	return nil
}

// isUnsure reports whether it takes another answer of nova to know that a service works.
func isUnsure(service *novav1.ComputeServiceStatus) bool {
	return service == nil || !service.Mapped || service.Up && service.RestartedAt != nil
}

// disabledText says who disables a service, and how it is enabled.
func disabledText(service *novav1.ComputeServiceStatus) string {
	if service.DisabledFor != "" {
		return fmt.Sprintf("annotation %s of the node disables its service (%s). Remove the annotation to enable it", common.DisableAnnotation, service.DisabledReason)
	}
	return fmt.Sprintf("its service is disabled (%s). Enable it with openstack compute service set --enable %s nova-compute", reasonText(service.DisabledReason), service.Host)
}

// CellTrouble is the reason why a cell is not Ready, empty if it is. It changes rarely: all
// computes of the cell are looked at when it does.
func CellTrouble(cell client.Object) condition.Reason {
	c := cell.(*novav1.NovaCell)
	ready := c.Status.Conditions.Get(condition.ReadyCondition)
	if c.IsReady() || ready == nil {
		return ""
	}
	return ready.Reason
}

func downText(service *novav1.ComputeServiceStatus, cell string, trouble condition.Reason) string {
	text := "nova-compute on host " + service.Host + " has not reported to nova"
	switch {
	case service.ForcedDown:
		return "nova-compute on host " + service.Host + " is forced down. When the host is back, run openstack compute service set --up " + service.Host + " nova-compute"
	case service.DownSince != nil:
		text += " since " + service.DownSince.UTC().Format(time.RFC3339)
	}
	if trouble != "" {
		return fmt.Sprintf("%s, and NovaCell %s is not Ready (%s): see its conditions, as nova-compute needs its message bus and its conductor", text, cell, trouble)
	}
	return text + ": see the unit edpm_nova_compute on the host, and the message bus of the cell"
}

func reasonText(reason string) string {
	if reason == "" {
		return "without a reason"
	}
	return reason
}
