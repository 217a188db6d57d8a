package registration

import (
	"context"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// service is one service nova-compute in nova, on a host or in a pod, in one
// reconciliation of its compute.
type service struct {
	reader   client.Reader
	observer *computeservice.Observer
	name     computeservice.Name
	cellName string
	// status is where the compute shows the service.
	status **novav1.ComputeServiceStatus
	// findRival returns that another compute has the host of this name, nil if none has.
	findRival func(ctx context.Context, api *novav1.Nova, host string) (*computeservice.Trouble, error)
	// warn reports as an event what is left in nova.
	warn func(reason, format string, args ...any)
	// toDisable returns the reason with which the service is to be disabled, if it is.
	toDisable func() (reason string, wanted bool)
	// drainedFor is what has guests moved off the host, empty for nothing; nil where none are.
	drainedFor func() string
	// fence returns that the host is off, or was; nil where that cannot be.
	fence func() *novav1.FenceStatus
	words words

	// api is the Nova that is asked for the service, nil if none is, and view what it said.
	api  *novav1.Nova
	view computeservice.View
	// cellTrouble is why the cell is not Ready.
	cellTrouble condition.Reason
	// conflict is that another compute has the service, nil if none does.
	conflict *computeservice.Trouble
	// unchanged is why the service could not be disabled or enabled in nova.
	unchanged *computeservice.Trouble
	leaving   leaving
}

// words of messages that differ between hosts and pods.
type words struct {
	// log of nova-compute, and where to look when it is down.
	log, look string
	// renamed is what to do if the host has another name in nova, empty for what has none.
	renamed string
	// recorded is that nova knew the host by its name, empty if that is not recorded.
	recorded string
}

// fenced returns that the host is off, or was and nova does not use it yet; nil if neither.
func (s *service) fenced() *novav1.FenceStatus {
	if s.fence == nil {
		return nil
	}
	return s.fence()
}

// isOff reports whether the host is off.
func (s *service) isOff() bool { return s.fenced() != nil && !s.fenced().Ended }

// observe has the service observed, and shows what is known of it. What is to be disabled
// or enabled is.
func (s *service) observe(ctx context.Context, cell *novav1.NovaCell, api *novav1.Nova, hosts []string) error {
	s.api, s.cellTrouble = api, CellTrouble(cell)
	s.view = s.ask(hosts)
	if s.view.Asked {
		s.show(s.view.Service)
	}
	if known := *s.status; known != nil {
		var err error
		s.conflict, err = s.findRival(ctx, api, known.Host)
		return err
	}
	return nil
}

// ask returns what nova says of the service.
func (s *service) ask(hosts []string) computeservice.View {
	subject := computeservice.Subject{Name: s.name, Hosts: hosts}
	if known := *s.status; known != nil {
		if known.Mapped {
			subject.Mapped, subject.ComputeID = known.ID, known.ComputeID
		}
		if known.RestartedAt != nil {
			subject.Since = known.RestartedAt.Time
		}
	}
	return s.observer.Observe(client.ObjectKeyFromObject(s.api), subject)
}

// show puts what nova says of the service into the status.
func (s *service) show(service computeservice.Service) {
	known, now := *s.status, serviceStatus(service)
	if now != nil && known != nil && now.ID == known.ID {
		now.DisabledFor, now.RestartedAt = known.DisabledFor, known.RestartedAt
	}
	s.view.Service, *s.status = service, now
}

// serviceStatus is what is shown of a service: nothing that differs while nothing
// has changed.
func serviceStatus(service computeservice.Service) *novav1.ComputeServiceStatus {
	if service.ID == "" {
		return nil
	}
	status := &novav1.ComputeServiceStatus{
		ID: service.ID, Host: service.Host, Up: service.Up, ForcedDown: service.ForcedDown, Mapped: service.Mapped, Duplicated: service.Rival,
		Disabled: service.Disabled, DisabledReason: service.DisabledReason, ComputeID: service.ComputeID,
	}
	if !service.Up && !service.Seen.IsZero() {
		status.DownSince = ptr.To(metav1.NewTime(service.Seen))
	}
	return status
}

// findAPI returns a cell, and the Nova that runs the API of it, nil if none does.
func findAPI(ctx context.Context, reader client.Reader, namespace, cellName string) (*novav1.NovaCell, *novav1.Nova, error) {
	cell, nova := &novav1.NovaCell{}, &novav1.Nova{}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: cellName}, cell); err != nil {
		return cell, nil, client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOf(cell)
	if owner == nil || owner.Kind != "Nova" {
		return cell, nil, nil
	}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: cell.Namespace, Name: owner.Name}, nova); err != nil {
		return cell, nil, client.IgnoreNotFound(err)
	}
	if nova.UID != owner.UID || !Observes(nova) {
		return cell, nil, nil
	}
	return cell, nova, nil
}

