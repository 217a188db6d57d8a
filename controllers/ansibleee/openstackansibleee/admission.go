package openstackansibleee

import (
	"context"
	"fmt"
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
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// hostIndex has the hosts of the runs that have not ended.
const hostIndex = "ansibleee.host"

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

// admission keeps a host out of a second run, whoever made the runs: the engines
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
	for i := range rivals {
		started, err := a.started(ctx, &rivals[i])
		if err != nil || started || before(&rivals[i], run) {
			return &rivals[i], err
		}
	}
	a.admitted[run.UID] = true
	return nil, nil
}

// rivals are the other runs that have a host of the run and have not ended.
func (a *admission) rivals(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) ([]ansibleeev1.OpenStackAnsibleEE, error) {
	var rivals []ansibleeev1.OpenStackAnsibleEE
	seen := map[string]bool{run.Name: true}
	for _, t := range run.Spec.Targets {
		runs := &ansibleeev1.OpenStackAnsibleEEList{}
		err := a.List(ctx, runs, client.InNamespace(run.Namespace), client.MatchingFields{hostIndex: t.Host}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the runs on %s: %w", t.Host, err)
		}
		for _, r := range runs.Items {
			if !seen[r.Name] {
				seen[r.Name], rivals = true, append(rivals, r)
			}
		}
	}
	return rivals, nil
}

// started tells whether a run has been admitted: in memory, in its status, or by
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

// before is the order in which waiting runs are served.
func before(a, b *ansibleeev1.OpenStackAnsibleEE) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// handler frees the hosts of a run that has ended or gone, and wakes the runs that
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
	return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobHostsBusyReason,
		"Waiting for OpenStackAnsibleEE %s to end: both have host %s, and a host is in one run at a time", other.Name, shared(s.run, other))
}

// shared returns the first host that both runs have.
func shared(a, b *ansibleeev1.OpenStackAnsibleEE) string {
	for _, t := range a.Spec.Targets {
		if _, ok := b.Target(t.Host); ok {
			return t.Host
		}
	}
	return ""
}
