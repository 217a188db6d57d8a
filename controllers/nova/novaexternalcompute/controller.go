// Package novaexternalcompute brings libvirt and nova-compute to the hosts of
// computes, once their nodes and cells are ready: nodes that are annotated with a
// cell. What all services on hosts have in common is in internal/hosted. The stories
// are in controllers/*_test.go.
package novaexternalcompute

import (
	"context"
	"errors"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeimage"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/layers"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/internal/nova/registration"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes/status,verbs=patch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes/finalizers,verbs=update
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacells;nova,verbs=list;watch

// cellIndex holds the cell of a compute.
const cellIndex = "spec.cellName"

// Reconciler of NovaExternalCompute.
type Reconciler struct {
	Images images.Defaults
	// Services of computes, as nova shows them.
	Services *computeservice.Observer
	// Options of images, nil if they are not read.
	Options *options.Finder

	registrar *registration.Registrar
	cells     migration.Cells
}

// SetupWithManager adds the controllers of computes.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, shared hosted.Shared) error {
	r.registrar = registration.NewRegistrar(r.Services)
	return hosted.Setup(ctx, mgr, shared, hosted.Service{
		Object: &novav1.NovaExternalCompute{}, Name: "nova", Annotation: novav1.CellAnnotation, Finalizer: novav1.NovaExternalComputeFinalizer,
		Creator: "nova-computenode", RunnerImage: r.Images.NovaAnsibleEE, Identity: identity.HostCompute,
		Choose: join, Mismatch: mismatch, Refusal: refusal, Gone: r.registrar.Forget, EmptySince: registration.EmptySince, Notices: []condition.Type{novav1.EvacuatedCondition, novav1.DrainedCondition}, Reads: reads, Busy: registration.BusyOf(mgr.GetClient(), r.Services),
		Bind: r.bind,
		Watch: func(ctx context.Context, mgr ctrl.Manager, b *builder.Builder) error {
			return r.watch(ctx, mgr, shared, b)
		},
	})
}

// watch wakes computes when something changes that they read of their cell, when nova
// says something else of their services, and when another has, or had, their service.
func (r *Reconciler) watch(ctx context.Context, mgr ctrl.Manager, shared hosted.Shared, b *builder.Builder) error {
	ofConfig := watch.Users(mgr.GetClient(), listComputes, cellIndex, cellOfConfig)
	registration.Watch(b, mgr.GetClient(), listComputes, cellIndex, watch.Changes(rollout.OfHosts), watch.Changes(migration.OfCell)).
		WatchesRawSource(shared.Inputs.SecretChanges(handler.EnqueueRequestsFromMapFunc(ofConfig))).
		WatchesRawSource(shared.Inputs.SecretChanges(handler.EnqueueRequestsFromMapFunc(computesWithLayer(mgr.GetClient(), "Secret")))).
		WatchesRawSource(shared.Inputs.SecretChanges(handler.EnqueueRequestsFromMapFunc(migration.Certified(mgr.GetClient())))).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(computesWithLayer(mgr.GetClient(), "ConfigMap"))).
		WatchesRawSource(r.Services.Computes())
	r.cells.Watch(b)
	registration.WatchMachines(b)
	return errors.Join(
		registration.WatchDrains(ctx, b, mgr.GetClient(), mgr.GetFieldIndexer()),
		registration.WatchHosts(ctx, b, mgr.GetClient(), mgr.GetFieldIndexer()),
		layers.Index(ctx, mgr.GetFieldIndexer()),
		mgr.GetFieldIndexer().IndexField(ctx, &novav1.NovaExternalCompute{}, cellIndex, cellOf),
	)
}

func listComputes() client.ObjectList { return &novav1.NovaExternalComputeList{} }

// computesWithLayer are the computes of the cells whose templates name an object of the kind.
func computesWithLayer(c client.Reader, kind string) handler.MapFunc {
	cells := layers.CellsWith(c, kind)
	return func(ctx context.Context, source client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, name := range cells(ctx, source) {
			ofCell := watch.Users(c, listComputes, cellIndex, func(client.Object) string { return name })
			requests = append(requests, ofCell(ctx, source)...)
		}
		return requests
	}
}

// reads are the Secrets and ConfigMaps of the compute's own configuration, and the options of its
// image.
func reads(obj hosted.Object) []string {
	compute := obj.(*novav1.NovaExternalCompute)
	names := append(inputs.FileNames(compute.Spec.ConfigFiles), "ConfigMap/"+options.Name(computeimage.Of(compute)))
	for _, name := range compute.Spec.CustomServiceConfigSecrets {
		names = append(names, "Secret/"+name)
	}
	return names
}

func cellOf(obj client.Object) []string {
	return []string{obj.(*novav1.NovaExternalCompute).Spec.CellName}
}

// cellOfConfig is the cell whose configuration a Secret holds, by its name.
func cellOfConfig(secret client.Object) string {
	cell, ok := strings.CutSuffix(secret.GetName(), novav1.ComputeConfigSecretName(""))
	if !ok {
		return ""
	}
	return cell
}
