package registration

import (
	"fmt"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// judge returns what keeps nova from putting a guest on the compute, whose host has one of
// the names in nova.
func (s *service) judge(hosts []string) *phase.Halt {
	service, trouble := *s.status, s.view.Trouble
	t := novav1.ComputeServiceReadyCondition
	if halt := s.unwritten(); halt != nil {
		return halt
	}
	if fence := s.fenced(); fence != nil {
		return judgeFenced(fence, strings.Join(hosts, " or "))
	}
	switch {
	case trouble != nil && isUnsure(service):
		return phase.Failing(t, trouble.Reason, "%s. It is tried again automatically", trouble.Message)
	case service == nil && s.words.recorded != "":
		return phase.Waiting(t, novav1.ServiceNotReportedReason,
			"nova no longer has a service nova-compute of host %s, the name of the compute in status.novaHost. Waiting for it to report again: see %s", s.words.recorded, s.words.log)
	case service == nil:
		return phase.Waiting(t, novav1.ServiceNotReportedReason,
			"Waiting for nova-compute to report to nova as host %s. If it does not, see %s%s", strings.Join(hosts, " or "), s.words.log, s.words.renamed)
	case service.Duplicated:
		return phase.Stalled(t, novav1.ServiceDuplicatedReason,
			"nova has services nova-compute of host %s in two cells: delete the one that is down with openstack compute service delete, after its guests", service.Host)
	case !service.Up:
		return phase.Failing(t, novav1.ServiceDownReason, "%s", s.downText(service))
	case !service.Mapped:
		return phase.Waiting(t, novav1.HostNotMappedReason, "Waiting until host %s is mapped to its cell: see condition %s of Nova %s", service.Host, novav1.NovaComputeServicesReadyCondition, s.api.Name)
	case service.RestartedAt != nil:
		return phase.Waiting(t, novav1.ServiceNotReportedReason,
			"Waiting for nova-compute on host %s to report to nova since step %s ended at %s. If it does not, see %s", service.Host, novav1.NovaStep, service.RestartedAt.UTC().Format(time.RFC3339), s.words.log)
	case service.Disabled:
		return s.judgeDisabled()
	}
	return nil
}

// judgeFenced says that nova does not use the host.
func judgeFenced(fence *novav1.FenceStatus, host string) *phase.Halt {
	text := "is off, as " + fence.By + " says"
	if fence.Ended {
		text = "was off, and returns"
	}
	return phase.Waiting(novav1.ComputeServiceReadyCondition, novav1.HostFencedReason, "nova puts no guest on host %s, because it %s: see condition %s", host, text, novav1.EvacuatedCondition)
}

// isUnsure reports whether it takes another answer of nova to know that a service works.
func isUnsure(service *novav1.ComputeServiceStatus) bool {
	return service == nil || !service.Mapped || service.Up && service.RestartedAt != nil
}

// judgeDisabled says why the service is disabled, and who can enable it.
func (s *service) judgeDisabled() *phase.Halt {
	service, t := *s.status, novav1.ComputeServiceReadyCondition
	switch {
	case s.drainedFor != nil && s.drainedFor() != "":
		return phase.Waiting(t, novav1.HostDrainedReason, "nova puts no guest on host %s, because it is drained (%s): condition %s shows the progress",
			service.Host, s.drainedFor(), novav1.DrainedCondition)
	case service.DisabledFor != "":
		return phase.Waiting(t, novav1.ServiceDisabledReason, "nova puts no guest on host %s: annotation %s of the node disables its service (%s). Remove the annotation to enable it",
			service.Host, common.DisableAnnotation, service.DisabledReason)
	}
	return phase.Waiting(t, novav1.ServiceDisabledReason, "nova puts no guest on host %s: its service is disabled (%s). Enable it with openstack compute service set --enable %s nova-compute",
		service.Host, reasonText(service.DisabledReason), service.Host)
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

func (s *service) downText(service *novav1.ComputeServiceStatus) string {
	text := "nova-compute on host " + service.Host + " has not reported to nova"
	switch {
	case service.ForcedDown:
		return "nova-compute on host " + service.Host + " is forced down. When the host is back, run openstack compute service set --up " + service.Host + " nova-compute"
	case service.DownSince != nil:
		text += " since " + service.DownSince.UTC().Format(time.RFC3339)
	}
	if s.cellTrouble != "" {
		return fmt.Sprintf("%s, and NovaCell %s is not Ready (%s): see its conditions, as nova-compute needs its message bus and its conductor", text, s.cellName, s.cellTrouble)
	}
	return text + ": see " + s.words.look + ", and the message bus of the cell"
}

func reasonText(reason string) string {
	if reason == "" {
		return "without a reason"
	}
	return reason
}