// askable returns a client of a Nova. Before the Nova was looked at by a manager that has
// just been started the attempt is repeated, and nothing is said.
func (s *service) askable(ctx context.Context, api *novav1.Nova) (*computeservice.Client, error) {
	if isUnseen(s.observer, api) {
		return nil, apply.CacheBehind(api, "Nova")
	}
	return s.observer.Client(ctx, client.ObjectKeyFromObject(api))
}

// isUnseen reports whether a manager that has just been started has yet to look at a Nova, whose
// API it can ask then.
func isUnseen(observer *computeservice.Observer, api *novav1.Nova) bool {
	return !observer.Configured(client.ObjectKeyFromObject(api)) && api.Status.Conditions.IsTrue(condition.InputReadyCondition)
}

// BusyOf returns what tells what the host of a NovaExternalCompute does in nova that a restart of
// nova-compute would interrupt: nothing if nova does not know the host, and if nova cannot be asked,
// which is not to keep anyone from repairing it. The host is the one that the compute shows: a manager
// that has just been started has not listed the services yet.
func BusyOf(reader client.Reader, observer *computeservice.Observer) func(context.Context, client.Object) edpm.Busy {
	return func(ctx context.Context, obj client.Object) edpm.Busy {
		compute := obj.(*novav1.NovaExternalCompute)
		service := compute.Status.ComputeService
		if service == nil || service.ForcedDown { // nova-compute does nothing on a host that was off
			return edpm.Busy{}
		}
		_, api, err := findAPI(ctx, reader, compute.Namespace, compute.Spec.CellName)
		switch {
		case err != nil || api == nil:
			return edpm.Busy{}
		case isUnseen(observer, api):
			return edpm.Busy{With: "the operators have just been started, and have not asked nova yet what it does on the host", Again: unseenFor}
		}
		nova, err := observer.Client(ctx, client.ObjectKeyFromObject(api))
		if err != nil {
			return edpm.Busy{}
		}
		return edpm.Busy{With: nova.Busy(ctx, service.Host)}
	}
}

// unseenFor is how long a manager takes to look at a Nova after its start, unless it has much to do.
const unseenFor = time.Second

// notObserved is the condition of a service whose cell no Nova with an API manages.
func notObserved(cellName string) *condition.Condition {
	c := condition.TrueCondition(novav1.ComputeServiceReadyCondition, "Not observed: no Nova with an API manages NovaCell %s", cellName)
	c.Reason = novav1.NotObservedReason
	return c
}

// follow has the compute looked at again, as nova tells no one when a guest has moved.
func (s *service) follow(soon bool) {
	if s.api != nil {
		s.observer.Follow(client.ObjectKeyFromObject(s.api), s.name, soon)
	}
}

// await says that the service should be up by now.
func (s *service) await() { s.observer.Await(client.ObjectKeyFromObject(s.api), s.name) }

// unwritten returns why nothing is written to nova, or what is due could not be; nil
// if neither is so.
func (s *service) unwritten() *phase.Halt {
	t := novav1.ComputeServiceReadyCondition
	switch {
	case s.conflict != nil:
		return phase.Stalled(t, s.conflict.Reason, "%s", s.conflict.Message)
	case s.unchanged != nil:
		return phase.Failing(t, s.unchanged.Reason, "The service cannot be disabled or enabled: %s. It is tried again automatically", s.unchanged.Message)
	}
	return nil
}
