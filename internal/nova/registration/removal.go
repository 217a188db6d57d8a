package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// removalReason is with which the service of a compute is disabled that is being
// deleted. By it the service is known when the host comes back.
const removalReason = "edpm-operators: the compute is being removed"

// leaving is what nova has of a compute that is being deleted.
type leaving struct {
	*computeservice.Client
	service   computeservice.Service // without an id if there is none
	instances int
	// isCounted reports whether nova was asked for the instances, and migrations are the newest from or
	// to the host, also those that have ended.
	isCounted  bool
	migrations []computeservice.Migration
	// present reports whether the pod is still there, and gone whether nothing is left to do.
	present, gone bool
}

// Drain is the phase that has nova put no more guests on the host, and waits until
// there are none.
func (s *Registration) Drain(ctx context.Context) error {
	s.noteFence()
	s.endDrain() // no step is run any more
	err := s.disableForRemoval(ctx)
	s.countGuests()
	switch {
	case s.SkipCleanup(): // Leave reports what is left
		return s.onlyFault(err)
	case err != nil:
		return s.unaskable(err)
	case s.leaving.service.ID != "" && (s.wantsDrain() || s.isOff() || s.previous != nil): // what a drain has begun is completed
		return s.moveForRemoval(ctx)
	}
	return s.occupants()
}

// countGuests shows how many guests nova has on the host, if it could be asked.
func (s *Registration) countGuests() {
	if s.leaving.isCounted {
		s.compute.Status.Guests = &novav1.GuestsStatus{Total: int32(s.leaving.instances)}
	}
}

// occupants waits until nova has nothing on the host, if it does not move that.
func (s *Registration) occupants() error {
	if s.leaving.instances > 0 {
		return s.occupied("", false)
	}
	return s.migrating()
}

// disableForRemoval finds the service and has nova disable it.
func (s *Registration) disableForRemoval(ctx context.Context) error {
	if err := s.findService(ctx); err != nil {
		return err
	}
	return s.retire(ctx)
}

// findService finds the service of the compute, if it has put one on the host: nova may
// have one of that name which is another user's. That it is another compute's is the error.
func (s *Registration) findService(ctx context.Context) error {
	_, api, err := findAPI(ctx, s.reader, s.compute.Namespace, s.cellName)
	if err != nil || api == nil {
		return err
	}
	if touched, err := s.Touched(ctx); err != nil || !touched {
		return err
	}
	_ = s.ReadVars(ctx) // the names are good without them as well
	hosts, known := s.hostNames(), s.compute.Status.ComputeService
	if s.compute.Status.NovaHost == "" && known != nil {
		hosts = []string{known.Host}
	}
	return s.find(ctx, api, hosts)
}

// find finds the service by one of its hosts' names in nova. That it is another compute's
// is the error.
func (s *service) find(ctx context.Context, api *novav1.Nova, hosts []string) error {
	var err error
	if s.leaving.Client, err = s.askable(ctx, api); err != nil {
		return err
	}
	for _, host := range hosts {
		found, err := s.leaving.Find(ctx, host)
		if err != nil {
			return err
		}
		i := pick(found, *s.status)
		if i < 0 {
			continue
		}
		conflict, err := s.findRival(ctx, api, host)
		if err != nil {
			return err
		}
		if conflict != nil {
			return conflict
		}
		s.leaving.service = found[i]
		return nil
	}
	return nil
}

// retire has nova disable the service that was found, and reads what it has there. That of a host
// that is off is forced down as well.
func (s *service) retire(ctx context.Context) error {
	l := &s.leaving
	if l.service.ID == "" {
		return nil
	}
	var change computeservice.Change
	if !l.service.Disabled || annotated(*s.status, l.service.DisabledReason) {
		change = computeservice.Disable(removalReason)
	}
	if s.isOff() && !l.service.ForcedDown {
		change = change.ForceDown(true)
	}
	if err := l.put(ctx, change); err != nil {
		return err
	}
	return l.count(ctx)
}

// count reads what nova has on the host: guests, and migrations from or to it. A guest that waits for
// the confirmation of its resize is on another host, and needs the nova-compute of both.
func (l *leaving) count(ctx context.Context) error {
	guests, err := l.Guests(ctx, l.service.Host)
	if err != nil {
		return err
	}
	l.instances, l.isCounted = len(guests), true
	l.migrations, err = l.Migrations(ctx, l.service.Host)
	return err
}

// put changes the service, if anything is to be changed.
func (l *leaving) put(ctx context.Context, change computeservice.Change) error {
	if change == nil {
		return nil
	}
	updated, err := l.Update(ctx, l.service, change)
	if err != nil {
		// nova notes it before it calls a nova-compute that is up, which may just have died
		// (nova/compute/api.py, _update_compute_provider_status).
		if fresh, failure := l.Refresh(ctx, l.service); failure == nil && fresh.Disabled && fresh.DisabledReason == removalReason {
			updated, err = fresh, nil
		}
	}
	if err == nil {
		l.service = updated
	}
	return err
}

// showRetired shows the service as it was read to be retired.
func (s *service) showRetired() {
	if fresh, known := s.leaving.service, *s.status; fresh.ID != "" {
		if known != nil && known.ID == fresh.ID { // only the list says so
			fresh.Mapped, fresh.ComputeID, fresh.Rival = known.Mapped, known.ComputeID, known.Duplicated
		}
		s.show(fresh)
	}
}

