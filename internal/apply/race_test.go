package apply_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

const finalizer = "example.com/finalizer"

// late is a client whose reads show what was there before the last change.
type late struct {
	client.Client
	shows *corev1.ConfigMap // nil for nothing
}

func (l late) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if l.shows == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	l.shows.DeepCopyInto(obj.(*corev1.ConfigMap))
	return nil
}

// race is one name that two want, on a real API server.
type race struct {
	*testing.T
	api   client.Client
	owner *corev1.ServiceAccount
	name  string
}

func (r race) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: r.name}
}

func (r race) make(obj client.Object) {
	r.Helper()
	if err := r.api.Create(context.Background(), obj); err != nil {
		r.Fatal(err)
	}
}

// theirs makes the object of another user.
func (r race) theirs() *corev1.ConfigMap {
	r.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: r.meta(), Data: map[string]string{"theirs": "x"}}
	r.make(cm)
	return cm
}

// child applies ours with a cache that shows something.
func (r race) child(shows *corev1.ConfigMap, options ...apply.Option) error {
	desired := &corev1.ConfigMap{ObjectMeta: r.meta(), Data: map[string]string{"ours": "y"}}
	return apply.Child(context.Background(), late{r.api, shows}, "m", r.owner, desired, &corev1.ConfigMap{}, options...)
}

// another makes one more owner.
func (r race) another() *corev1.ServiceAccount {
	r.Helper()
	owner := &corev1.ServiceAccount{ObjectMeta: r.meta()}
	owner.Name = "another-" + r.name
	r.make(owner)
	return owner
}

func (r race) now() *corev1.ConfigMap {
	r.Helper()
	cm := &corev1.ConfigMap{}
	if err := r.api.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: r.name}, cm); err != nil {
		r.Fatal(err)
	}
	return cm
}

// keeps expects that the attempt is to be made again and changed nothing.
func (r race) keeps(want *corev1.ConfigMap, err error) {
	r.Helper()
	if !apierrors.IsConflict(err) {
		r.Errorf("the error is %v; want a Conflict, which is tried again with a newer cache", err)
	}
	if diff := cmp.Diff(want, r.now()); diff != "" {
		r.Errorf("the object differs (-before +after):\n%s", diff)
	}
}

func (r race) replace(old *corev1.ConfigMap) *corev1.ConfigMap {
	r.Helper()
	if err := r.api.Delete(context.Background(), old); err != nil {
		r.Fatal(err)
	}
	return r.theirs()
}

