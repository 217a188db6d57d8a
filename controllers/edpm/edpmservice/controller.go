// Package edpmservice brings the services of classes to hosts: those that need no Go.
// What all services on hosts have in common is in internal/hosted. The stories are in
// controllers/classes_test.go.
package edpmservice

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpmservice"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=edpm.openstack.org,resources=edpmservices,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=edpm.openstack.org,resources=edpmservices/status,verbs=patch
// +kubebuilder:rbac:groups=edpm.openstack.org,resources=edpmserviceclasses,verbs=list;watch

// Field indexes.
const (
	// ClassIndex holds the class of an EDPMService.
	ClassIndex = "spec.className"
	// InputIndex holds the Secrets and ConfigMaps that an EDPMServiceClass names.
	InputIndex = "edpmservice.inputs"
)

// Reconciler of EDPMService.
type Reconciler struct {
	Images images.Defaults
}

// SetupWithManager adds the controllers of services.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, shared hosted.Shared) error {
	return hosted.Setup(ctx, mgr, shared, hosted.Service{
		Object: &edpmv1.EDPMService{}, Finalizer: edpmv1.EDPMServiceFinalizer,
		Creator: "edpmservice-node", RunnerImage: r.Images.AnsibleEE, Identity: identity.Partner,
		MultiInstance: &hosted.MultiInstance{
			Definition: &edpmv1.EDPMServiceClass{},
			All: func(ctx context.Context, namespace string) ([]hosted.ServiceClass, error) {
				return serviceClasses(ctx, shared.Client, namespace)
			},
			Find: func(ctx context.Context, namespace, name string) (hosted.ServiceClass, error) {
				class, err := find(ctx, shared.Client, namespace, name)
				return serviceClass(class), err
			},
			Of:     func(obj hosted.Object) string { return obj.(*edpmv1.EDPMService).Spec.ClassName },
			Assign: func(obj hosted.Object, class string) { obj.(*edpmv1.EDPMService).Spec.ClassName = class },
		},
		Bind: bind,
		Watch: func(ctx context.Context, mgr ctrl.Manager, b *builder.Builder) error {
			return watches(ctx, mgr, shared, b)
		},
	})
}

// serviceClass is what nodes can have of a class.
func serviceClass(class *edpmv1.EDPMServiceClass) hosted.ServiceClass {
	return hosted.ServiceClass{
		Name: class.Name, Annotation: class.Spec.Annotation, RunnerImage: class.Spec.OpenStackAnsibleEERunnerImage,
		Leftovers: class.Spec.Leftovers, Removed: !class.DeletionTimestamp.IsZero(),
		Unprotected: !controllerutil.ContainsFinalizer(class, edpmv1.EDPMServiceClassFinalizer),
	}
}

// serviceClasses are those of all classes of a namespace.
func serviceClasses(ctx context.Context, c client.Reader, namespace string) ([]hosted.ServiceClass, error) {
	classes := &edpmv1.EDPMServiceClassList{}
	if err := c.List(ctx, classes, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the service classes of namespace %s: %w", namespace, err)
	}
	all := make([]hosted.ServiceClass, 0, len(classes.Items))
	for i := range classes.Items {
		all = append(all, serviceClass(&classes.Items[i]))
	}
	return all, nil
}

// find returns a class, and a *phase.Halt if it does not exist.
func find(ctx context.Context, c client.Reader, namespace, name string) (*edpmv1.EDPMServiceClass, error) {
	class := &edpmv1.EDPMServiceClass{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, class)
	if apierrors.IsNotFound(err) {
		return class, phase.Failing(edpmv1.ServiceClassReadyCondition, edpmv1.ClassMissingReason,
			"spec.className: EDPMServiceClass %q does not exist in namespace %s: create it, or delete this object", name, namespace)
	}
	return class, err
}

// watches wake services when their class changes or what it names, and when other
// services of their node do.
func watches(ctx context.Context, mgr ctrl.Manager, shared hosted.Shared, b *builder.Builder) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &edpmv1.EDPMService{}, ClassIndex, func(obj client.Object) []string {
		return []string{obj.(*edpmv1.EDPMService).Spec.ClassName}
	}); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &edpmv1.EDPMServiceClass{}, InputIndex, func(obj client.Object) []string {
		return edpmservice.Reads(obj.(*edpmv1.EDPMServiceClass))
	}); err != nil {
		return err
	}
	list := func() client.ObjectList { return &edpmv1.EDPMServiceList{} }
	ofClass := watch.Users(mgr.GetClient(), list, ClassIndex, watch.ByName)
	onNode := watch.Users(mgr.GetClient(), list, hosted.NodeIndex, watch.ByName)
	b.Watches(&edpmv1.EDPMServiceClass{}, handler.EnqueueRequestsFromMapFunc(ofClass), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, handler.EnqueueRequestsFromMapFunc(onNode), builder.WithPredicates(watch.SpecOr(readyServices))).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(users(mgr.GetClient(), "ConfigMap", ofClass))).
		WatchesRawSource(shared.Inputs.SecretChanges(handler.EnqueueRequestsFromMapFunc(users(mgr.GetClient(), "Secret", ofClass))))
	return nil
}

// readyServices are those that a node shows, and which of them are Ready.
func readyServices(obj client.Object) string {
	text := ""
	for _, s := range obj.(*dataplanev1.OpenStackDataPlaneNode).Status.Services {
		text += fmt.Sprintln(s.Name, s.Ready)
	}
	return text
}

// ClassesOf maps a Secret or ConfigMap to the classes that name it.
func ClassesOf(c client.Reader, kind string) handler.MapFunc {
	return watch.Users(c, func() client.ObjectList { return &edpmv1.EDPMServiceClassList{} }, InputIndex,
		func(o client.Object) string { return kind + "/" + o.GetName() })
}

// users maps a Secret or ConfigMap to the services of the classes that name it.
func users(c client.Reader, kind string, ofClass handler.MapFunc) handler.MapFunc {
	classes := ClassesOf(c, kind)
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, r := range classes(ctx, obj) {
			class := &edpmv1.EDPMServiceClass{}
			class.Namespace, class.Name = r.Namespace, r.Name
			requests = append(requests, ofClass(ctx, class)...)
		}
		return requests
	}
}
