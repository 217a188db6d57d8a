package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// PodServices are the services of the pods of one NovaCompute in nova, in one
// reconciliation. Each pod is a host of its name.
type PodServices struct {
	reader   client.Reader
	observer *computeservice.Observer
	events   events.EventRecorder
	compute  *novav1.NovaCompute
	// wanted is how many pods there are to be, and running how many there may be now.
	wanted, running int32
	// known are the hosts of which the status in the API tells.
	known []string
	// api is the Nova that is asked for the services, nil if none is.
	api *novav1.Nova
	// staying are those of pods that are wanted, and leaving those of others.
	staying, leaving []*service
	// faults are why services of pods that are not wanted cannot be disabled, by host.
	faults map[string]*computeservice.Trouble
}

// NewPodServices returns the services of a NovaCompute that is to have so many pods, and
// may have others now.
func NewPodServices(reader client.Reader, observer *computeservice.Observer, recorder events.EventRecorder, compute *novav1.NovaCompute, wanted, running int32) *PodServices {
	p := &PodServices{
		reader: reader, observer: observer, events: recorder, compute: compute, wanted: wanted, running: running,
		faults: map[string]*computeservice.Trouble{},
	}
	for _, host := range compute.Status.Hosts {
		p.known = append(p.known, host.Name)
	}
	return p
}

// Observe finds out what nova says of the services, and has nova put nothing more on those
// whose pods are not wanted. It halts for nothing.
func (p *PodServices) Observe(ctx context.Context) error {
	cell, api, err := findAPI(ctx, p.reader, p.compute.Namespace, p.compute.Spec.CellName)
	if err != nil {
		return err
	}
	p.api = api
	p.list()
	for _, s := range slices.Concat(p.staying, p.leaving) {
		if api == nil {
			*s.status = nil
			continue
		}
		if err := s.observe(ctx, cell, api, []string{s.name.Pod}); err != nil {
			return err
		}
	}
	if api == nil {
		p.observer.WithdrawPods(client.ObjectKeyFromObject(p.compute))
		return nil
	}
	return p.adjust(ctx)
}

// list has every pod that there is, or is to be, in the status.
func (p *PodServices) list() {
	status := &p.compute.Status
	for i := range max(p.wanted, p.running) {
		if name := podified.PodName(p.compute.Name, int(i)); !slices.ContainsFunc(status.Hosts, func(h novav1.PodHostStatus) bool { return h.Name == name }) {
			status.Hosts = append(status.Hosts, novav1.PodHostStatus{Name: name})
		}
	}
	slices.SortFunc(status.Hosts, func(a, b novav1.PodHostStatus) int { return int(p.ordinal(a.Name) - p.ordinal(b.Name)) })
	for i := range status.Hosts {
		s := p.service(&status.Hosts[i])
		if p.ordinal(s.name.Pod) < p.wanted {
			p.staying = append(p.staying, s)
		} else {
			p.leaving = append(p.leaving, s)
		}
	}
}

func (p *PodServices) ordinal(host string) int32 {
	return int32(podified.Ordinal(p.compute.Name, host))
}

func (p *PodServices) service(host *novav1.PodHostStatus) *service {
	log := fmt.Sprintf("kubectl logs --namespace %s %s", p.compute.Namespace, host.Name)
	return &service{
		reader: p.reader, observer: p.observer, name: computeservice.Name{NamespacedName: client.ObjectKeyFromObject(p.compute), Pod: host.Name},
		cellName: p.compute.Spec.CellName, status: &host.ComputeService, findRival: p.findRival,
		warn: func(reason, format string, args ...any) {
			p.events.Eventf(p.compute, nil, corev1.EventTypeWarning, reason, "Deleting", format, args...)
		},
		toDisable: func() (string, bool) { return "", false },
		words:     words{log: log, look: log},
	}
}

