package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// ConflictError says that an object of the wanted name exists and is not ours.
type ConflictError struct {
	Kind, Name string
	// Owner that controls the object, as kind/name; empty when nothing does.
	Owner string
	// For is the object that wants the name, as kind/name.
	For string
	// Former reports that Owner was an earlier object of the name of For, with
	// which Kubernetes deletes its children.
	Former bool
	// Foreign reports that Owner is For, and that another operator, which knows
	// the kind of For too, created the object.
	Foreign bool
	// Mark is the value of common.OwnerAnnotation that hands the object over to
	// For; empty when nothing but its owner decides.
	Mark string
	// Others are further objects in the same situation, each as Kind "name".
	Others []string
}

// Error names the objects, their owner and the remedy.
func (e *ConflictError) Error() string {
	remedy := "delete it if nothing needs it, or rename one of the two"
	if e.Mark != "" {
		remedy += fmt.Sprintf(", or hand it over with the annotation %s=%s", common.OwnerAnnotation, e.Mark)
	}
	if len(e.Others) > 0 {
		remedy += ". The same applies to " + strings.Join(e.Others, ", ")
	}
	switch {
	case e.Former:
		return fmt.Sprintf("%s belongs to a deleted %s of the same name: waiting until Kubernetes has deleted it", e.object(), e.Owner)
	case e.Owner == "":
		return fmt.Sprintf("%s exists already and was not created for %s: %s", e.object(), e.For, remedy)
	case e.Foreign:
		return fmt.Sprintf("%s belongs to %s, but was created by another operator: %s", e.object(), e.Owner, remedy)
	}
	return fmt.Sprintf("%s belongs to %s: %s", e.object(), e.Owner, remedy)
}

func (e *ConflictError) object() string { return fmt.Sprintf("%s %q", e.Kind, e.Name) }

// Conflicts are objects that are in the way of one owner, in the order in which
// they were found.
type Conflicts []*ConflictError

// Add collects a conflict. Other errors are returned.
func (c *Conflicts) Add(err error) error {
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	*c = append(*c, conflict)
	return nil
}

// Err returns one error for all of them, nil for none: the first that a person has
// to resolve, if there is one, with the others that are in the same situation.
func (c Conflicts) Err() error {
	if len(c) == 0 {
		return nil
	}
	at := max(0, slices.IndexFunc(c, func(e *ConflictError) bool { return !e.Former }))
	first := *c[at]
	for i, other := range c {
		if i != at && other.Former == first.Former && other.Owner == first.Owner {
			first.Others = append(first.Others, other.object())
		}
	}
	return &first
}

// Halt turns a *ConflictError into a *phase.Halt of the condition. Other errors,
// and nil, are returned as they are.
func Halt(t condition.Type, err error) error {
	var conflict *ConflictError
	switch {
	case !errors.As(err, &conflict):
		return err
	case conflict.Former:
		return phase.Waiting(t, common.ConflictReason, "%v", conflict)
	}
	return phase.Stalled(t, common.ConflictReason, "%v", conflict)
}

// Option changes which existing objects count as ours, or what becomes of them.
type Option func(*application)

// Adopt takes over an object that nothing controls, for a kind that people may
// create beforehand.
func Adopt(a *application) { a.adopt = true }

// Orphan writes the child without a reference to the owner, so that it stays
// when the owner is deleted.
func Orphan(a *application) { a.orphan = true }

// ComputedFrom says that desired was computed from the object as it was read, nil if
// there was none. If a user has changed it since, nothing is written, and the error
// is a Conflict: a list that is one value to the API server is computed from the
// whole object, and what was added to it meanwhile would be undone.
func ComputedFrom(read client.Object) Option {
	version := ""
	if read != nil {
		version = read.GetResourceVersion()
	}
	return func(a *application) { a.from = &version }
}

// Own counts what the owner controls as ours only if edpm-operators created it, or a
// person has handed it over. It is for owners of kinds that other operators
// reconcile too, for example glance-operator a GlanceAPI: what those have created
// has the same owner.
func Own(a *application) { a.own = true }

// Finalized creates the child with a finalizer. A child that has it keeps it, and one
// that does not is left without: it may have been removed for good. created is called with
// the UID of a child that was created so.
func Finalized(name string, created func(types.UID)) Option {
	return func(a *application) { a.finalizer, a.created = name, created }
}

