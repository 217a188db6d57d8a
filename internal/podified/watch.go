package podified

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/attachments"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

const (
	// setIndex and nodeIndex hold the StatefulSet and the node of a pod that
	// belongs to a StatefulSet.
	setIndex  = "podified.set"
	nodeIndex = "podified.node"
	// jobIndex holds the owner of a Job, alone and with its name without hash;
	// jobPodIndex the name of the Job of a pod; cronJobIndex the owner of a CronJob.
	jobIndex     = "podified.job"
	jobPodIndex  = "podified.jobPod"
	cronJobIndex = "podified.cronJob"
	// networksIndex, secretsIndex and configMapsIndex hold the network attachments, the Secrets
	// and the ConfigMaps of an object.
	networksIndex   = "podified.networks"
	secretsIndex    = "podified.secrets"
	configMapsIndex = "podified.configMaps"
)

// IndexPods adds the indexes of pods and Jobs that Deployers use, once for a manager.
func IndexPods(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &batchv1.Job{}, jobIndex, jobOf); err != nil {
		return err
	}
	for index, extract := range map[string]client.IndexerFunc{setIndex: setOf, jobPodIndex: jobOfPod} {
		if err := indexer.IndexField(ctx, &corev1.Pod{}, index, extract); err != nil {
			return err
		}
	}
	return indexer.IndexField(ctx, &corev1.Pod{}, nodeIndex, func(obj client.Object) []string {
		if len(setOf(obj)) == 0 || obj.(*corev1.Pod).Spec.NodeName == "" {
			return nil
		}
		return []string{obj.(*corev1.Pod).Spec.NodeName}
	})
}

// setOf is the StatefulSet that has a pod, or that has left it behind.
func setOf(pod client.Object) []string {
	ref, name := metav1.GetControllerOf(pod), pod.GetName()
	switch {
	case ref != nil && ref.Kind == "StatefulSet":
		return []string{ref.Name}
	case ref == nil && pod.GetLabels()[appsv1.StatefulSetPodNameLabel] == name:
		return []string{name[:max(0, strings.LastIndex(name, "-"))]}
	}
	return nil
}

// jobOf is the entry of a Job in jobIndex.
func jobOf(job client.Object) []string {
	owner := metav1.GetControllerOf(job)
	if owner == nil || !ofJob(job) {
		return nil
	}
	return []string{string(owner.UID), jobKey(string(owner.UID), job.GetAnnotations()[nameAnnotation])}
}

// ownerOf is the entry of an object in an index by owners.
func ownerOf(obj client.Object) []string {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

func jobKey(owner, name string) string { return owner + "/" + name }

// jobOfPod is the Job of a pod.
func jobOfPod(pod client.Object) []string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || !ofJob(pod) {
		return nil
	}
	return []string{owner.Name}
}

// ofJob reports whether an object is labelled as a Job of a Deployer, or a pod of one.
func ofJob(obj client.Object) bool { return obj.GetLabels()[AppLabel] == JobApp }

// Kind is what NewController needs to know of the kind of a Deployer.
type Kind struct {
	// Name of the kind, and its empty object and list.
	Name string
	New  func() phase.Object
	List func() client.ObjectList
	// Networks returns the network attachments that an object names.
	Networks func(client.Object) []string
	// Secrets returns the Secrets that an object reads and writes.
	Secrets func(client.Object) []string
	// ConfigMaps returns the ConfigMaps that an object reads; nil for none.
	ConfigMaps func(client.Object) []string
	// CronJobs reports whether the kind has any.
	CronJobs bool
	// Generated returns the StatefulSets with what belongs to them (GeneratedSet), and
	// the Services of an object, each as watch.Generated.
	Generated func(client.Object) []string
}

// GeneratedSet are the entries of a StatefulSet and of what has its name.
func GeneratedSet(name string) []string {
	return []string{watch.Generated("StatefulSet", name), watch.Generated("PodDisruptionBudget", name)}
}

