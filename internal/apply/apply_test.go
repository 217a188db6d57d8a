package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/phase"
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

// controlled are the owner references of what a Pod controls.
func controlled(name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}
}

func TestOnlyWhatIsOursIsWritten(t *testing.T) {
	ofMe := map[string]string{common.OwnerAnnotation: "Pod/me"}
	hashOnly := map[string]string{appliedAnnotation: "0123456789abcdef"}
	for name, c := range map[string]struct {
		owners      []metav1.OwnerReference
		annotations map[string]string
		options     []Option
		want        string // the error; empty when the object is written
	}{
		"controlled by the owner":              {owners: controlled("me", "uid-me")},
		"likewise, by another operator":        {owners: controlled("me", "uid-me"), options: []Option{Own}, want: `ConfigMap "child" belongs to Pod/me, but was created by another operator: delete it if nothing needs it, or rename one of the two, or hand it over with the annotation edpm.openstack.org/owner=Pod/me`},
		"likewise, and handed over":            {owners: controlled("me", "uid-me"), annotations: ofMe, options: []Option{Own}},
		"likewise, by edpm-operators":          {owners: controlled("me", "uid-me"), annotations: hashOnly, options: []Option{Own}},
		"controlled by something else":         {owners: controlled("other", "uid-other"), want: `ConfigMap "child" belongs to Pod/other: delete it if nothing needs it, or rename one of the two`},
		"of something else, marked as ours":    {owners: controlled("other", "uid-other"), annotations: ofMe, want: `ConfigMap "child" belongs to Pod/other: delete it if nothing needs it, or rename one of the two`},
		"of something else, and to be adopted": {owners: controlled("other", "uid-other"), options: []Option{Adopt}, want: `ConfigMap "child" belongs to Pod/other: delete it if nothing needs it, or rename one of the two`},
		"of an owner of that name before":      {owners: controlled("me", "uid-before"), want: `ConfigMap "child" belongs to a deleted Pod/me of the same name: waiting until Kubernetes has deleted it`},
		"no one's":                             {want: `ConfigMap "child" exists already and was not created for Pod/me: delete it if nothing needs it, or rename one of the two, or hand it over with the annotation edpm.openstack.org/owner=Pod/me`},
		"no one's, and to be adopted":          {options: []Option{Adopt}},
		"no one's, made for the owner":         {annotations: ofMe},
		"no one's, made for another":           {annotations: map[string]string{common.OwnerAnnotation: "Pod/other"}, want: `ConfigMap "child" exists already and was not created for Pod/me: delete it if nothing needs it, or rename one of the two, or hand it over with the annotation edpm.openstack.org/owner=Pod/me`},
		"no one's, with a hash only":           {annotations: hashOnly, want: `ConfigMap "child" exists already and was not created for Pod/me: delete it if nothing needs it, or rename one of the two, or hand it over with the annotation edpm.openstack.org/owner=Pod/me`},
		"left by an earlier version":           {annotations: hashOnly, options: []Option{Orphan}},
		"no one's, and to be left":             {options: []Option{Orphan}, want: `ConfigMap "child" exists already and was not created for Pod/me: delete it if nothing needs it, or rename one of the two, or hand it over with the annotation edpm.openstack.org/owner=Pod/me`},
	} {
		t.Run(name, func(t *testing.T) {
			before := configMap(map[string]string{"theirs": "x"})
			before.OwnerReferences, before.Annotations = c.owners, c.annotations
			d := newDesk(before)
			err := Child(ctx, d, "manager", owner("me"), configMap(map[string]string{"a": "1"}), &corev1.ConfigMap{}, c.options...)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				d.expect(t, map[string]string{"a": "1", "theirs": "x"}, 1)
				return
			}
			var conflict *ConflictError
			if !errors.As(err, &conflict) || err.Error() != c.want {
				t.Errorf("the error is %v; want a *ConflictError: %s", err, c.want)
			}
			d.expect(t, map[string]string{"theirs": "x"}, 0)
		})
	}
}

func TestAConflictIsAConditionWithTheRemedy(t *testing.T) {
	fault := errors.New("the API server is down")
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"none":               {nil, nil},
		"a fault":            {fault, fault},
		"of something else":  {&ConflictError{Kind: "K", Name: "n", Owner: "Pod/p"}, phase.Stalled("T", "Conflict", "K \"n\" belongs to Pod/p: delete it if nothing needs it, or rename one of the two")},
		"it is being wiped":  {&ConflictError{Kind: "K", Name: "n", Owner: "Pod/p", Former: true}, phase.Waiting("T", "Conflict", "K \"n\" belongs to a deleted Pod/p of the same name: waiting until Kubernetes has deleted it")},
		"wrapped, by a name": {fmt.Errorf("w: %w", &ConflictError{Kind: "K", Name: "n", For: "Pod/p"}), phase.Stalled("T", "Conflict", "K \"n\" exists already and was not created for Pod/p: delete it if nothing needs it, or rename one of the two")},
	} {
		if got := Halt("T", c.err); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: the halt is %#v; want %#v", name, got, c.want)
		}
	}
}

