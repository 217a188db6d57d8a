package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	// errUnfinished is that an object is no longer followed before it is done.
	errUnfinished = errors.New("not done")
	// errDeleted is that an object that is followed does not exist.
	errDeleted = errors.New("was deleted")
)

// follower reads objects of a kind in a namespace for as long as a person waits.
type follower struct {
	client    client.WithWatch
	kind      schema.GroupVersionKind
	namespace string
}

func (c *connection) newFollower(kind schema.GroupVersionKind, namespace string) (*follower, error) {
	watching, err := client.NewWithWatch(c.config, client.Options{Scheme: c.client.Scheme()})
	return &follower{client: watching, kind: kind, namespace: namespace}, err
}

// follow calls report with an object now and whenever it has changed, until that returns
// done or an error. The error is errDeleted without the object, and errUnfinished once the
// context has ended.
func (f *follower) follow(ctx context.Context, name string, report func(*unstructured.Unstructured) (done bool, err error)) error {
	for {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(f.kind)
		err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, obj)
		switch {
		case ctx.Err() != nil:
			return errUnfinished
		case apierrors.IsNotFound(err):
			return errDeleted
		case err != nil:
			return fmt.Errorf("reading %s %s: %w", f.kind.Kind, name, err)
		}
		if done, err := report(obj); done || err != nil {
			return err
		}
		// Closed is a watch whose start the server no longer has.
		if err := f.watch(ctx, obj, report); !errors.Is(err, watchtools.ErrWatchClosed) {
			return err
		}
	}
}

// watch calls report whenever an object has changed since it was read.
func (f *follower) watch(ctx context.Context, since *unstructured.Unstructured, report func(*unstructured.Unstructured) (done bool, err error)) error {
	_, err := watchtools.Until(ctx, since.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(f.kind)
			return f.client.Watch(ctx, list, client.InNamespace(f.namespace), client.MatchingFields{metav1.ObjectNameField: since.GetName()}, &client.ListOptions{Raw: &options})
		},
	}, func(event watch.Event) (bool, error) {
		switch seen, ok := event.Object.(*unstructured.Unstructured); {
		case event.Type == watch.Deleted:
			return false, errDeleted
		case ok:
			return report(seen)
		case event.Type == watch.Error:
			return false, fmt.Errorf("watching %s %s: %w", f.kind.Kind, since.GetName(), apierrors.FromObject(event.Object))
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return errUnfinished
	}
	return err
}