// NewController returns a controller of a kind, with its indexes, that watches its Secrets and
// ConfigMaps, and what Deploy makes and looks at.
func (d *Deployer) NewController(ctx context.Context, mgr ctrl.Manager, k Kind) (*builder.Builder, error) {
	if err := k.index(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	users := SecretUsers(d.Client, k.List)
	b := ctrl.NewControllerManagedBy(mgr).
		For(k.New(), builder.WithPredicates(watch.SpecChanges)).
		WatchesRawSource(d.Inputs.SecretChanges(handler.EnqueueRequestsFromMapFunc(users)))
	if k.ConfigMaps != nil {
		readers := watch.Users(d.Client, k.List, configMapsIndex, watch.ByName)
		b = b.WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(readers))
	}
	return d.watch(b, k), nil
}

// SecretUsers maps a Secret to the objects of a kind that read or write it: see Kind.Secrets.
func SecretUsers(c client.Client, list func() client.ObjectList) handler.MapFunc {
	return watch.Users(c, list, secretsIndex, watch.ByName)
}

func (k Kind) index(ctx context.Context, indexer client.FieldIndexer) error {
	for name, extract := range map[string]client.IndexerFunc{
		networksIndex: k.Networks, secretsIndex: k.Secrets, topology.RefIndex: topology.Referred,
	} {
		if err := indexer.IndexField(ctx, k.New(), name, extract); err != nil {
			return err
		}
	}
	if k.ConfigMaps != nil {
		if err := indexer.IndexField(ctx, k.New(), configMapsIndex, k.ConfigMaps); err != nil {
			return err
		}
	}
	if k.CronJobs {
		if err := indexer.IndexField(ctx, &batchv1.CronJob{}, cronJobIndex, ownerOf); err != nil {
			return err
		}
	}
	return watch.IndexGenerated(ctx, indexer, k.New(), k.Generated)
}

func (d *Deployer) watch(b *builder.Builder, k Kind) *builder.Builder {
	w := watcher{d, k}
	generators := func(kind string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(watch.GeneratorsOf(d.Client, k.List, kind))
	}
	users := topology.Users(d.Client, k.List)
	b = b.Owns(&appsv1.StatefulSet{}).Owns(&corev1.Service{}).Owns(&policyv1.PodDisruptionBudget{}).
		Watches(&appsv1.StatefulSet{}, generators("StatefulSet"), builder.WithPredicates(watch.Freed)).
		Watches(&corev1.Service{}, generators("Service"), builder.WithPredicates(watch.Freed)).
		Watches(&policyv1.PodDisruptionBudget{}, generators("PodDisruptionBudget"), builder.WithPredicates(watch.Freed)).
		Watches(&topologyv1.Topology{}, handler.EnqueueRequestsFromMapFunc(users), builder.WithPredicates(topology.Changes)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(w.ownerOfPod), builder.WithPredicates(podChanges)).
		Owns(&batchv1.Job{}, builder.WithPredicates(jobChanges)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(w.ownerOfJobPod), builder.WithPredicates(jobPodChanges)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(w.ownersOnNode), builder.WithPredicates(readyChanges)).
		WatchesRawSource(d.predictor.Wakes(d.Controller))
	b = watch.Scheduling(b, watch.Gather(d.predictor.Gather, d.predictions.waiting.All), watch.Gather(d.predictor.Gather, d.predictions.waiting.Concerned))
	if k.CronJobs {
		b = b.Owns(&batchv1.CronJob{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(w.ownerOfCronJob), builder.WithPredicates(jobChanges))
	}
	if d.attachments {
		connected := watch.Users(d.Client, k.List, networksIndex, watch.ByName)
		b = b.WatchesMetadata(attachments.Object(), handler.EnqueueRequestsFromMapFunc(connected))
	}
	return b
}

type watcher struct {
	*Deployer
	Kind
}

// ownerOfPod returns the object whose StatefulSet a pod belongs to.
func (w watcher) ownerOfPod(ctx context.Context, pod client.Object) []reconcile.Request {
	for _, name := range setOf(pod) {
		set := &appsv1.StatefulSet{}
		if err := w.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}, set, client.UnsafeDisableDeepCopy); err != nil {
			return nil // its own event will tell of it
		}
		if owner := metav1.GetControllerOf(set); owner != nil && owner.Kind == w.Name {
			return []reconcile.Request{watch.Request(pod.GetNamespace(), owner.Name)}
		}
	}
	return nil
}

