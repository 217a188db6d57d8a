package edpm

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// Owner is a kind whose objects own targets.
type Owner struct {
	// Kind of the objects.
	Kind string
	// New returns an empty object, List an empty list of them.
	New  func() client.Object
	List func() client.ObjectList
	// Ledger of an object.
	Ledger func(client.Object) *common.Ledger
	// Host of an object; nil where objects are named like their hosts.
	Host func(client.Object) string
	// Busy returns what the host of an object does that a step would interrupt; nil where steps
	// interrupt nothing.
	Busy func(context.Context, client.Object) Busy
	// HostIndex is a field index of the hosts of the objects, where Host is set.
	HostIndex string
}

// ownerID names an object that owns targets.
type ownerID struct{ kind, namespace, name string }

// owners are the kinds whose objects own targets. They are registered before the
// manager starts, and do not change later.
type owners struct {
	reader client.Reader
	kinds  map[string]Owner
	// wakeups has objects that are to be reconciled, by kind.
	wakeups map[string]chan event.GenericEvent
}

func newOwners(reader client.Reader) owners {
	return owners{reader: reader, kinds: map[string]Owner{}, wakeups: map[string]chan event.GenericEvent{}}
}

func (o owners) register(kind Owner) {
	o.kinds[kind.Kind] = kind
	o.wakeups[kind.Kind] = make(chan event.GenericEvent, 1024)
}

// wake lets an owner be reconciled.
func (o owners) wake(id ownerID) {
	kind, ok := o.kinds[id.kind]
	if !ok {
		return
	}
	obj := kind.New()
	obj.SetNamespace(id.namespace)
	obj.SetName(id.name)
	o.wakeups[id.kind] <- event.GenericEvent{Object: obj}
}

// keyOf a step of an owner.
func (o owners) keyOf(kind string, owner client.Object, step string) Key {
	host := owner.GetName()
	if of := o.kinds[kind].Host; of != nil {
		host = of(owner)
	}
	return Key{Namespace: owner.GetNamespace(), Kind: kind, Step: step, Host: host}
}

// manages reports whether the owners of a run are of a kind of this manager.
func (o owners) manages(run *ansibleeev1.OpenStackAnsibleEE) bool {
	_, ok := o.kinds[run.Spec.OwnerKind]
	return ok
}

// of a target of the run; nil when it is gone.
func (o owners) of(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) (client.Object, error) {
	if !o.manages(run) {
		return nil, nil
	}
	obj := o.kinds[run.Spec.OwnerKind].New()
	err := o.reader.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: t.OwnerName()}, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", run.Spec.OwnerKind, t.OwnerName(), err)
	}
	if obj.GetUID() != t.OwnerUID {
		return nil, nil
	}
	return obj, nil
}

// ledger of the owner of a target of the run; nil when the owner is gone.
func (o owners) ledger(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) (*common.Ledger, error) {
	owner, err := o.of(ctx, run, t)
	if err != nil || owner == nil {
		return nil, err
	}
	return o.kinds[run.Spec.OwnerKind].Ledger(owner), nil
}

// onHost returns the objects of a kind that own targets on the host.
func (o owners) onHost(ctx context.Context, kind, namespace, host string) ([]client.Object, error) {
	owner := o.kinds[kind]
	if owner.Host == nil {
		obj := owner.New()
		err := o.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: host}, obj)
		if err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return []client.Object{obj}, nil
	}
	return o.list(ctx, kind, client.InNamespace(namespace), client.MatchingFields{owner.HostIndex: host})
}

// list returns the objects of a kind.
func (o owners) list(ctx context.Context, kind string, opts ...client.ListOption) ([]client.Object, error) {
	list := o.kinds[kind].List()
	if err := o.reader.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	return objects, err
}

// namespaces are those of all owners.
func (o owners) namespaces(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	for _, kind := range slices.Sorted(maps.Keys(o.kinds)) {
		objects, err := o.list(ctx, kind, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing every %s: %w", kind, err)
		}
		for _, obj := range objects {
			found[obj.GetNamespace()] = true
		}
	}
	return found, nil
}
