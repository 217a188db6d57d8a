// Package openstackansibleee turns each OpenStackAnsibleEE into one Job of
// ansible-runner and reports what became of every host.
package openstackansibleee

import (
	"context"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/attachments"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=ansibleee.openstack.org,resources=openstackansibleees,verbs=get;list;watch
// +kubebuilder:rbac:groups=ansibleee.openstack.org,resources=openstackansibleees/status,verbs=patch
// +kubebuilder:rbac:groups=ansibleee.openstack.org,resources=openstackansibleees/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=secrets,verbs=get;list;patch;delete

const (
	podJobIndex    = "ansibleee.job"
	attachmentsIdx = "ansibleee.networkAttachments"
	// inputIndex holds the Secrets and ConfigMaps that the environment names.
	inputIndex = "ansibleee.inputs"
)

// Reconciler of OpenStackAnsibleEE.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	Inputs *inputs.Reader
	// Live reads past the cache.
	Live client.Reader
	// DefaultImage of the execution environment, for specs without one.
	DefaultImage string
	// Resources of the container of a run with 50 hosts; one with fewer requests less memory.
	Resources corev1.ResourceRequirements

	attachments bool // whether the cluster has network attachment definitions
	admission   *admission
}

// scope is what one reconciliation works on.
type scope struct {
	*Reconciler
	run  *ansibleeev1.OpenStackAnsibleEE
	want *batchv1.Job
	job  *batchv1.Job
	// said is what JobReady said before; nil if nothing.
	said *condition.Condition
}

// Reconcile brings one run forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	run := &ansibleeev1.OpenStackAnsibleEE{}
	if err := r.Get(ctx, req.NamespacedName, run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{Reconciler: r, run: run, said: run.Status.Conditions.Get(ansibleeev1.JobReadyCondition).DeepCopy()}
	if !run.DeletionTimestamp.IsZero() {
		return r.Runner.Run(ctx, run, phase.Deleting(s.phases(), ansibleeev1.JobReadyCondition, s.cancel)...)
	}
	return r.Runner.Run(ctx, run, s.phases()...)
}

func (s *scope) phases() []phase.Phase {
	phases := []phase.Phase{phase.Of(condition.InputReadyCondition, s.inputs)}
	if len(s.run.Spec.NetworkAttachments) > 0 {
		phases = append(phases, phase.Of(ansibleeev1.NetworkAttachmentsReadyCondition, s.networks))
	}
	if topology.Nearest(s.run.Spec.TopologyRef) != nil {
		phases = append(phases, phase.Of(condition.TopologyReadyCondition))
	}
	return append(phases, phase.Of(ansibleeev1.JobReadyCondition, s.ensureJob, s.placed, s.outcome))
}

// SetupWithManager adds the controller and its indexes.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, podJobIndex, func(obj client.Object) []string {
		if job := obj.GetLabels()[batchv1.JobNameLabel]; job != "" {
			return []string{job}
		}
		return nil // a pod of something else
	})
	if err != nil {
		return err
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &ansibleeev1.OpenStackAnsibleEE{}, attachmentsIdx, func(obj client.Object) []string {
		return obj.(*ansibleeev1.OpenStackAnsibleEE).Spec.NetworkAttachments
	})
	if err != nil {
		return err
	}
	err = topology.IndexRefs(ctx, mgr.GetFieldIndexer(), &ansibleeev1.OpenStackAnsibleEE{}, func(obj client.Object) []string {
		return topology.NamesOf(obj.(*ansibleeev1.OpenStackAnsibleEE).Spec.TopologyRef)
	})
	if err != nil {
		return err
	}
	for name, index := range map[string]client.IndexerFunc{hostIndex: indexHosts, machineIndex: indexMachines} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &ansibleeev1.OpenStackAnsibleEE{}, name, index); err != nil {
			return err
		}
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &ansibleeev1.OpenStackAnsibleEE{}, inputIndex, func(obj client.Object) []string {
		return inputs.EnvNames(obj.(*ansibleeev1.OpenStackAnsibleEE).Spec.Env)
	})
	if err != nil {
		return err
	}
	r.admission = newAdmission(mgr.GetCache())
	list := func() client.ObjectList { return &ansibleeev1.OpenStackAnsibleEEList{} }
	usersOf := topology.Users(mgr.GetClient(), list)
	readers := func(kind string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(watch.Users(mgr.GetClient(), list, inputIndex, func(o client.Object) string { return kind + "/" + o.GetName() }))
	}
	b := ctrl.NewControllerManagedBy(mgr).
		For(&ansibleeev1.OpenStackAnsibleEE{}, builder.WithPredicates(ownChanges)).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(runOf), builder.WithPredicates(podEnds)).
		// Named like its run, also when it is not its own.
		Watches(&batchv1.Job{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Freed)).
		Watches(&ansibleeev1.OpenStackAnsibleEE{}, r.admission.handler()).
		Watches(&topologyv1.Topology{}, handler.EnqueueRequestsFromMapFunc(usersOf), builder.WithPredicates(topology.Existence)).
		WatchesMetadata(&corev1.ConfigMap{}, readers("ConfigMap")).
		WatchesRawSource(r.Inputs.SecretChanges(readers("Secret"))).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8})
	if r.attachments = attachments.Installed(mgr.GetRESTMapper()); r.attachments {
		b = b.WatchesMetadata(attachments.Object(), handler.EnqueueRequestsFromMapFunc(r.usersOf))
	}
	return b.Complete(r)
}

// ownChanges lets through what people change, and not our own status writes.
var ownChanges = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// podEnds lets through that a Pod has ended.
var podEnds = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, // a start looks at every run
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !podEnded(e.ObjectOld.(*corev1.Pod)) && podEnded(e.ObjectNew.(*corev1.Pod))
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func podEnded(pod *corev1.Pod) bool {
	phase := phaseOf(pod)
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// phaseOf returns the phase of a Pod. If all of its containers have ended and none
// is restarted, it is the phase that the Pod will have: the kubelet writes it a
// second after how the containers ended.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase
func phaseOf(pod *corev1.Pod) corev1.PodPhase {
	statuses := pod.Status.ContainerStatuses
	running := func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil }
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || len(statuses) < len(pod.Spec.Containers) || slices.ContainsFunc(statuses, running) {
		return pod.Status.Phase
	}
	if slices.ContainsFunc(statuses, func(c corev1.ContainerStatus) bool { return c.State.Terminated.ExitCode != 0 }) {
		return corev1.PodFailed
	}
	return corev1.PodSucceeded
}

// runOf returns the run whose Job a Pod belongs to: they have one name.
func runOf(_ context.Context, pod client.Object) []reconcile.Request {
	if pod.GetLabels()[ansibleeev1.RunnerLabel] != "true" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[batchv1.JobNameLabel]}}}
}

// usersOf returns the runs that name a network attachment definition.
func (r *Reconciler) usersOf(ctx context.Context, obj client.Object) []reconcile.Request {
	runs := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := r.List(ctx, runs, client.InNamespace(obj.GetNamespace()), client.MatchingFields{attachmentsIdx: obj.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list runs of a network attachment definition")
		return nil
	}
	var requests []reconcile.Request
	for i := range runs.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: runs.Items[i].Name}})
	}
	return requests
}

// hashAnnotation on a Job is the hash of the inputs it was made from.
const hashAnnotation = "ansibleee.openstack.org/input-hash"
