// Package apply writes child objects with server-side apply, and only when
// there is something to write. It is the one place that decides whether an
// object that exists already is ours: what is not is never adopted, changed or
// deleted.
package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// appliedAnnotation is a hash of what was applied last. It shows when a field
// is no longer wanted, which the object itself cannot show.
const appliedAnnotation = "edpm.openstack.org/applied-hash"

// Child applies desired as a child of owner under the field manager: the fields
// that desired has are set, those it had before and has no longer are dropped,
// and those of others are left alone. existing is an empty object of the same
// type into which the present state is read from the cache; after a write it has
// the state that the API server answered with. Nothing is written when the
// present state has all that is wanted. An object that is not ours is left
// alone: a *ConflictError is returned.
func Child(ctx context.Context, c client.Client, manager string, owner, desired, existing client.Object, options ...Option) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(desired), existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %T %s: %w", desired, desired.GetName(), err)
	}
	present := existing
	if err != nil {
		present = nil
	}
	a, err := newApplication(c, manager, owner, options)
	if err != nil {
		return err
	}
	want, err := a.configuration(desired)
	if err != nil {
		return err
	}
	if present != nil {
		if conflict := a.conflict(present, want.GetKind()); conflict != nil {
			return conflict
		}
	}
	if err := a.outdated(want, present); err != nil {
		return err
	}
	if present != nil {
		if same, err := a.upToDate(present, want); err != nil || same {
			return err
		}
	}
	if err := a.send(ctx, want, present); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, existing)
}

// Secret applies desired as a child of owner. present is the Secret of that name
// as it is, nil if there is none: Secrets are not in the cache. Nothing is
// written when it has the owner and exactly the data that are wanted; other data
// are removed. A Secret that is not ours is left alone: a *ConflictError is returned.
func Secret(ctx context.Context, c client.Client, manager string, owner client.Object, desired, present *corev1.Secret, options ...Option) error {
	a, err := newApplication(c, manager, owner, options)
	if err != nil {
		return err
	}
	want, err := a.configuration(desired)
	if err != nil {
		return err
	}
	if present == nil {
		return a.send(ctx, want, nil)
	}
	if conflict := a.conflict(present, want.GetKind()); conflict != nil {
		return conflict
	}
	if metav1.IsControlledBy(present, owner) && maps.EqualFunc(present.Data, desired.Data, bytes.Equal) {
		return nil
	}
	if err := a.send(ctx, want, present); err != nil {
		return err
	}
	return a.removeOthers(ctx, want, desired.Data)
}

// removeOthers removes from a Secret, as the API server returned it, the data that
// are not wanted: an apply leaves those of other managers.
func (a *application) removeOthers(ctx context.Context, applied *unstructured.Unstructured, wanted map[string][]byte) error {
	data, _, _ := unstructured.NestedMap(applied.Object, "data") // a Secret has a map there, or nothing
	maps.DeleteFunc(data, func(key string, _ any) bool { return wanted[key] != nil })
	if len(data) == 0 {
		return nil
	}
	for key := range data {
		data[key] = nil
	}
	patch, err := json.Marshal(map[string]any{"data": data, "metadata": map[string]any{"resourceVersion": applied.GetResourceVersion()}})
	if err != nil {
		return err
	}
	if err := a.Patch(ctx, applied, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(a.manager)); err != nil {
		return fmt.Errorf("removing data from Secret %s: %w", applied.GetName(), err)
	}
	return nil
}