func TestAChildCanBeLeftBehind(t *testing.T) {
	d := newDesk()
	d.child(t, map[string]string{"a": "1"})
	for range 3 {
		if err := Child(ctx, d, "manager", owner("me"), configMap(map[string]string{"a": "1"}), &corev1.ConfigMap{}, Orphan); err != nil {
			t.Fatal(err)
		}
	}
	if refs := d.stored(t).OwnerReferences; len(refs) > 0 {
		t.Errorf("the owners are %+v; want none", refs)
	}
	d.expect(t, map[string]string{"a": "1"}, 2)
	d.child(t, map[string]string{"a": "1"})
	if !metav1.IsControlledBy(d.stored(t), owner("me")) {
		t.Error("what was left behind is not taken back by the owner")
	}
}

// What version 0.1 wrote for this child: the hash decides that nothing is written.
func TestAnUpgradeWritesNothing(t *testing.T) {
	old := configMap(map[string]string{"a": "1"})
	old.OwnerReferences = controlled("me", "uid-me")
	old.OwnerReferences[0].BlockOwnerDeletion = ptr.To(true)
	old.Annotations = map[string]string{appliedAnnotation: "56019a1aa40eaa27"}
	d := newDesk(old)
	d.child(t, map[string]string{"a": "1"})
	d.expect(t, map[string]string{"a": "1"}, 0)
	d.child(t, map[string]string{"a": "2"})
	d.expect(t, map[string]string{"a": "2"}, 1)
	if got := d.stored(t).Annotations[common.OwnerAnnotation]; got != "Pod/me" {
		t.Errorf("the mark is %q; the next change adds it", got)
	}
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

func secret(data string, owners []metav1.OwnerReference) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child", OwnerReferences: owners}, Data: map[string][]byte{"a": []byte(data)},
	}
}

func TestASecretIsWrittenOnlyIfItIsOursAndDiffers(t *testing.T) {
	marked := secret("1", nil)
	marked.Annotations = map[string]string{common.OwnerAnnotation: "Pod/me"}
	for name, c := range map[string]struct {
		present  *corev1.Secret
		writes   int
		conflict bool
	}{
		"there is none":                       {nil, 1, false},
		"it is as wanted":                     {secret("1", controlled("me", "uid-me")), 0, false},
		"it differs":                          {secret("2", controlled("me", "uid-me")), 1, false},
		"it lost its owner":                   {marked, 1, false},
		"it is another's":                     {secret("2", controlled("other", "uid-other")), 0, true},
		"it is no one's":                      {secret("2", nil), 0, true},
		"it is no one's, with the right data": {secret("1", nil), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			d, present := newDesk(), c.present
			if present != nil {
				d = newDesk(present.DeepCopy())
				if err := d.Get(ctx, client.ObjectKeyFromObject(present), present); err != nil {
					t.Fatal(err)
				}
			}
			err := Secret(ctx, d, "manager", owner("me"), secret("1", nil), present)
			var conflict *ConflictError
			if errors.As(err, &conflict) != c.conflict || err != nil && !c.conflict {
				t.Errorf("the error is %v; want a conflict: %v", err, c.conflict)
			}
			if d.writes != c.writes {
				t.Errorf("there were %d writes; want %d", d.writes, c.writes)
			}
		})
	}
}

func TestASecretHasNothingButWhatIsWanted(t *testing.T) {
	theirs := secret("2", nil)
	theirs.Annotations, theirs.Data["b"] = map[string]string{common.OwnerAnnotation: "Pod/me"}, []byte("x")
	d := newDesk(theirs)
	if err := Secret(ctx, d, "manager", owner("me"), secret("1", nil), theirs); err != nil {
		t.Fatal(err)
	}
	got := &corev1.Secret{}
	if err := d.Get(ctx, client.ObjectKeyFromObject(theirs), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"a": []byte("1")}, got.Data); diff != "" {
		t.Errorf("the data differ (-want +got):\n%s", diff)
	}
}

