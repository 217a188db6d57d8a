// Package topology keeps each Topology while it is used, and shows who uses it and how
// the pods are spread over the domains of its constraints.
package topology

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/placement"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=topology.openstack.org,resources=topologies,verbs=list;watch
// +kubebuilder:rbac:groups=topology.openstack.org,resources=topologies/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=list;watch

// podIndex has the name of the Topology that a pod was made with.
const podIndex = "topology.name"

// Reconciler of Topology.
type Reconciler struct {
	client.Client
	// Live reads past the cache.
	Live   client.Reader
	Runner *phase.Runner
	// Gather is how long changes of pods, nodes and consumers are gathered into one
	// summary: a roll-out changes many of them.
	Gather time.Duration
	// Predictor says where pods would go that are made again.
	Predictor Predictor

	// kinds whose objects use Topologies and that the cluster has.
	kinds []topology.Kind
}

// Predictor is what the controller needs of a [placement.Predictor].
type Predictor interface {
	Replace(ctx context.Context, pods []*corev1.Pod) ([]placement.Replacement, error)
}

// scope is what one reconciliation works on. Nodes and pods are those of the
// cache: not to be changed.
type scope struct {
	*Reconciler
	topology *topologyv1.Topology
	nodes    []*corev1.Node
	// used are the consumers that use the Topology.
	used map[topology.Consumer]bool
	// pods of the namespace, and those of them that were made with the Topology.
	pods, own []*corev1.Pod
}

// Reconcile sums one Topology up.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := &topologyv1.Topology{}
	if err := r.Get(ctx, req.NamespacedName, t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{Reconciler: r, topology: t}
	return r.Runner.Run(ctx, t,
		phase.Of(topologyv1.ConsumersReadyCondition, s.findUsers, s.protect, s.look, s.consumers),
		phase.Of(topologyv1.SpreadReadyCondition, s.spread))
}

// SetupWithManager adds the controller and its index.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, podIndex, topologyOf); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		For(&topologyv1.Topology{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&topologyv1.Topology{}, watch.Gather(r.Gather, itself), builder.WithPredicates(finalizerChanges)).
		Watches(&corev1.Pod{}, watch.Gather(r.Gather, r.topologiesOfPod), builder.WithPredicates(podChanges)).
		Watches(&corev1.Node{}, watch.Gather(r.Gather, r.topologiesOfNode), builder.WithPredicates(nodeChanges)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2})
	if err := r.watchUsers(ctx, mgr, b); err != nil {
		return err
	}
	return b.Complete(r)
}

// look is the phase that reads what the Topology is measured against.
func (s *scope) look(ctx context.Context) error {
	own := client.MatchingFields{podIndex: s.topology.Name}
	var err error
	if s.own, err = s.listPods(ctx, own); err != nil || len(s.topology.Spec.TopologySpreadConstraints) == 0 {
		return err
	}
	if s.pods, err = s.listPods(ctx); err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := s.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range nodes.Items {
		s.nodes = append(s.nodes, &nodes.Items[i])
	}
	return nil
}

// listPods of the namespace that have not ended.
func (s *scope) listPods(ctx context.Context, opts ...client.ListOption) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	opts = append(opts, client.InNamespace(s.topology.Namespace), client.UnsafeDisableDeepCopy)
	if err := s.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if !watch.Ended(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}
