package fakekube

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/internal/kinds"
)

var pods = corev1.SchemeGroupVersion.WithKind("Pod")

// children returns the kinds that an object of a kind can own.
func children(scheme *runtime.Scheme) (map[client.Object][]schema.GroupVersionKind, error) {
	owned := map[client.Object][]schema.GroupVersionKind{&batchv1.Job{}: {pods}}
	for _, kind := range kinds.Table {
		if len(kind.Owns) == 0 {
			continue
		}
		obj, err := scheme.New(kind.GroupVersionKind)
		if err != nil {
			return nil, err
		}
		owned[obj.(client.Object)] = kind.Owns
	}
	return owned, nil
}

// Collect makes the children of deleted objects go, in all namespaces, as the garbage
// collector does, until the context ends.
func Collect(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	objects, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: live.RESTMapper(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return err
	}
	owners, err := children(scheme)
	if err != nil {
		return err
	}
	for kind, owned := range owners {
		informer, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if owner, ok := obj.(client.Object); ok {
				go orphans(ctx, live, owner, owned)
			}
		}})
		if err != nil {
			return err
		}
	}
	go func() { _ = objects.Start(ctx) }()
	if !objects.WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	return nil
}

// orphans deletes what the owner that has gone leaves behind.
func orphans(ctx context.Context, live client.Client, owner client.Object, kinds []schema.GroupVersionKind) {
	for _, kind := range kinds {
		for range 3 { // errors pass; the collector never gives up either
			if err := orphansOfKind(ctx, live, owner, kind); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func orphansOfKind(ctx context.Context, live client.Client, owner client.Object, kind schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	if err := live.List(ctx, list, client.InNamespace(owner.GetNamespace())); err != nil {
		return err
	}
	for i := range list.Items {
		child := &list.Items[i]
		refs := child.OwnerReferences
		if len(refs) != 1 || refs[0].UID != owner.GetUID() {
			continue
		}
		err := live.Delete(ctx, child, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &child.UID})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// finalize deletes the Pods of a Job that is deleted in the foreground, and then
// lets the Job go.
func (s *Space) finalize(ctx context.Context, job *batchv1.Job) error {
	if !controllerutil.ContainsFinalizer(job, metav1.FinalizerDeleteDependents) {
		return nil
	}
	if err := orphansOfKind(ctx, s.live, job, pods); err != nil {
		return err
	}
	patched := job.DeepCopy()
	controllerutil.RemoveFinalizer(patched, metav1.FinalizerDeleteDependents)
	return client.IgnoreNotFound(s.live.Patch(ctx, patched, client.MergeFrom(job)))
}