// pick returns which of the services of a host is the one that is known, or the only one;
// -1 if none is.
func pick(found []computeservice.Service, known *novav1.ComputeServiceStatus) int {
	i := slices.IndexFunc(found, func(f computeservice.Service) bool { return known != nil && f.ID == known.ID })
	if i < 0 && len(found) == 1 {
		return 0
	}
	return i
}

// Leave is the phase that deletes the service, with which its host mapping and its
// resource provider go.
func (s *Registration) Leave(ctx context.Context) error {
	deleted, err := s.leave(ctx, s.SkipCleanup())
	switch {
	case err != nil:
		return s.unaskable(err)
	case !deleted:
		return cmp.Or(s.occupants(), error(s.refused()))
	}
	return nil
}

// leave deletes the service, and returns false if nova refuses that because of instances or migrations.
// Without clean-up it stays where it could be needed: guests can be evacuated then, or
// nova-compute may still run.
func (s *service) leave(ctx context.Context, skipCleanup bool) (bool, error) {
	l := &s.leaving
	if l.service.ID == "" {
		return true, nil
	}
	mayRun := l.service.Up || l.service.ForcedDown && !s.isOff() // nova hides whether one that is forced down runs
	if skipCleanup && (mayRun || l.instances > 0) {
		s.leaveService()
		return true, nil
	}
	deleted, err := l.Delete(ctx, l.service)
	if err == nil && !deleted { // an instance, or a migration of one, is new
		err = l.count(ctx)
	}
	switch {
	case skipCleanup && err != nil:
		return true, s.onlyFault(err)
	case skipCleanup && !deleted:
		s.leaveService()
		return true, nil
	}
	return deleted, err
}

// leaveService reports that nova keeps the service.
func (s *service) leaveService() {
	l := &s.leaving
	state := "disabled"
	if l.service.ForcedDown {
		state = "disabled and forced down"
	}
	s.warn(novav1.ServiceLeftEvent,
		"nova keeps the service nova-compute of host %s (%d instances), which is %s: once the host is off, force it down with openstack compute service set --down, evacuate its instances, then run openstack compute service delete %s",
		l.service.Host, l.instances, state, l.service.ID)
}

// onlyFault is the error unless it says that nova cannot be asked, or is not to be: a compute that is
// deleted without clean-up does not wait for nova.
func (s *service) onlyFault(err error) error {
	trouble := (*computeservice.Trouble)(nil)
	if !errors.As(err, &trouble) {
		return err
	}
	remedy := ". Delete it with openstack compute service delete"
	if trouble.Reason == novav1.ServiceConflictReason { // it is the other compute's
		remedy = ""
	}
	s.warn(novav1.ServiceLeftEvent, "The service nova-compute of the host was left in nova as it is: %s%s", trouble.Message, remedy)
	return nil
}

// unaskable turns the error of a request to nova into a *phase.Halt.
func (s *Registration) unaskable(err error) error {
	trouble := (*computeservice.Trouble)(nil)
	if !errors.As(err, &trouble) {
		return err
	}
	halt := phase.Failing(novav1.ComputeServiceReadyCondition, trouble.Reason,
		"Deleting: the service cannot be disabled and deleted in nova: %s. It is tried again automatically; to delete the compute without it, set annotation %s: \"true\"", trouble.Message, common.SkipCleanupAnnotation)
	halt.After = s.observer.Pause(false)
	return halt
}

// occupied waits for the last guest to leave, or to be moved: what is shown of the drain is
// empty if there is none. nova tells no one when a guest leaves.
func (s *Registration) occupied(drain string, soon bool) error {
	remedy := fmt.Sprintf("Move them with kubectl edpm drain %s (annotation %s), or migrate or delete them, and it continues automatically", s.compute.Spec.DataplaneNodeName, common.DrainAnnotation)
	if drain != "" {
		remedy = drain
	}
	halt := phase.Stalled(novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason,
		"Deleting: host %s has %d instances, and gets no new ones. %s. If the host is off, kubectl edpm fence %s (annotation %s) has them evacuated",
		s.leaving.service.Host, s.leaving.instances, remedy, s.compute.Spec.DataplaneNodeName, common.FenceAnnotation)
	halt.After = s.observer.Pause(soon)
	return halt
}

// migrating waits for the end of the migrations from or to the host, of which nova tells no one: the
// nova-compute there completes them, and nova deletes no service before. It is nil if there are none.
func (s *Registration) migrating() error {
	l := &s.leaving
	text, needsPerson := drain.Open(drain.Host{Name: l.service.Host, Migrations: l.migrations, Now: time.Now()})
	if text == "" {
		return nil
	}
	end := phase.Waiting
	if needsPerson {
		end = phase.Stalled
	}
	halt := end(novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason,
		"Deleting: migrations from or to host %s have not ended, which need its nova-compute: %s. It continues automatically. If the host is off, kubectl edpm fence %s (annotation %s) says so",
		l.service.Host, text, s.compute.Spec.DataplaneNodeName, common.FenceAnnotation)
	halt.After = s.observer.Pause(!needsPerson)
	return halt
}

// refused waits for what nova did not delete the service for, and no longer shows.
func (s *Registration) refused() *phase.Halt {
	halt := phase.Waiting(novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason,
		"Deleting: nova did not delete the service of host %s because of instances or migrations. It is tried again automatically", s.leaving.service.Host)
	halt.After = s.observer.Pause(true)
	return halt
}