// ownerOfJobPod returns the object whose Job a pod belongs to.
func (w watcher) ownerOfJobPod(ctx context.Context, pod client.Object) []reconcile.Request {
	names := jobOfPod(pod)
	if len(names) == 0 {
		return nil
	}
	job := &batchv1.Job{}
	if err := w.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: names[0]}, job, client.UnsafeDisableDeepCopy); err != nil {
		return nil // its own event will tell of it
	}
	if owner := metav1.GetControllerOf(job); owner != nil && owner.Kind == w.Name {
		return []reconcile.Request{watch.Request(pod.GetNamespace(), owner.Name)}
	}
	return w.ownerOfCronJob(ctx, job)
}

// ownerOfCronJob returns the object whose CronJob has made a Job.
func (w watcher) ownerOfCronJob(ctx context.Context, job client.Object) []reconcile.Request {
	by := metav1.GetControllerOf(job)
	if !w.CronJobs || by == nil || by.Kind != "CronJob" || !ofJob(job) {
		return nil
	}
	cronJob := &batchv1.CronJob{}
	if err := w.Get(ctx, client.ObjectKey{Namespace: job.GetNamespace(), Name: by.Name}, cronJob, client.UnsafeDisableDeepCopy); err != nil {
		return nil // its own event will tell of it
	}
	if owner := metav1.GetControllerOf(cronJob); owner != nil && owner.Kind == w.Name {
		return []reconcile.Request{watch.Request(job.GetNamespace(), owner.Name)}
	}
	return nil
}

// jobChanges lets through that a Job comes, ends, or goes.
var jobChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*batchv1.Job), e.ObjectNew.(*batchv1.Job)
		return jobCondition(before, batchv1.JobComplete) != jobCondition(after, batchv1.JobComplete) ||
			jobCondition(before, batchv1.JobFailed) != jobCondition(after, batchv1.JobFailed)
	},
}

// jobPodChanges lets through that something else keeps a pod of a Job from
// succeeding than before.
var jobPodChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return ofJob(after) && !sameTrouble(before, after)
	},
}

// ownersOnNode returns the objects that have pods on a node.
func (w watcher) ownersOnNode(ctx context.Context, node client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	if err := w.Deployer.List(ctx, pods, client.MatchingFields{nodeIndex: node.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the pods on a node", "node", node.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		requests = append(requests, w.ownerOfPod(ctx, &pods.Items[i])...)
	}
	return requests
}

// podChanges lets through what conditions tell of a pod, those of its owner included, and
// none of the many other writes to its status.
var podChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return before.Spec.NodeName != after.Spec.NodeName || terminating(before) != terminating(after) ||
			said(before, corev1.PodScheduled) != said(after, corev1.PodScheduled) || said(before, corev1.PodReady) != said(after, corev1.PodReady) ||
			failing(before) != failing(after)
	},
}

func said(pod *corev1.Pod, t corev1.PodConditionType) string {
	c := statusOf(pod, t)
	return string(c.Status) + " " + c.Message
}

// readyChanges lets through that a node stops answering, answers again or goes.
var readyChanges = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return readiness(e.ObjectOld.(*corev1.Node)).Status != readiness(e.ObjectNew.(*corev1.Node)).Status
	},
}
