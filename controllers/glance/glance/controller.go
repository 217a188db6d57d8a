// Package glance creates the GlanceAPIs of each Glance.
package glance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/apis/common"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/glance"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=glance.openstack.org,resources=glances,verbs=list;watch
// +kubebuilder:rbac:groups=glance.openstack.org,resources=glances/status,verbs=patch
// +kubebuilder:rbac:groups=glance.openstack.org,resources=glances/finalizers,verbs=update
// +kubebuilder:rbac:groups=glance.openstack.org,resources=glanceapis,verbs=list;watch;create;patch;delete

const (
	fieldManager = "edpm-glance"
	// ownerIndex holds the name of the Glance that controls a GlanceAPI.
	ownerIndex = "glance.owner"
	// apiNameLabel on a GlanceAPI is the name of its API.
	apiNameLabel = "api-name"
)

// Reconciler of Glance.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	// Gather is how long changes of GlanceAPIs are gathered into one summary.
	Gather time.Duration
	Images images.Defaults
}

type scope struct {
	*Reconciler
	glance *glancev1.Glance
	apis   []*glancev1.GlanceAPI
}

// Reconcile brings the APIs of one Glance up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	glance := &glancev1.Glance{}
	if err := r.Get(ctx, req.NamespacedName, glance); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !glance.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := &scope{Reconciler: r, glance: glance}
	return r.Runner.Run(ctx, glance,
		phase.OptionalOf(common.UpdateAvailableCondition, s.chooseImages),
		phase.Of(glancev1.GlanceAPIReadyCondition, s.applyAPIs, s.removeOthers, s.sumUp))
}

// SetupWithManager adds the controller and its index.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &glancev1.GlanceAPI{}, ownerIndex, owner); err != nil {
		return err
	}
	if err := watch.IndexGenerated(ctx, mgr.GetFieldIndexer(), &glancev1.Glance{}, generated); err != nil {
		return err
	}
	list := func() client.ObjectList { return &glancev1.GlanceList{} }
	toOwner := func(_ context.Context, obj client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, name := range owner(obj) {
			out = append(out, watch.Request(obj.GetNamespace(), name))
		}
		return out
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&glancev1.Glance{}, builder.WithPredicates(watch.SpecChanges)).
		Watches(&glancev1.GlanceAPI{}, watch.Gather(r.Gather, toOwner), builder.WithPredicates(predicate.Or[client.Object](watch.SpecOrMessageChanges, countChanges))).
		Watches(&glancev1.GlanceAPI{}, handler.EnqueueRequestsFromMapFunc(watch.GeneratorsOf(mgr.GetClient(), list, "GlanceAPI")), builder.WithPredicates(watch.Freed)).
		Complete(r)
}

// generated are the GlanceAPIs of a Glance.
func generated(obj client.Object) []string {
	g, entries := obj.(*glancev1.Glance), []string{}
	for name := range g.Spec.GlanceAPIs {
		for _, t := range glance.Effective(g.Spec, name).Type.Types() {
			entries = append(entries, watch.Generated("GlanceAPI", glance.APIName(g.Name, name, t)))
		}
	}
	return entries
}

// countChanges lets through that the number of ready pods of an API changes.
var countChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.(*glancev1.GlanceAPI).Status.ReadyCount != e.ObjectNew.(*glancev1.GlanceAPI).Status.ReadyCount
}}

func owner(obj client.Object) []string {
	ref := metav1.GetControllerOf(obj)
	if ref == nil || ref.Kind != "Glance" {
		return nil
	}
	return []string{ref.Name}
}

// chooseImages is the phase that chooses the image of all GlanceAPIs.
func (s *scope) chooseImages(ctx context.Context) error {
	api := podified.Component{Spec: s.glance.Spec.ContainerImage, Default: s.Images.GlanceAPI}
	for _, name := range slices.Sorted(maps.Keys(s.glance.Spec.GlanceAPIs)) {
		for _, t := range glance.Effective(s.glance.Spec, name).Type.Types() {
			api.Sets = append(api.Sets, glance.SetName(glance.APIName(s.glance.Name, name, t), t))
		}
	}
	return podified.ChooseImages(ctx, s.Client, s.glance, map[string]podified.Component{glancev1.APIComponent: api})
}

// applyAPIs is the phase that creates and updates the GlanceAPIs.
func (s *scope) applyAPIs(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.glance.Spec.GlanceAPIs)) {
		api := glance.Effective(s.glance.Spec, name)
		for _, t := range api.Type.Types() {
			if err := s.apply(ctx, s.desired(name, t, api)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scope) apply(ctx context.Context, desired *glancev1.GlanceAPI) error {
	present := &glancev1.GlanceAPI{}
	if err := apply.Child(ctx, s.Client, fieldManager, s.glance, desired, present, apply.Own); err != nil {
		return apply.Halt(glancev1.GlanceAPIReadyCondition, err)
	}
	s.apis = append(s.apis, present)
	return nil
}

// desired is the GlanceAPI of one group of pods of an API.
func (s *scope) desired(name string, t glancev1.APIType, api glancev1.GlanceAPITemplate) *glancev1.GlanceAPI {
	backing := s.glance.Spec.Backing
	backing.ContainerImage = s.glance.Status.Images[glancev1.APIComponent]
	return &glancev1.GlanceAPI{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.glance.Namespace, Name: glance.APIName(s.glance.Name, name, t),
			Labels: map[string]string{podified.ServiceLabel: "glance", apiNameLabel: name},
		},
		Spec: glancev1.GlanceAPISpec{Backing: backing, APIService: api.APIService, APIName: name, APIType: t},
	}
}

// removeOthers is the phase that deletes GlanceAPIs that the Glance no longer
// describes. Their PersistentVolumeClaims stay.
func (s *scope) removeOthers(ctx context.Context) error {
	all := &glancev1.GlanceAPIList{}
	err := s.List(ctx, all, client.InNamespace(s.glance.Namespace), client.MatchingFields{ownerIndex: s.glance.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the GlanceAPIs: %w", err)
	}
	wanted := map[string]bool{}
	for _, api := range s.apis {
		wanted[api.Name] = true
	}
	for i := range all.Items {
		api := &all.Items[i]
		if wanted[api.Name] {
			continue
		}
		if err := apply.Delete(ctx, s.Client, s.glance, api.DeepCopy(), apply.Own); err != nil {
			return err
		}
	}
	return nil
}

// sumUp is the phase that counts what is ready.
func (s *scope) sumUp(context.Context) error {
	status := &s.glance.Status
	status.GlanceAPIReadyCounts, status.APIEndpoint = map[string]int32{}, map[string]string{}
	ready, endpoint := 0, glance.KeystoneEndpoint(s.glance.Spec)
	var unready *glancev1.GlanceAPI
	for _, api := range s.apis {
		status.GlanceAPIReadyCounts[api.Spec.APIName] += api.Status.ReadyCount
		if api.Spec.APIName == endpoint {
			maps.Copy(status.APIEndpoint, api.Status.APIEndpoint)
		}
		if api.IsReady() {
			ready++
		} else if unready == nil {
			unready = api
		}
	}
	status.APIsSummary = fmt.Sprintf("%d/%d", ready, len(s.apis))
	if unready != nil {
		return phase.Waiting(glancev1.GlanceAPIReadyCondition, glancev1.APIsNotReadyReason,
			"%s GlanceAPIs are Ready; %s is not: %s", status.APIsSummary, unready.Name, phase.ReadyMessage(unready))
	}
	status.Conditions.MarkTrue(glancev1.GlanceAPIReadyCondition, "%s GlanceAPIs are Ready", status.APIsSummary)
	return nil
}
