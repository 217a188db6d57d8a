// Package novacompute runs nova-compute in the pods of a StatefulSet, with a
// driver that needs no hypervisor next to it.
package novacompute

import (
	"context"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles/content"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/internal/nova/registration"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacomputes,verbs=list;watch;patch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacomputes/status,verbs=patch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacomputes/finalizers,verbs=update
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacells;nova,verbs=list;watch

// cellIndex holds the cell of a compute.
const cellIndex = "spec.cellName"

// Reconciler of NovaCompute.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	Inputs *inputs.Reader
	Pods   *podified.Deployer
	Images images.Defaults
	// Services of computes, as nova shows them.
	Services *computeservice.Observer
	// Options of images, nil if they are not read.
	Options *options.Finder
}

// scope is what one reconciliation works on.
type scope struct {
	*Reconciler
	compute *novav1.NovaCompute
	cell    *novav1.NovaCell // nil when it does not exist
	// generated is the configuration of the computes of the cell.
	generated []byte
	files     map[string][]byte
	// further are the files that it reads next to its options.
	further map[string][]byte
	// services of the pods in nova.
	services *registration.PodServices
}

// Reconcile brings one compute forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	compute := &novav1.NovaCompute{}
	if err := r.Get(ctx, req.NamespacedName, compute); err != nil {
		r.Services.WithdrawPods(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{Reconciler: r, compute: compute}
	phases := slices.Concat([]phase.Phase{
		phase.Of(condition.InputReadyCondition, s.lookUpCell),
		phase.OptionalOf(common.UpdateAvailableCondition, s.chooseImages),
		phase.OptionalOf(novav1.ComputeServiceReadyCondition, s.observe),
		phase.Of(novav1.NovaCellReadyCondition, s.cellReady),
		phase.Of(condition.ServiceConfigReadyCondition, s.serviceConfig),
	}, podified.Phases(s.deploy), []phase.Phase{phase.Of(novav1.ComputeServiceReadyCondition, s.leave, s.ready)})
	if !compute.DeletionTimestamp.IsZero() {
		phases = phase.Deleting(phases, novav1.ComputeServiceReadyCondition, s.observe, s.stop, s.leave, s.release)
	}
	return r.Runner.Run(ctx, compute, phases...)
}

// kind of the computes.
var kind = podified.Kind{
	Name:       "NovaCompute",
	New:        func() phase.Object { return &novav1.NovaCompute{} },
	List:       func() client.ObjectList { return &novav1.NovaComputeList{} },
	Networks:   func(obj client.Object) []string { return obj.(*novav1.NovaCompute).Spec.NetworkAttachments },
	Secrets:    secretsOf,
	ConfigMaps: configMapsOf,
	Generated:  func(obj client.Object) []string { return podified.GeneratedSet(obj.GetName()) },
}

// SetupWithManager adds the controller and its indexes. That of cells by their
// Topology is the cells' own.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &novav1.NovaCompute{}, cellIndex, cellOf); err != nil {
		return err
	}
	b, err := r.Pods.NewController(ctx, mgr, kind)
	if err != nil {
		return err
	}
	ofCell := watch.Users(mgr.GetClient(), kind.List, cellIndex, watch.ByName)
	cells := func() client.ObjectList { return &novav1.NovaCellList{} }
	ofCells := func(users handler.MapFunc) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(computesOfCells(users, ofCell))
	}
	return registration.Watch(b, mgr.GetClient(), kind.List, cellIndex, watch.Changes(rollout.Of)).
		WatchesRawSource(r.Services.Pods()).
		Watches(&topologyv1.Topology{}, ofCells(topology.Users(r.Client, cells)), builder.WithPredicates(topology.Changes)).
		WatchesRawSource(r.Inputs.SecretChanges(ofCells(podified.SecretUsers(r.Client, cells)))).
		Complete(r)
}

// computesOfCells maps what cells refer to, such as a Topology, to the computes of these cells.
func computesOfCells(cells, ofCell handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, cell := range cells(ctx, obj) {
			key := &novav1.NovaCell{}
			key.Namespace, key.Name = cell.Namespace, cell.Name
			requests = append(requests, ofCell(ctx, key)...)
		}
		return requests
	}
}

func cellOf(obj client.Object) []string { return []string{obj.(*novav1.NovaCompute).Spec.CellName} }

// configMapsOf are those with files, and the options of the image.
func configMapsOf(obj client.Object) []string {
	compute := obj.(*novav1.NovaCompute)
	return append(content.Sources("ConfigMap", compute.Spec.FurtherFiles), options.Name(compute.Status.Images[novav1.ComputeComponent]))
}

func secretsOf(obj client.Object) []string {
	own, spec := podified.Service{Name: obj.GetName()}, obj.(*novav1.NovaCompute).Spec
	return slices.Concat([]string{novav1.ComputeConfigSecretName(spec.CellName), own.ConfigName()}, spec.CustomServiceConfigSecrets, content.Sources("Secret", spec.FurtherFiles))
}
