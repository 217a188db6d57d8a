package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var ctx = context.Background()

// desk is an API server that counts what is applied.
type desk struct {
	client.Client
	writes int
}

func newDesk(objects ...client.Object) *desk {
	d := &desk{}
	d.Client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithReturnManagedFields().
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				d.writes++
				return c.Apply(ctx, obj, opts...)
			},
		}).Build()
	return d
}

func owner(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child", Labels: map[string]string{"l": "v"}}, Data: data}
}

func (d *desk) child(t *testing.T, data map[string]string) *corev1.ConfigMap {
	t.Helper()
	existing := &corev1.ConfigMap{}
	if err := Child(ctx, d, "manager", owner("me"), configMap(data), existing); err != nil {
		t.Fatal(err)
	}
	return existing
}

func (d *desk) stored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	got := &corev1.ConfigMap{}
	if err := d.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "child"}, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func (d *desk) expect(t *testing.T, data map[string]string, writes int) {
	t.Helper()
	if diff := cmp.Diff(data, d.stored(t).Data); diff != "" {
		t.Errorf("the data differ (-want +got):\n%s", diff)
	}
	if d.writes != writes {
		t.Errorf("there were %d writes; want %d", d.writes, writes)
	}
}

func TestAChildIsCreatedAndOwned(t *testing.T) {
	d := newDesk()
	d.child(t, map[string]string{"a": "1"})
	d.expect(t, map[string]string{"a": "1"}, 1)
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "me", UID: "uid-me", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	if diff := cmp.Diff(want, d.stored(t).OwnerReferences); diff != "" {
		t.Errorf("the owners differ (-want +got):\n%s", diff)
	}
}

func TestAChildThatHasAllIsNotWritten(t *testing.T) {
	d := newDesk()
	for range 10 {
		d.child(t, map[string]string{"a": "1", "b": "2"})
	}
	d.expect(t, map[string]string{"a": "1", "b": "2"}, 1)
}

func TestAChildThatDiffersIsWrittenOnce(t *testing.T) {
	d := newDesk()
	d.child(t, map[string]string{"a": "1"})
	for range 3 {
		d.child(t, map[string]string{"a": "2"})
	}
	d.expect(t, map[string]string{"a": "2"}, 2)
}

func TestAFieldThatIsNoLongerWantedIsDropped(t *testing.T) {
	d := newDesk()
	d.child(t, map[string]string{"a": "1", "b": "2"})
	for range 3 {
		d.child(t, map[string]string{"a": "1"})
	}
	d.expect(t, map[string]string{"a": "1"}, 2)
}

func TestAFieldOfAPersonSurvives(t *testing.T) {
	d := newDesk()
	d.child(t, map[string]string{"a": "1"})
	human := d.stored(t)
	human.Data["mine"] = "x"
	if err := d.Update(ctx, human, client.FieldOwner("human")); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		d.child(t, map[string]string{"a": "1"})
	}
	d.expect(t, map[string]string{"a": "1", "mine": "x"}, 1)
	d.child(t, map[string]string{"a": "2"})
	d.expect(t, map[string]string{"a": "2", "mine": "x"}, 2)
}

func TestWhatAPersonChangesOfOursIsPutBack(t *testing.T) {
	d := newDesk()
	d.child(t, map[string]string{"a": "1"})
	human := d.stored(t)
	human.Data["a"] = "mine"
	if err := d.Update(ctx, human, client.FieldOwner("human")); err != nil {
		t.Fatal(err)
	}
	d.child(t, map[string]string{"a": "1"})
	d.expect(t, map[string]string{"a": "1"}, 2)
}

func TestAnObjectWithoutAnOwnerIsAdopted(t *testing.T) {
	d := newDesk(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child"}, Data: map[string]string{"mine": "x"}})
	d.child(t, map[string]string{"a": "1"})
	d.expect(t, map[string]string{"a": "1", "mine": "x"}, 1)
	if ref := metav1.GetControllerOf(d.stored(t)); ref == nil || ref.UID != "uid-me" {
		t.Errorf("the owner is %+v; want me", ref)
	}
}

func TestAnObjectOfAnotherOwnerIsLeftAlone(t *testing.T) {
	theirs := configMap(map[string]string{"theirs": "x"})
	theirs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "other", UID: "uid-other", Controller: ptr.To(true)}}
	d := newDesk(theirs)
	err := Child(ctx, d, "manager", owner("me"), configMap(map[string]string{"a": "1"}), &corev1.ConfigMap{})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || *conflict != (ConflictError{Kind: "ConfigMap", Name: "child", Owner: "Pod/other"}) {
		t.Fatalf("the error is %v; want a ConflictError that names Pod/other", err)
	}
	if !strings.Contains(err.Error(), "remove it or rename") {
		t.Errorf("the error says %q; want the remedy in it", err)
	}
	d.expect(t, map[string]string{"theirs": "x"}, 0)
}

