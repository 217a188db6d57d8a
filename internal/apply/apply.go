// Package apply writes child objects with server-side apply, and only when
// there is something to write.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// appliedAnnotation is a hash of what was applied last. It tells when a field
// is no longer wanted, which the object itself cannot tell.
const appliedAnnotation = "edpm.openstack.org/applied-hash"

// ConflictError says that an object of the wanted name belongs to something else.
type ConflictError struct{ Kind, Name, Owner string }

// Error names the object, its owner and the remedy.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s %q belongs to %s: remove it or rename one of the two", e.Kind, e.Name, e.Owner)
}

// Child applies desired as a child of owner under the field manager: the fields
// that desired has are set, those it had before and has no longer are dropped,
// and those of others are left alone. A nil owner means none. existing is an
// empty object of the same type into which the present state is read from the
// cache; after a write it has the state that the API server answered with.
// Nothing is written when the present state has all that is wanted. An object
// that another controller owns is left alone: a *ConflictError is returned.
func Child(ctx context.Context, c client.Client, manager string, owner client.Object, desired, existing client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(desired), existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %T %s: %w", desired, desired.GetName(), err)
	}
	found := err == nil
	want, err := configuration(c, owner, desired)
	if err != nil {
		return err
	}
	if found {
		if conflict := foreign(existing, owner, want.GetKind()); conflict != nil {
			return conflict
		}
		if same, err := upToDate(existing, want); err != nil || same {
			return err
		}
	}
	if err := send(ctx, c, manager, want); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, existing)
}

// Differs tells whether Child would write, given the present state of the object.
func Differs(c client.Client, owner, desired, existing client.Object) (bool, error) {
	want, err := configuration(c, owner, desired)
	if err != nil {
		return false, err
	}
	same, err := upToDate(existing, want)
	return !same, err
}

// Finalizer adds or removes a finalizer of an object that somebody else writes
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

// Write applies desired as a child of owner without looking at the present
// state: for objects that are not cached, such as Secrets. The caller has found
// out that there is something to write.
func Write(ctx context.Context, c client.Client, manager string, owner, desired client.Object) error {
	want, err := configuration(c, owner, desired)
	if err != nil {
		return err
	}
	return send(ctx, c, manager, want)
}

func send(ctx context.Context, c client.Client, manager string, want *unstructured.Unstructured) error {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	return nil
}

// configuration turns desired into what is sent: no status, no empty metadata,
// the owner, and the hash of it all.
func configuration(c client.Client, owner, desired client.Object) (*unstructured.Unstructured, error) {
	if owner != nil {
		if err := controllerutil.SetControllerReference(owner, desired, c.Scheme()); err != nil {
			return nil, err
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", desired, err)
	}
	want := &unstructured.Unstructured{Object: content}
	gvk, err := apiutil.GVKForObject(desired, c.Scheme())
	if err != nil {
		return nil, err
	}
	want.SetGroupVersionKind(gvk)
	delete(want.Object, "status")
	unstructured.RemoveNestedField(want.Object, "metadata", "creationTimestamp")
	text, err := json.Marshal(want.Object)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	annotations := want.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[appliedAnnotation] = hex.EncodeToString(sum[:8])
	want.SetAnnotations(annotations)
	return want, nil
}

// foreign returns an error when something other than owner controls the object.
func foreign(existing, owner client.Object, kind string) error {
	ref := metav1.GetControllerOf(existing)
	if ref == nil || owner == nil || ref.UID == owner.GetUID() {
		return nil
	}
	return &ConflictError{Kind: kind, Name: existing.GetName(), Owner: ref.Kind + "/" + ref.Name}
}

func upToDate(existing client.Object, want *unstructured.Unstructured) (bool, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(existing)
	if err != nil {
		return false, fmt.Errorf("converting %T: %w", existing, err)
	}
	// A typed object from the cache does not say what it is.
	content["apiVersion"], content["kind"] = want.GetAPIVersion(), want.GetKind()
	return covers(content, want.Object), nil
}

// covers tells whether have contains everything of want. A list has the same
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