// Delete deletes a child of the owner, given its present state: what the owner
// controls, and with Orphan also what it has left without a reference. Anything
// else, and what is being deleted, is left alone.
func Delete(ctx context.Context, c client.Client, owner, child client.Object, options ...Option) error {
	a, err := newApplication(c, "", owner, options)
	if err != nil {
		return err
	}
	ours := a.ours(child) && (a.orphan || metav1.IsControlledBy(child, owner))
	if !ours || !child.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := child.GetUID()
	if err := client.IgnoreNotFound(c.Delete(ctx, child, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("deleting %T %s: %w", child, child.GetName(), err)
	}
	return nil
}

// Finalizer adds or removes a finalizer of an object that another user writes
// as well: change is controllerutil.AddFinalizer or RemoveFinalizer. The object
// gets the new finalizers and keeps its resource version, so that a status write
// after it needs no lock.
func Finalizer(ctx context.Context, c client.Client, obj client.Object, name string, change func(client.Object, string) bool) error {
	patched := obj.DeepCopyObject().(client.Object)
	if !change(patched, name) {
		return nil
	}
	if err := c.Patch(ctx, patched, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the finalizers: %w", err)
	}
	obj.SetFinalizers(patched.GetFinalizers())
	return nil
}

// neverStored is a resource version that no object has: etcd gives 2 to the first.
const neverStored = "1"

// send applies want to the object that was judged, and to no other: the cache can
// be late. If there was none, one that exists meanwhile is left alone: the API
// server ignores the resource version of what an apply creates, and compares it
// with that of what exists (Store.Update in k8s.io/apiserver/pkg/registry/generic/registry).
// An object that has the owner already may have changed since; one that gets it
// now may not. The error is a Conflict if it is another object, and a later
// attempt sees it.
func (a *application) send(ctx context.Context, want *unstructured.Unstructured, present client.Object) error {
	switch {
	case present == nil:
		want.SetResourceVersion(neverStored)
	case a.from != nil || a.owner == nil || !metav1.IsControlledBy(present, a.owner):
		want.SetResourceVersion(present.GetResourceVersion())
		fallthrough
	default:
		want.SetUID(present.GetUID())
	}
	a.mark(want)
	a.finalize(want, present)
	err := a.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(a.manager), client.ForceOwnership)
	if isStale(err) {
		err = apierrors.NewConflict(schema.GroupResource{Resource: want.GetKind()}, want.GetName(), errors.New("it is another object than the cache shows, or is being deleted"))
	}
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	if present == nil && a.created != nil {
		a.created(want.GetUID())
	}
	return nil
}

// CacheBehind is the Conflict for an object of a kind whose cached state is older than the live
// one that was read: what the live one has is decided on once the cache shows it.
func CacheBehind(live client.Object, kind string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kind}, live.GetName(), errors.New("the cache does not show its latest state yet"))
}

// outdated returns a Conflict if the object is not the one that want was computed from.
func (a *application) outdated(want *unstructured.Unstructured, present client.Object) error {
	version := ""
	if present != nil {
		version = present.GetResourceVersion()
	}
	if a.from == nil || *a.from == version {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: want.GetKind()}, want.GetName(), errors.New("it has changed since it was read"))
}

// isStale reports whether an apply failed because the object has another UID, or is being
// deleted and no longer has the finalizer that it was seen with.
func isStale(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid" || c.Field == "metadata.finalizers"
	})
}

// configuration turns desired into what is sent: no status, no empty metadata,
// the owner, and the hash of it all.
func (a *application) configuration(desired client.Object) (*unstructured.Unstructured, error) {
	if a.owner != nil && !a.orphan {
		if err := controllerutil.SetControllerReference(a.owner, desired, a.Scheme()); err != nil {
			return nil, err
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", desired, err)
	}
	want := &unstructured.Unstructured{Object: content}
	gvk, err := apiutil.GVKForObject(desired, a.Scheme())
	if err != nil {
		return nil, err
	}
	want.SetGroupVersionKind(gvk)
	delete(want.Object, "status")
	unstructured.RemoveNestedField(want.Object, "metadata", "creationTimestamp")
	if a.before, err = digest(want.Object); err != nil {
		return nil, err
	}
	sum, err := digest(meaning(desired, want))
	if err != nil {
		return nil, err
	}
	annotate(want, appliedAnnotation, sum)
	return want, nil
}

func digest(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

func annotate(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

func (a *application) upToDate(existing client.Object, want *unstructured.Unstructured) (bool, error) {
	if existing.GetAnnotations()[appliedAnnotation] == a.before {
		annotate(want, appliedAnnotation, a.before)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(existing)
	if err != nil {
		return false, fmt.Errorf("converting %T: %w", existing, err)
	}
	// A typed object from the cache does not say what it is.
	content["apiVersion"], content["kind"] = want.GetAPIVersion(), want.GetKind()
	return covers(content, want.Object), nil
}

// covers reports whether have contains everything of want. A list has the same
// number of items in the same order, each with everything that is wanted of it:
// the API server adds defaults to them, for example to containers.
func covers(have, want any) bool {
	if wantList, ok := want.([]any); ok {
		return coversList(have, wantList)
	}
	wantMap, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	haveMap, ok := have.(map[string]any)
	if !ok {
		return len(wantMap) == 0
	}
	for key, value := range wantMap {
		if !covers(haveMap[key], value) {
			return false
		}
	}
	return true
}

func coversList(have any, want []any) bool {
	haveList, ok := have.([]any)
	if !ok {
		return len(want) == 0
	}
	return slices.EqualFunc(haveList, want, covers)
}