func TestSeveralConflictsAreOne(t *testing.T) {
	conflict := func(name, owner string, former bool) *ConflictError {
		return &ConflictError{Kind: "K", Name: name, Owner: owner, For: "Pod/me", Former: former}
	}
	for name, c := range map[string]struct {
		conflicts Conflicts
		want      string
	}{
		"none": {nil, "<nil>"},
		"one":  {Conflicts{conflict("a", "Pod/p", false)}, `K "a" belongs to Pod/p: delete it if nothing needs it, or rename one of the two`},
		"of one owner and of another": {Conflicts{conflict("a", "Pod/p", false), conflict("b", "Pod/q", false), conflict("c", "Pod/p", false)},
			`K "a" belongs to Pod/p: delete it if nothing needs it, or rename one of the two. The same applies to K "c"`},
		"of a former owner, and one that stays": {Conflicts{conflict("a", "Pod/me", true), conflict("b", "Pod/q", false)},
			`K "b" belongs to Pod/q: delete it if nothing needs it, or rename one of the two`},
		"of a former owner": {Conflicts{conflict("a", "Pod/me", true)}, `K "a" belongs to a deleted Pod/me of the same name: waiting until Kubernetes has deleted it`},
	} {
		if got := fmt.Sprint(c.conflicts.Err()); got != c.want {
			t.Errorf("%s: the error is %s; want %s", name, got, c.want)
		}
	}
	fault := errors.New("boom")
	if conflicts := (&Conflicts{}); conflicts.Add(fault) != fault || conflicts.Add(nil) != nil || conflicts.Err() != nil {
		t.Error("an error that is no conflict is not returned")
	}
}

func TestOnlyWhatIsOursIsDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		owners      []metav1.OwnerReference
		annotations map[string]string
		options     []Option
		deleted     bool
	}{
		"controlled by the owner":         {owners: controlled("me", "uid-me"), deleted: true},
		"likewise, by another operator":   {owners: controlled("me", "uid-me"), options: []Option{Own}},
		"likewise, by edpm-operators":     {owners: controlled("me", "uid-me"), annotations: map[string]string{appliedAnnotation: "0"}, options: []Option{Own}, deleted: true},
		"controlled by something else":    {owners: controlled("other", "uid-other")},
		"of an owner of that name before": {owners: controlled("me", "uid-before")},
		"no one's":                        {},
		"no one's, made for the owner":    {annotations: map[string]string{common.OwnerAnnotation: "Pod/me"}},
		"left behind by the owner":        {annotations: map[string]string{common.OwnerAnnotation: "Pod/me"}, options: []Option{Orphan}, deleted: true},
		"left behind by another":          {annotations: map[string]string{common.OwnerAnnotation: "Pod/other"}, options: []Option{Orphan}},
		"left by an earlier version":      {annotations: map[string]string{appliedAnnotation: "0"}, options: []Option{Orphan}, deleted: true},
		"no one's, where some are left":   {options: []Option{Orphan}},
	} {
		t.Run(name, func(t *testing.T) {
			child := configMap(nil)
			child.OwnerReferences, child.Annotations = c.owners, c.annotations
			d := newDesk(child)
			if err := Delete(ctx, d, owner("me"), d.stored(t), c.options...); err != nil {
				t.Fatal(err)
			}
			if gone := apierrors.IsNotFound(d.Get(ctx, client.ObjectKeyFromObject(child), child)); gone != c.deleted {
				t.Errorf("the object is gone: %v; want %v", gone, c.deleted)
			}
		})
	}
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

func TestWhatWasComputedFromAnOlderObjectIsNotWritten(t *testing.T) {
	d := newDesk()
	existing := d.child(t, map[string]string{"a": "1"})
	older := existing.DeepCopy()
	human := d.stored(t)
	human.Data["mine"] = "x"
	if err := d.Update(ctx, human, client.FieldOwner("human")); err != nil {
		t.Fatal(err)
	}
	write := func(from client.Object) error {
		return Child(ctx, d, "manager", owner("me"), configMap(map[string]string{"a": "2"}), &corev1.ConfigMap{}, ComputedFrom(from))
	}
	for name, from := range map[string]client.Object{"an older object": older, "none": nil} {
		if err := write(from); !apierrors.IsConflict(err) {
			t.Errorf("computed from %s: error %v; want a Conflict", name, err)
		}
	}
	d.expect(t, map[string]string{"a": "1", "mine": "x"}, 1)
	if err := write(d.stored(t)); err != nil {
		t.Error(err)
	}
	d.expect(t, map[string]string{"a": "2", "mine": "x"}, 2)
}

func TestWhatWasComputedFromAnObjectIsNotWrittenWithoutIt(t *testing.T) {
	d := newDesk()
	gone := configMap(nil)
	gone.ResourceVersion = "7"
	err := Child(ctx, d, "manager", owner("me"), configMap(nil), &corev1.ConfigMap{}, ComputedFrom(gone))
	if !apierrors.IsConflict(err) || d.writes != 0 {
		t.Errorf("error %v, %d writes; want a Conflict and none", err, d.writes)
	}
}