// application is one apply on behalf of an owner.
type application struct {
	client.Client
	manager string
	// owner of the child. nil means that the object is shared: nothing is to
	// control it.
	owner client.Object
	kind  schema.GroupKind // of the owner

	adopt, orphan, own bool
	// before is the hash of what is applied as earlier versions made it: of the JSON,
	// into which each version of the Kubernetes libraries writes other empty fields.
	before string
	// finalizer of a child that is created, empty for none, and created, which is called then.
	finalizer string
	created   func(types.UID)
	// from is the resource version that desired was computed from, empty if there was
	// no object; nil if that does not matter.
	from *string
}

func newApplication(c client.Client, manager string, owner client.Object, options []Option) (*application, error) {
	a := &application{Client: c, manager: manager, owner: owner}
	for _, option := range options {
		option(a)
	}
	if owner == nil {
		return a, nil
	}
	gvk, err := apiutil.GVKForObject(owner, c.Scheme())
	a.kind = gvk.GroupKind()
	return a, err
}

// Check returns a *ConflictError if an existing object is not the owner's, and nil
// if Child would write it.
func Check(c client.Client, owner, existing client.Object, options ...Option) error {
	a, err := newApplication(c, "", owner, options)
	if err != nil {
		return err
	}
	gvk, err := apiutil.GVKForObject(existing, c.Scheme())
	if err != nil {
		return err
	}
	if conflict := a.conflict(existing, gvk.Kind); conflict != nil {
		return conflict
	}
	return nil
}

// IsConflict reports whether an object that is not ours is in the way.
func IsConflict(err error) bool {
	var conflict *ConflictError
	return errors.As(err, &conflict)
}

// conflict returns an error when the object is not ours.
func (a *application) conflict(existing client.Object, kind string) *ConflictError {
	if a.ours(existing) {
		return nil
	}
	conflict := &ConflictError{Kind: kind, Name: existing.GetName()}
	if a.owner != nil {
		conflict.For = a.kind.Kind + "/" + a.owner.GetName()
		conflict.Mark = a.ownerName()
	}
	if ref := metav1.GetControllerOf(existing); ref != nil {
		conflict.Owner = ref.Kind + "/" + ref.Name
		group, _ := schema.ParseGroupVersion(ref.APIVersion)
		conflict.Foreign = a.controls(ref)
		conflict.Former = !conflict.Foreign && conflict.Owner == conflict.For && group.Group == a.kind.Group
		if !conflict.Foreign {
			conflict.Mark = "" // the owner decides
		}
	}
	return conflict
}

// ours is what the owner controls, and what nothing controls but was made for an
// owner of this kind and name: it has lost its owner reference, for example
// because the owner was deleted with --cascade=orphan, or in a backup.
func (a *application) ours(existing client.Object) bool {
	ref := metav1.GetControllerOf(existing)
	if ref == nil {
		return a.owner == nil || a.adopt || a.marked(existing)
	}
	return a.controls(ref) && (!a.own || Applied(existing) || a.marked(existing))
}

func (a *application) controls(ref *metav1.OwnerReference) bool {
	return a.owner != nil && ref.UID == a.owner.GetUID()
}

// Applied reports whether edpm-operators has written the object.
func Applied(existing client.Object) bool { return existing.GetAnnotations()[appliedAnnotation] != "" }

// marked reports whether an object that nothing controls was made for the owner.
// Children that a node left without owner before there was the annotation have
// only the hash.
func (a *application) marked(existing client.Object) bool {
	annotations := existing.GetAnnotations()
	owner, found := annotations[common.OwnerAnnotation]
	if !found && a.orphan {
		return Applied(existing)
	}
	return owner == a.ownerName()
}

// mark notes for whom the object is made. It is written with the next change, and
// is itself no reason to write: objects of earlier versions stay as they are.
func (a *application) mark(want *unstructured.Unstructured) {
	if a.owner != nil {
		annotate(want, common.OwnerAnnotation, a.ownerName())
	}
}

func (a *application) ownerName() string { return a.kind.String() + "/" + a.owner.GetName() }

// finalize adds the finalizer to a child that is created, or that has it: what an apply
// leaves out it removes. It is itself no reason to write.
func (a *application) finalize(want *unstructured.Unstructured, present client.Object) {
	if a.finalizer != "" && (present == nil || controllerutil.ContainsFinalizer(present, a.finalizer)) {
		want.SetFinalizers([]string{a.finalizer})
	}
}