func TestAnObjectOfAnOwnerOfTheSameNameBeforeIsLeftAlone(t *testing.T) {
	old := configMap(nil)
	old.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "me", UID: "uid-before", Controller: ptr.To(true)}}
	d := newDesk(old)
	var conflict *ConflictError
	if err := Child(ctx, d, "manager", owner("me"), configMap(nil), &corev1.ConfigMap{}); !errors.As(err, &conflict) {
		t.Errorf("the error is %v; want a ConflictError, as the object is about to be collected", err)
	}
}

func TestAChildCanBeGivenAway(t *testing.T) {
	d := newDesk()
	d.child(t, map[string]string{"a": "1"})
	for range 3 {
		if err := Child(ctx, d, "manager", nil, configMap(map[string]string{"a": "1"}), &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
	}
	if refs := d.stored(t).OwnerReferences; len(refs) > 0 {
		t.Errorf("the owners are %+v; want none", refs)
	}
	d.expect(t, map[string]string{"a": "1"}, 2)
}

func TestExistingIsWhatIsStored(t *testing.T) {
	d := newDesk()
	for _, data := range []map[string]string{{"a": "1"}, {"a": "1"}, {"a": "2"}} {
		got, want := d.child(t, data), d.stored(t)
		if got.Name != "child" || got.ResourceVersion != want.ResourceVersion || !cmp.Equal(got.Data, want.Data) {
			t.Errorf("existing is %+v; want %+v", got, want)
		}
	}
}

func TestAFaultIsReturned(t *testing.T) {
	boom := errors.New("boom")
	failing := interceptor.NewClient(newDesk().Client.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return boom
		},
	})
	if err := Child(ctx, failing, "manager", owner("me"), configMap(nil), &corev1.ConfigMap{}); !errors.Is(err, boom) {
		t.Errorf("the error is %v; want boom", err)
	}
}

func TestWriteDoesNotReadFirst(t *testing.T) {
	d := newDesk()
	blind := interceptor.NewClient(d.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			t.Error("Write reads, although the object may not be cached")
			return nil
		},
	})
	if err := Write(ctx, blind, "manager", owner("me"), configMap(map[string]string{"a": "1"})); err != nil {
		t.Fatal(err)
	}
	d.expect(t, map[string]string{"a": "1"}, 1)
}

func TestCovers(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		have, want any
		covered    bool
	}{
		"equal":                       {m{"a": "1"}, m{"a": "1"}, true},
		"more is there":               {m{"a": "1", "b": "2"}, m{"a": "1"}, true},
		"less is there":               {m{}, m{"a": "1"}, false},
		"another value":               {m{"a": "2"}, m{"a": "1"}, false},
		"another type":                {m{"a": int64(1)}, m{"a": "1"}, false},
		"more within":                 {m{"a": m{"b": "1", "c": "2"}}, m{"a": m{"b": "1"}}, true},
		"an empty map is no wish":     {m{}, m{"a": m{}}, true},
		"a list is taken whole":       {m{"a": []any{"1", "2"}}, m{"a": []any{"1"}}, false},
		"a list in another order":     {m{"a": []any{"2", "1"}}, m{"a": []any{"1", "2"}}, false},
		"items with defaults":         {m{"a": []any{m{"n": "1", "d": "x"}}}, m{"a": []any{m{"n": "1"}}}, true},
		"an item that differs":        {m{"a": []any{m{"n": "2", "d": "x"}}}, m{"a": []any{m{"n": "1"}}}, false},
		"an empty list is no wish":    {m{}, m{"a": []any{}}, true},
		"a list that is not there":    {m{}, m{"a": []any{"1"}}, false},
		"a map where a value is":      {m{"a": "1"}, m{"a": m{"b": "1"}}, false},
		"nothing is wanted of a map":  {m{"a": "1"}, m{}, true},
		"a false that is not written": {m{}, m{"a": false}, false},
	} {
		if got := covers(c.have, c.want); got != c.covered {
			t.Errorf("%s: covers(%v, %v) = %v; want %v", name, c.have, c.want, got, c.covered)
		}
	}
}
