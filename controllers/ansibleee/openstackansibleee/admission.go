package openstackansibleee

import (
	"context"
	"fmt"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/hostlock"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

const (
	// hostIndex has the hosts of the runs that have not ended.
	hostIndex = "ansibleee.host"
	// machineIndex has their machines.
	machineIndex = "ansibleee.machine"
)

func indexHosts(obj client.Object) []string {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if ended(run.Status.JobStatus) {
		return nil
	}
	hosts := make([]string, 0, len(run.Spec.Targets))
	for _, t := range run.Spec.Targets {
		hosts = append(hosts, t.Host)
	}
	return hosts
}

func indexMachines(obj client.Object) []string {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if ended(run.Status.JobStatus) {
		return nil
	}
	return run.Machines()
}

// admission keeps a host out of a second run, also under another name or in
// another namespace, whoever made the runs: the engines
// of two managers do not know of each other's until they are stored. All Jobs are
// made by the one leader of this operator, so that a lock in it is enough.
//
// Runs that wait are served in the order of their creation, also while a run of
// before waits for other hosts still. So none waits for one that waits for it,
// and none is overtaken for ever.
type admission struct {
	client.Reader
	mu sync.Mutex
	// admitted are runs whose Jobs the cache may not show yet. Those of a leader of
	// before it shows.
	admitted map[types.UID]bool
}

func newAdmission(cache client.Reader) *admission {
	return &admission{Reader: cache, admitted: map[types.UID]bool{}}
}

// admit lets a run have its hosts and returns nil, or the run that it has to wait
// for. A run without targets names no hosts and is always admitted.
func (a *admission) admit(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) (*ansibleeev1.OpenStackAnsibleEE, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.admitted[run.UID] {
		return nil, nil
	}
	rivals, err := a.rivals(ctx, run)
	if err != nil {
		return nil, err
	}
	first, err := hostlock.FirstBefore(run, rivals, func(rival *ansibleeev1.OpenStackAnsibleEE) (bool, error) { return a.started(ctx, rival) })
	if err != nil || first != nil {
		return first, err
	}
	a.admitted[run.UID] = true
	return nil, nil
}

// rivals are the other runs that have a host or a machine of the run and have
// not ended.
func (a *admission) rivals(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) ([]ansibleeev1.OpenStackAnsibleEE, error) {
	var rivals []ansibleeev1.OpenStackAnsibleEE
	seen := map[types.UID]bool{run.UID: true}
	add := func(index, value string, options ...client.ListOption) error {
		runs := &ansibleeev1.OpenStackAnsibleEEList{}
		err := a.List(ctx, runs, append(options, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)...)
		if err != nil {
			return fmt.Errorf("listing the runs on %s: %w", value, err)
		}
		for _, r := range runs.Items {
			if !seen[r.UID] {
				seen[r.UID], rivals = true, append(rivals, r)
			}
		}
		return nil
	}
	for _, t := range run.Spec.Targets {
		if err := add(hostIndex, t.Host, client.InNamespace(run.Namespace)); err != nil {
			return nil, err
		}
	}
	for _, machine := range run.Machines() {
		if err := add(machineIndex, machine); err != nil {
			return nil, err
		}
	}
	return rivals, nil
}

// started reports whether a run has been admitted: in memory, in its status, or by
// its Job.
func (a *admission) started(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) (bool, error) {
	if a.admitted[run.UID] || run.Status.Hash[inputKey] != "" {
		return true, nil
	}
	job := &batchv1.Job{}
	err := a.Get(ctx, client.ObjectKeyFromObject(run), job)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && metav1.IsControlledBy(job, run), err
}

// handler frees the hosts of a run that has ended or gone, and requeues the runs that
// wait for one of them.
func (a *admission) handler() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, ev event.UpdateEvent, q requestQueue) {
			old, run := ev.ObjectOld.(*ansibleeev1.OpenStackAnsibleEE), ev.ObjectNew.(*ansibleeev1.OpenStackAnsibleEE)
			if !ended(old.Status.JobStatus) && ended(run.Status.JobStatus) {
				a.free(ctx, run, q)
			}
		},
		DeleteFunc: func(ctx context.Context, ev event.DeleteEvent, q requestQueue) {
			a.free(ctx, ev.Object.(*ansibleeev1.OpenStackAnsibleEE), q)
		},
	}
}

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (a *admission) free(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE, q requestQueue) {
	a.mu.Lock()
	delete(a.admitted, run.UID)
	a.mu.Unlock()
	waiting, err := a.rivals(ctx, run)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list runs that wait for a host")
	}
	for i := range waiting {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&waiting[i])})
	}
}

// admit halts a run whose hosts are not free.
func (s *scope) admit(ctx context.Context) error {
	other, err := s.admission.admit(ctx, s.run)
	if err != nil || other == nil {
		return err
	}
	rival := "OpenStackAnsibleEE " + other.Name
	if other.Namespace != s.run.Namespace {
		rival = "a run of another namespace"
	}
	return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobHostsBusyReason,
		"Waiting for %s to finish: both have host %s, and a host is in one run at a time", rival, shared(s.run, other))
}

// shared returns the first host that both runs have, with its machine if the
// other run has it under another name.
func shared(a, b *ansibleeev1.OpenStackAnsibleEE) string {
	machines := b.Machines()
	for _, t := range a.Spec.Targets {
		if _, ok := b.Target(t.Host); ok && a.Namespace == b.Namespace {
			return t.Host
		}
		if slices.Contains(machines, t.Machine) {
			return fmt.Sprintf("%s (%s)", t.Host, t.Machine)
		}
	}
	return ""
}