func TestRaces(t *testing.T) {
	api := envtest.Start(t, envtest.Options{}).Client
	for name, story := range map[string]func(race){
		"nothing is there": func(r race) {
			if err := r.child(nil); err != nil {
				r.Fatal(err)
			}
			got := r.now()
			if !metav1.IsControlledBy(got, r.owner) || got.Annotations["edpm.openstack.org/owner"] != "ServiceAccount/"+r.owner.Name {
				r.Errorf("the object is %+v; want it to be the owner's", got.ObjectMeta)
			}
		},
		"a user creates it after the cache was read": func(r race) {
			theirs := r.theirs()
			r.keeps(theirs, r.child(nil))
			var conflict *apply.ConflictError
			if err := r.child(theirs); !errors.As(err, &conflict) {
				r.Errorf("once the cache shows it the error is %v; want a *ConflictError", err)
			}
		},
		"ours is replaced after the cache was read": func(r race) {
			if err := r.child(nil); err != nil {
				r.Fatal(err)
			}
			stale := r.now()
			theirs := r.replace(stale)
			stale.Data = nil // so that there is something to write
			r.keeps(theirs, r.child(stale))
			if err := apply.Delete(context.Background(), r.api, r.owner, stale); !apierrors.IsConflict(err) {
				r.Errorf("deleting what was there before returns %v; want a Conflict", err)
			}
			r.keeps(theirs, r.child(stale))
		},
		"ours is deleted after the cache was read": func(r race) {
			if err := r.child(nil); err != nil {
				r.Fatal(err)
			}
			stale := r.now()
			if err := r.api.Delete(context.Background(), stale); err != nil {
				r.Fatal(err)
			}
			stale.Data = nil
			if err := r.child(stale); !apierrors.IsConflict(err) {
				r.Errorf("the error is %v; want a Conflict", err)
			}
			if err := r.child(nil); err != nil {
				r.Errorf("once the cache shows that it is gone: %v", err)
			}
		},
		"what may be adopted is taken by another user after the cache was read": func(r race) {
			stale := r.theirs()
			taken := stale.DeepCopy()
			taken.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "1"}}
			if err := r.api.Update(context.Background(), taken); err != nil {
				r.Fatal(err)
			}
			r.keeps(taken, r.child(stale, apply.Adopt))
			if err := r.child(taken, apply.Adopt); err != nil {
				r.Errorf("the cache is up to date: %v", err)
			}
		},
		"ours was changed after the cache was read, and stays ours": func(r race) {
			if err := r.child(nil); err != nil {
				r.Fatal(err)
			}
			stale := r.now()
			changed := stale.DeepCopy()
			changed.Data["mine"] = "z"
			if err := r.api.Update(context.Background(), changed); err != nil {
				r.Fatal(err)
			}
			stale.Data = nil
			if err := r.child(stale); err != nil {
				r.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"ours": "y", "mine": "z"}, r.now().Data); diff != "" {
				r.Errorf("the data differ (-want +got):\n%s", diff)
			}
		},
		"ours is created with its finalizer, and keeps it": func(r race) {
			var created []types.UID
			finalized := apply.Finalized(finalizer, func(uid types.UID) { created = append(created, uid) })
			if err := r.child(nil, finalized); err != nil {
				r.Fatal(err)
			}
			stale := r.now()
			stale.Data = nil
			if err := r.child(stale, finalized); err != nil {
				r.Fatal(err)
			}
			if got := r.now(); !slices.Equal(got.Finalizers, []string{finalizer}) || !slices.Equal(created, []types.UID{got.UID}) {
				r.Errorf("the finalizers are %v, and %v were created; want one finalizer, and %s alone", got.Finalizers, created, got.UID)
			}
		},
		"ours does not get a finalizer again that was removed": func(r race) {
			finalized := apply.Finalized(finalizer, func(types.UID) {})
			if err := r.child(nil, finalized); err != nil {
				r.Fatal(err)
			}
			without := r.now()
			if err := apply.Finalizer(context.Background(), r.api, without, finalizer, controllerutil.RemoveFinalizer); err != nil {
				r.Fatal(err)
			}
			without.Data = nil
			if err := r.child(without, finalized); err != nil {
				r.Fatal(err)
			}
			if got := r.now(); len(got.Finalizers) > 0 {
				r.Errorf("the finalizers are %v; want none", got.Finalizers)
			}
		},
		"ours has lost its finalizer because it is being deleted": func(r race) {
			finalized := apply.Finalized(finalizer, func(types.UID) {})
			if err := r.child(nil, finalized); err != nil {
				r.Fatal(err)
			}
			stale := r.now()
			kept := stale.DeepCopy()
			kept.Finalizers = []string{"example.com/other"}
			if err := errors.Join(r.api.Update(context.Background(), kept), r.api.Delete(context.Background(), kept)); err != nil {
				r.Fatal(err)
			}
			leaving := r.now()
			stale.Data = nil
			r.keeps(leaving, r.child(stale, finalized))
			leaving.Finalizers = nil
			if err := r.api.Update(context.Background(), leaving); err != nil {
				r.Fatal(err)
			}
		},
		"ours is shared, and kept until the last owner leaves it": func(r race) {
			if err := r.child(nil); err != nil {
				r.Fatal(err)
			}
			other, ctx := r.another(), context.Background()
			if err := apply.Share(ctx, r.api, other, r.now()); err != nil {
				r.Fatal(err)
			}
			shared := r.now()
			if err := errors.Join(apply.Share(ctx, r.api, other, shared), apply.Share(ctx, r.api, r.owner, shared)); err != nil {
				r.Fatal(err)
			}
			if diff := cmp.Diff(shared, r.now()); diff != "" {
				r.Errorf("sharing it again writes (-before +after):\n%s", diff)
			}
			if err := apply.Leave(ctx, r.api, r.owner, shared); err != nil {
				r.Fatal(err)
			}
			if owners := r.now().OwnerReferences; len(owners) != 1 || owners[0].UID != other.UID {
				r.Errorf("its owners are %v; want the other one", owners)
			}
			left := r.now()
			if err := errors.Join(apply.Leave(ctx, r.api, r.owner, left), apply.Leave(ctx, r.api, other, left)); err != nil {
				r.Fatal(err)
			}
			if err := r.api.Get(ctx, client.ObjectKeyFromObject(left), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				r.Errorf("reading it returns %v; want that it is deleted", err)
			}
		},
		"ours is shared while its owner leaves it": func(r race) {
			if err := r.child(nil); err != nil {
				r.Fatal(err)
			}
			stale := r.now()
			if err := apply.Share(context.Background(), r.api, r.another(), stale); err != nil {
				r.Fatal(err)
			}
			shared := r.now()
			r.keeps(shared, apply.Leave(context.Background(), r.api, r.owner, stale))
			r.keeps(shared, apply.Share(context.Background(), r.api, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "third", UID: "3"}}, stale))
		},
		"theirs is neither shared nor left": func(r race) {
			theirs := r.theirs()
			theirs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: r.owner.Name, UID: r.owner.UID}}
			if err := r.api.Update(context.Background(), theirs); err != nil {
				r.Fatal(err)
			}
			if err := errors.Join(apply.Share(context.Background(), r.api, r.another(), theirs), apply.Leave(context.Background(), r.api, r.owner, theirs)); err != nil {
				r.Fatal(err)
			}
			if diff := cmp.Diff(theirs, r.now()); diff != "" {
				r.Errorf("the object differs (-before +after):\n%s", diff)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := race{T: t, api: api, name: "c-" + schema.GroupKind{Kind: t.Name()}.Kind[len("TestRaces/"):]}
			r.name = dns(r.name)
			r.owner = &corev1.ServiceAccount{ObjectMeta: r.meta()}
			r.make(r.owner)
			story(r)
		})
	}
}

// dns makes a name of the title of a story.
func dns(title string) string {
	name := []byte(title)
	for i, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			name[i] = '-'
		}
	}
	return string(name[:min(len(name), 60)])
}