// findRival returns that a compute on a host has taken the name of a pod: what is written
// to nova for the pod would hit that.
func (p *PodServices) findRival(ctx context.Context, api *novav1.Nova, host string) (*computeservice.Trouble, error) {
	s := &service{reader: p.reader}
	other, err := s.occupant(ctx, api, host, func(other *novav1.NovaExternalCompute) bool { return other.Status.NovaHost != "" })
	if err != nil || other == "" {
		return nil, err
	}
	return &computeservice.Trouble{Reason: novav1.ServiceConflictReason, Message: fmt.Sprintf(
		"NovaCompute %s and NovaExternalCompute %s both register host %s in nova; nova is not updated for the pod. Delete the node of the NovaExternalCompute, and give its host another name",
		p.compute.Name, other, host)}, nil
}

// adjust has nova enable the services that are wanted, if the operator has disabled them,
// and disable the others.
func (p *PodServices) adjust(ctx context.Context) error {
	for _, s := range p.staying {
		if err := s.adjust(ctx, true); err != nil {
			return err
		}
	}
	for _, s := range p.leaving {
		err := s.find(ctx, p.api, []string{s.name.Pod})
		if err == nil {
			err = s.retire(ctx)
		}
		s.showRetired()
		if trouble := (*computeservice.Trouble)(nil); errors.As(err, &trouble) {
			p.faults[s.name.Pod] = trouble
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Keep is how many pods the StatefulSet is to have: with those that are wanted, those that
// cannot leave yet.
func (p *PodServices) Keep() int32 {
	keep := p.wanted
	for _, s := range p.leaving {
		if p.stays(s) {
			keep = max(keep, p.ordinal(s.name.Pod)+1)
		}
	}
	return keep
}

// stays reports whether a pod that is not wanted has to stay.
func (p *PodServices) stays(s *service) bool {
	return p.api != nil && (p.unrecorded(s) || !p.skipCleanup() && (p.faults[s.name.Pod] != nil || s.leaving.instances > 0))
}

func (p *PodServices) skipCleanup() bool {
	return p.compute.Annotations[common.SkipCleanupAnnotation] == "true"
}

// Leave deletes the services of pods that are no longer there in nova. exists reports
// whether a pod is, which would make a compute node and a resource provider without a
// service.
func (p *PodServices) Leave(ctx context.Context, exists func(pod string) bool) error {
	for _, s := range p.leaving {
		if s.leaving.present = exists(s.name.Pod); p.stays(s) {
			continue
		}
		var err error
		if s.leaving.gone, err = p.leave(ctx, s); err != nil {
			return err
		}
	}
	p.forget()
	return nil
}

// leave reports whether nova no longer has the service of a pod, or is not to be asked.
func (p *PodServices) leave(ctx context.Context, s *service) (bool, error) {
	trouble, l := p.faults[s.name.Pod], &s.leaving
	switch {
	case trouble != nil: // clean-up is skipped
		return true, s.onlyFault(trouble)
	case p.skipCleanup() && l.service.ID != "" && (l.present || l.instances > 0):
		p.abandon(s)
		return true, nil
	case l.present:
		return false, nil
	}
	deleted, err := s.leave(ctx, false)
	if errors.As(err, &trouble) {
		p.faults[s.name.Pod] = trouble
		return false, nil
	}
	if err == nil && !deleted && p.skipCleanup() {
		p.abandon(s)
		return true, nil
	}
	return deleted, err
}

// abandon reports that nova keeps a service.
func (p *PodServices) abandon(s *service) {
	s.warn(novav1.ServiceLeftEvent, "nova keeps the service nova-compute of pod %s (%d instances), which is disabled: delete its instances, then run openstack compute service delete %s",
		s.name.Pod, s.leaving.instances, s.leaving.service.ID)
}

// forget removes the pods whose services no longer concern anyone.
func (p *PodServices) forget() {
	p.leaving = slices.DeleteFunc(p.leaving, func(s *service) bool { return s.leaving.gone })
	var hosts []novav1.PodHostStatus
	var names []string
	for _, s := range slices.Concat(p.staying, p.leaving) {
		hosts, names = append(hosts, novav1.PodHostStatus{Name: s.name.Pod, ComputeService: *s.status}), append(names, s.name.Pod)
	}
	p.compute.Status.Hosts = hosts
	p.observer.WithdrawPods(client.ObjectKeyFromObject(p.compute), names...)
}

// Ready returns what keeps nova from putting guests on the pods that are wanted, or from
// letting the others go.
func (p *PodServices) Ready() error {
	if halt := p.Leaving(); halt != nil {
		return halt
	}
	conditions := &p.compute.Status.Conditions
	if p.api == nil {
		conditions.Set(notObserved(p.compute.Spec.CellName))
		return nil
	}
	var halts []*phase.Halt
	for _, s := range p.staying {
		s.await()
		if halt := s.judge([]string{s.name.Pod}); halt != nil {
			halts = append(halts, halt)
		}
	}
	if len(halts) > 0 {
		return worst(halts, p.observer.Pause(false))
	}
	conditions.MarkTrue(novav1.ComputeServiceReadyCondition, "nova-compute in %d pods is up and mapped to its cell", len(p.staying))
	return nil
}

// worst returns the first of the halts that are worst, and says how many others there are.
// A conflict ends without an event.
func worst(halts []*phase.Halt, interval time.Duration) *phase.Halt {
	order := []condition.Severity{condition.SeverityError, condition.SeverityWarning, condition.SeverityInfo}
	first := slices.MinFunc(halts, func(a, b *phase.Halt) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	if n := len(halts) - 1; n > 0 {
		first.Message += fmt.Sprintf(". %d more pods are not ready in nova: see status.hosts", n)
	}
	if first.Reason == novav1.ServiceConflictReason {
		first.After = interval
	}
	return first
}

// Leaving returns what pods that are not wanted wait for; nil if there are none.
func (p *PodServices) Leaving() *phase.Halt {
	t, doing := novav1.ComputeServiceReadyCondition, fmt.Sprintf("Scaling down to %d pods", p.wanted)
	if !p.compute.DeletionTimestamp.IsZero() {
		doing = "Deleting"
	}
	var halt *phase.Halt
	occupied, trouble := p.occupied()
	switch {
	case len(p.leaving) == 0:
		return nil
	case trouble != nil && trouble.Reason == novav1.ServiceConflictReason:
		halt = phase.Stalled(t, trouble.Reason, "%s: %s", doing, trouble.Message)
	case trouble != nil:
		halt = phase.Failing(t, trouble.Reason, "%s: services cannot be disabled and deleted in nova: %s. It is tried again automatically; to continue without it, set annotation %s: \"true\"", doing, trouble.Message, common.SkipCleanupAnnotation)
	case len(occupied) > 0:
		halt = phase.Stalled(t, novav1.InstancesPresentReason, "%s: nova has instances on hosts %s, which get no new ones. Delete them, or move them where the driver can, and it continues automatically. To continue without that, set annotation %s: \"true\"",
			doing, names.List(occupied, names.Few), common.SkipCleanupAnnotation)
	default:
		halt = phase.Waiting(t, novav1.PodsLeavingReason, "%s: waiting until %s no longer run, to delete their services in nova", doing, names.List(p.names(), names.Few))
	}
	halt.After = p.observer.Pause(false)
	if slices.ContainsFunc(p.leaving, p.unrecorded) {
		halt.After = time.Second
	}
	return halt
}

// unrecorded reports whether the status in the API does not tell of a pod: it is known by
// that once it has ended.
func (p *PodServices) unrecorded(s *service) bool { return !slices.Contains(p.known, s.name.Pod) }

// occupied are the hosts with instances, with their numbers, and why nova cannot be asked.
func (p *PodServices) occupied() (hosts []string, trouble *computeservice.Trouble) {
	for _, s := range p.leaving {
		trouble = cmp.Or(trouble, p.faults[s.name.Pod])
		if n := s.leaving.instances; n > 0 {
			hosts = append(hosts, fmt.Sprintf("%s (%d instances)", s.name.Pod, n))
		}
	}
	return hosts, trouble
}

// names of the pods that are not wanted.
func (p *PodServices) names() []string {
	var names []string
	for _, s := range p.leaving {
		names = append(names, s.name.Pod)
	}
	return names
}
