// Package watch holds event handlers and predicates that controllers share.
package watch

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// Queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Request names an object.
func Request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// NamedOrOwned are the objects of a kind that a child can concern: the one that its name says,
// whosever it is, and its owner, which has another name if that was too long.
func NamedOrOwned(child client.Object, name, kind string) []reconcile.Request {
	requests := []reconcile.Request{Request(child.GetNamespace(), name)}
	if owner := metav1.GetControllerOf(child); owner != nil && owner.Kind == kind && owner.Name != name {
		requests = append(requests, Request(child.GetNamespace(), owner.Name))
	}
	return requests
}

// SpecChanges lets through what people change, and not status writes.
var SpecChanges = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// SpecOrReadyChanges lets through what people change, and changes of Ready.
var SpecOrReadyChanges = SpecOr(readiness)

// SpecOrMessageChanges lets through what people change, and what Ready says: for
// objects that repeat it.
var SpecOrMessageChanges = SpecOr(func(obj client.Object) string { return readiness(obj) + " " + message(obj) })

// SpecOr lets through what people change, and changes of the value that the
// function takes from an object.
func SpecOr[T comparable](of func(client.Object) T) predicate.Predicate {
	return predicate.Or(SpecChanges, Changes(of))
}

// Changes lets through an update that changes what of returns, and not one of the spec alone.
func Changes[T comparable](of func(client.Object) T) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return of(e.ObjectOld) != of(e.ObjectNew) }}
}

func message(obj client.Object) string {
	if o, ok := obj.(phase.Object); ok {
		return phase.ReadyMessage(o)
	}
	return ""
}

// readiness is what others see of the state of an object. Kinds that can tell
// whether they are ready for their current spec do so: the status that catches
// up with a changed spec is a change although the condition stays as it was.
func readiness(obj client.Object) string {
	if o, ok := obj.(interface{ IsReady() bool }); ok {
		return strconv.FormatBool(o.IsReady())
	}
	o, ok := obj.(phase.Object)
	if !ok {
		return ""
	}
	if ready := o.GetConditions().Get(condition.ReadyCondition); ready != nil {
		return string(ready.Status)
	}
	return ""
}

// DefaultGather is how long changes of many objects are gathered unless the manager's
// options say otherwise.
const DefaultGather = 2 * time.Second

// Gather returns a handler that maps objects to requests and lets requests that
// come within the delay be one: for objects that sum up many others.
func Gather(delay time.Duration, toRequests handler.MapFunc) handler.EventHandler {
	enqueue := func(ctx context.Context, obj client.Object, q Queue) {
		for _, r := range toRequests(ctx, obj) {
			q.AddAfter(r, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			enqueue(ctx, e.ObjectOld, q)
			enqueue(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) { enqueue(ctx, e.Object, q) },
	}
}

// Users returns a map function to the objects of a list that the index relates
// to an object by its name.
func Users(c client.Reader, list func() client.ObjectList, index string, value func(client.Object) string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		users := list()
		err := c.List(ctx, users, client.InNamespace(obj.GetNamespace()), client.MatchingFields{index: value(obj)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil // the index is missing: SetupWithManager has failed already
		}
		return requests(users)
	}
}

// Definition returns a resource definition, empty, of which only metadata is of interest.
func Definition() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return m
}

// IsDefined reports whether there is a resource definition of the name that is not being deleted.
func IsDefined(ctx context.Context, c client.Reader, name string) (bool, error) {
	definition := Definition()
	if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	return definition.DeletionTimestamp.IsZero(), nil
}
