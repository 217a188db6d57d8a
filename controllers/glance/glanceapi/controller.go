// Package glanceapi runs glance-api in the pods of a StatefulSet.
package glanceapi

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/edpm-operators/edpm-operators/apis/common"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/glance"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=glance.openstack.org,resources=glanceapis,verbs=list;watch;patch
// +kubebuilder:rbac:groups=glance.openstack.org,resources=glanceapis/status,verbs=patch
// +kubebuilder:rbac:groups=glance.openstack.org,resources=glanceapis/finalizers,verbs=update

// Reconciler of GlanceAPI.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	Inputs *inputs.Reader
	Pods   *podified.Deployer
	Images images.Defaults
}

// scope is what one reconciliation works on.
type scope struct {
	*Reconciler
	api      *glancev1.GlanceAPI
	config   configInputs
	snippets podified.Snippets
	files    map[string][]byte
}

// Reconcile brings one API forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	api := &glancev1.GlanceAPI{}
	if err := r.Get(ctx, req.NamespacedName, api); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !api.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.Pods.Release(ctx, api, []*podified.Service{{Name: setName(api)}})
	}
	s := &scope{Reconciler: r, api: api}
	return r.Runner.Run(ctx, api, append([]phase.Phase{
		phase.OptionalOf(common.UpdateAvailableCondition, s.chooseImages),
		phase.Of(condition.InputReadyCondition, s.readInputs),
		phase.Of(condition.ServiceConfigReadyCondition, s.serviceConfig),
		phase.OptionalOf(condition.DBSyncReadyCondition, s.syncDatabase),
	}, podified.Phases(s.deploy)...)...)
}

// SetupWithManager adds the controller and its indexes.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	b, err := r.Pods.NewController(ctx, mgr, podified.Kind{
		Name:      "GlanceAPI",
		New:       func() phase.Object { return &glancev1.GlanceAPI{} },
		List:      func() client.ObjectList { return &glancev1.GlanceAPIList{} },
		Networks:  func(obj client.Object) []string { return obj.(*glancev1.GlanceAPI).Spec.NetworkAttachments },
		Secrets:   secretsOf,
		Generated: generated,
	})
	if err != nil {
		return err
	}
	return b.WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(r)
}

// secretsOf are the Secrets that an API reads, and those that it writes.
func secretsOf(obj client.Object) []string {
	api := obj.(*glancev1.GlanceAPI)
	return append([]string{api.Spec.Secret, podified.ConfigName(setName(api)), podified.ConfigName(jobName(api))}, api.Spec.CustomServiceConfigSecrets...)
}

// generated are the StatefulSet of an API, the Service that gives its pods names,
// and those by which it is reached.
func generated(obj client.Object) []string {
	api := obj.(*glancev1.GlanceAPI)
	entries := append(podified.GeneratedSet(setName(api)), watch.Generated("Service", setName(api)))
	for _, endpoint := range api.Spec.APIType.Endpoints() {
		entries = append(entries, watch.Generated("Service", glance.ServiceName(api.ShortName(), endpoint)))
	}
	return entries
}

// chooseImages is the phase that chooses the image of the API.
func (s *scope) chooseImages(ctx context.Context) error {
	return podified.ChooseImages(ctx, s.Client, s.api, map[string]podified.Component{glancev1.APIComponent: {
		Spec: s.api.Spec.ContainerImage, Default: s.Images.GlanceAPI, Sets: []string{setName(s.api)}, Job: jobName(s.api),
	}})
}

// ref is the Topology that the API follows.
func (s *scope) ref() *topologyv1.TopologyRef { return topology.Nearest(s.api.Spec.TopologyRef) }
