package topology_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// namespace of all objects of the tests.
const namespace = "default"

// shared has Topologies of different names for all stories.
var shared envtest.Shared

func TestMain(m *testing.M) { os.Exit(envtest.Run(m, &shared)) }

// TestProtection runs the stories of holding and releasing.
func TestProtection(t *testing.T) {
	env := shared.Env(t)
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	api, err := client.New(config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for name, story := range map[string]func(*testing.T, client.Client){
		"the new one is held before the old one is released":                         newBeforeOld,
		"what is in order is not written":                                            noNeedlessWrites,
		"what does not exist is awaited and the old one held":                        missingIsAwaited,
		"what is being deleted takes no new users":                                   deletingIsRefused,
		"what is refused for another reason is not called deleted":                   refusalIsTold,
		"what is being deleted stays with those that hold it":                        deletingIsKept,
		"what was held a moment ago is released although the cache does not show it": unseenHold,
		"what was held before a crash is released although nothing notes it":         unnotedHold,
		"what could not be written is written the next time":                         failedWrite,
		"many consumers lose none of each other's finalizers":                        manyAtOnce,
		"what is gone is not created by who wants to hold it":                        goneIsNotCreated,
		"what came from a backup with finalizers is released":                        foreignFinalizer,
		"a deleted consumer releases, also what is gone":                             releaseOfNothing,
		"what is held and what is applied can be held together":                      heldTogether,
		"ten thousand consumers leave it small, and each releases its own hold":      tenThousand,
	} {
		t.Run(name, func(t *testing.T) { story(t, api) })
	}
}

// recorder counts writes, and notes of each what it was about.
type recorder struct {
	client.Client
	mu     sync.Mutex
	writes []string
}

func (r *recorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	text, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	r.note(string(text))
	return r.Client.Apply(ctx, obj, opts...)
}

func (r *recorder) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	r.note("patch of " + obj.GetName())
	return r.Client.Patch(ctx, obj, patch, opts...)
}

func (r *recorder) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, what)
}

func makeTopology(t *testing.T, api client.Client, name string, finalizers ...string) *topologyv1.Topology {
	t.Helper()
	topo := &topologyv1.Topology{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers},
		Spec:       topologyv1.TopologySpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{constraint("zone", matching("service", "glance"))}},
	}
	if err := api.Create(t.Context(), topo); err != nil {
		t.Fatal(err)
	}
	return topo
}

// consumer is any object; a ConfigMap does as well as another.
func consumer(name string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func finalizerOf(name string) string {
	return topology.Consumer{Kind: "ConfigMap", Name: name}.Finalizer()
}

// finalizers of a stored Topology, sorted; "gone" when there is none.
func finalizers(t *testing.T, api client.Client, name string) []string {
	t.Helper()
	topo := &topologyv1.Topology{}
	err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, topo)
	if apierrors.IsNotFound(err) {
		return []string{"gone"}
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(topo.Finalizers))
}

func expectFinalizers(t *testing.T, api client.Client, name string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := finalizers(t, api, name); !slices.Equal(got, want) {
		t.Errorf("Topology %s has finalizers %v; want %v", name, got, want)
	}
}

func ensure(t *testing.T, api client.Client, who string, want, applied *topologyv1.TopologyRef) *topologyv1.Topology {
	t.Helper()
	topo, err := topology.Ensure(t.Context(), api, consumer(who), want, applied)
	if err != nil {
		t.Fatalf("ensuring %v: %v", want, err)
	}
	return topo
}

func expectHalt(t *testing.T, err error, reason condition.Reason, parts ...string) {
	t.Helper()
	var halt *phase.Halt
	if !errors.As(err, &halt) || halt.Type != condition.TopologyReadyCondition || halt.Reason != reason {
		t.Fatalf("the error is %+v; want a halt of TopologyReady for %s", err, reason)
	}
	for _, p := range parts {
		if !strings.Contains(halt.Message, p) {
			t.Errorf("the message %q does not say %q", halt.Message, p)
		}
	}
}

func newBeforeOld(t *testing.T, api client.Client) {
	makeTopology(t, api, "order-old")
	makeTopology(t, api, "order-new")
	if got := ensure(t, api, "a", ref("order-old"), nil); got == nil || got.Name != "order-old" {
		t.Fatalf("Ensure returned %v; want order-old", got)
	}
	expectFinalizers(t, api, "order-old", finalizerOf("a"))
	watched := &recorder{Client: api}
	ensure(t, watched, "a", ref("order-new"), ref("order-old"))
	if len(watched.writes) != 2 || !strings.Contains(watched.writes[0], "order-new") || !strings.Contains(watched.writes[1], "order-old") {
		t.Errorf("the writes are %q; want first order-new, then order-old", watched.writes)
	}
	expectFinalizers(t, api, "order-new", finalizerOf("a"))
	expectFinalizers(t, api, "order-old")
	if got := ensure(t, api, "a", nil, ref("order-new")); got != nil {
		t.Errorf("without a reference Ensure returned %s", got.Name)
	}
	expectFinalizers(t, api, "order-new")
}

func noNeedlessWrites(t *testing.T, api client.Client) {
	makeTopology(t, api, "still")
	ensure(t, api, "a", ref("still"), nil)
	watched := &recorder{Client: api}
	for range 3 {
		ensure(t, watched, "a", ref("still"), ref("still"))
		ensure(t, watched, "other", nil, nil)
	}
	if len(watched.writes) > 0 {
		t.Errorf("%d needless writes: %q", len(watched.writes), watched.writes)
	}
	expectFinalizers(t, api, "still", finalizerOf("a"))
}

func missingIsAwaited(t *testing.T, api client.Client) {
	makeTopology(t, api, "present")
	ensure(t, api, "a", ref("present"), nil)
	_, err := topology.Ensure(t.Context(), api, consumer("a"), ref("absent"), ref("present"))
	expectHalt(t, err, topologyv1.TopologyMissingReason, `"absent"`, "namespace default", "create it")
	expectFinalizers(t, api, "present", finalizerOf("a"))
	makeTopology(t, api, "absent")
	ensure(t, api, "a", ref("absent"), ref("present"))
	expectFinalizers(t, api, "present")
	expectFinalizers(t, api, "absent", finalizerOf("a"))
}

func deletingIsRefused(t *testing.T, api client.Client) {
	leaving := makeTopology(t, api, "leaving")
	makeTopology(t, api, "staying")
	ensure(t, api, "holder", ref("leaving"), nil)
	ensure(t, api, "newcomer", ref("staying"), nil)
	stale := &frozen{Client: api}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(leaving), &stale.topo); err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]client.Client{"seen by the cache": api, "not seen by the cache yet": stale} {
		_, err := topology.Ensure(t.Context(), c, consumer("newcomer"), ref("leaving"), ref("staying"))
		t.Run(name, func(t *testing.T) {
			expectHalt(t, err, topologyv1.TopologyDeletingReason, `"leaving"`, "refer to another")
		})
	}
	expectFinalizers(t, api, "staying", finalizerOf("newcomer"))
	expectFinalizers(t, api, "leaving", finalizerOf("holder"))
}

// refusing is an API server that refuses every patch.
type refusing struct {
	client.Client
	err error
}

func (r refusing) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return r.err
}

func refusalIsTold(t *testing.T, api client.Client) {
	makeTopology(t, api, "guarded")
	kind := topologyv1.GroupVersion.WithKind("Topology").GroupKind()
	for name, refusal := range map[string]error{
		"by rights":    apierrors.NewForbidden(topologyv1.GroupVersion.WithResource("topologies").GroupResource(), "guarded", errors.New("no RBAC policy matched")),
		"by its shape": apierrors.NewInvalid(kind, "guarded", field.ErrorList{field.Invalid(field.NewPath("metadata", "finalizers"), "x", "name part must be non-empty")}),
		"of its spec":  apierrors.NewInvalid(kind, "guarded", field.ErrorList{field.Forbidden(field.NewPath("spec"), "is frozen")}),
	} {
		_, err := topology.Ensure(t.Context(), refusing{api, refusal}, consumer("a"), ref("guarded"), nil)
		var halt *phase.Halt
		if !errors.Is(err, refusal) || errors.As(err, &halt) {
			t.Errorf("%s: the error is %#v; want the refusal, which is tried again and shown", name, err)
		}
	}
	expectFinalizers(t, api, "guarded")
}

func deletingIsKept(t *testing.T, api client.Client) {
	held := makeTopology(t, api, "held")
	ensure(t, api, "a", ref("held"), nil)
	if err := api.Delete(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if got := ensure(t, api, "a", ref("held"), ref("held")); got == nil {
		t.Error("a consumer lost its Topology because somebody deleted it")
	}
	if err := topology.Release(t.Context(), api, consumer("a"), ref("held")); err != nil {
		t.Fatal(err)
	}
	expectFinalizers(t, api, "held", "gone")
}

func manyAtOnce(t *testing.T, api client.Client) {
	const consumers = 40
	makeTopology(t, api, "popular", "example.com/mine")
	want := []string{"example.com/mine"}
	var group sync.WaitGroup
	for i := range consumers {
		name := fmt.Sprintf("c%02d", i)
		group.Go(func() { persist(t, func() error { return holdAgain(t, api, name) }) })
		if i%2 == 0 {
			want = append(want, finalizerOf(name))
		}
	}
	group.Wait()
	if got := finalizers(t, api, "popular"); len(got) != consumers+1 {
		t.Errorf("after %d consumers held it at once it has %d finalizers: %v", consumers, len(got), got)
	}
	for i := range consumers {
		if i%2 == 1 {
			who := consumer(fmt.Sprintf("c%02d", i))
			group.Go(func() { persist(t, func() error { return topology.Release(t.Context(), api, who, ref("popular")) }) })
		}
	}
	group.Wait()
	expectFinalizers(t, api, "popular", want...)
}

func holdAgain(t *testing.T, api client.Client, name string) error {
	_, err := topology.Ensure(t.Context(), api, consumer(name), ref("popular"), nil)
	return err
}

// persist tries again after conflicts, as phase.Runner does.
func persist(t *testing.T, try func() error) {
	for range 100 {
		err := try()
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			t.Error(err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("still conflicts after 100 times")
}

func goneIsNotCreated(t *testing.T, api client.Client) {
	topo := makeTopology(t, api, "ghost")
	stale := &frozen{Client: api, topo: *topo}
	if err := api.Delete(t.Context(), topo); err != nil {
		t.Fatal(err)
	}
	_, err := topology.Ensure(t.Context(), stale, consumer("a"), ref("ghost"), nil)
	expectHalt(t, err, topologyv1.TopologyMissingReason, `"ghost"`)
	expectFinalizers(t, api, "ghost", "gone")
	if err := topology.Release(t.Context(), api, consumer("a"), ref("ghost")); err != nil {
		t.Errorf("releasing what is gone: %v", err)
	}
}

func foreignFinalizer(t *testing.T, api client.Client) {
	makeTopology(t, api, "restored", finalizerOf("a"), finalizerOf("b"))
	ensure(t, api, "a", ref("restored"), nil)
	if err := topology.Release(t.Context(), api, consumer("a"), ref("restored")); err != nil {
		t.Fatal(err)
	}
	expectFinalizers(t, api, "restored", finalizerOf("b"))
}

func releaseOfNothing(t *testing.T, api client.Client) {
	for name, applied := range map[string]*topologyv1.TopologyRef{"nothing": nil, "what is gone": ref("never-was")} {
		if err := topology.Release(t.Context(), api, consumer("a"), applied); err != nil {
			t.Errorf("releasing %s: %v", name, err)
		}
	}
}

func unseenHold(t *testing.T, api client.Client) {
	stale := &frozen{Client: api, topo: *makeTopology(t, api, "unseen")}
	makeTopology(t, api, "unseen-next")
	ensure(t, api, "a", ref("unseen"), nil)
	ensure(t, stale, "a", ref("unseen-next"), ref("unseen"))
	expectFinalizers(t, api, "unseen")
}

func unnotedHold(t *testing.T, api client.Client) {
	makeTopology(t, api, "unnoted")
	makeTopology(t, api, "unnoted-next")
	for name, want := range map[string]*topologyv1.TopologyRef{"another": ref("unnoted-next"), "none": nil} {
		ensure(t, api, "a", ref("unnoted"), nil)
		ensure(t, api, "a", want, nil)
		expectFinalizers(t, api, "unnoted")
		if t.Failed() {
			t.Fatalf("after the reference changed to %s", name)
		}
	}
	ensure(t, api, "a", ref("unnoted"), nil)
	if err := topology.Release(t.Context(), api, consumer("a")); err != nil {
		t.Fatal(err)
	}
	expectFinalizers(t, api, "unnoted")
}

// failing loses its first writes.
type failing struct {
	client.Client
	left int
}

func (f *failing) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if f.left--; f.left >= 0 {
		return apierrors.NewServiceUnavailable("the API server restarts")
	}
	return f.Client.Patch(ctx, obj, patch, opts...)
}

func failedWrite(t *testing.T, api client.Client) {
	late := &frozen{Client: &failing{Client: api, left: 1}, topo: *makeTopology(t, api, "lost-write")}
	ensure(t, api, "a", ref("lost-write"), nil)
	if _, err := topology.Hold(t.Context(), late, consumer("b"), ref("lost-write")); err == nil {
		t.Error("a hold that was not written is no hold")
	}
	ensure(t, late, "b", ref("lost-write"), nil)
	expectFinalizers(t, api, "lost-write", finalizerOf("a"), finalizerOf("b"))
}

func heldTogether(t *testing.T, api client.Client) {
	for _, name := range []string{"together-now", "together-next", "together-no-more"} {
		makeTopology(t, api, name)
		if _, err := topology.Hold(t.Context(), api, consumer("a"), ref(name)); err != nil {
			t.Fatal(err)
		}
	}
	kept := []*topologyv1.TopologyRef{ref("together-next"), ref("together-now")}
	if err := topology.ReleaseOthers(t.Context(), api, consumer("a"), kept); err != nil {
		t.Fatal(err)
	}
	expectFinalizers(t, api, "together-now", finalizerOf("a"))
	expectFinalizers(t, api, "together-next", finalizerOf("a"))
	expectFinalizers(t, api, "together-no-more")
}

// tenThousand consumers are as many of each kind with a finalizer of its own as one
// Topology takes, with the longest names, and nodes by roles. All but a few are there
// from the start, which is as large and takes less time.
func tenThousand(t *testing.T, api client.Client) {
	const roles, nodesOfRole, few = 100, 91, 8
	var consumers []client.Object
	var held []string
	for i := range roles {
		held = append(held, topology.NodesOf(fmt.Sprintf("%s%03d", strings.Repeat("edge-", 20), i)).Finalizer())
	}
	for i := range (topology.MaxHolders - roles) / 4 {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s%03d", strings.Repeat("site-", 20), i)}
		for _, who := range []client.Object{
			&glancev1.GlanceAPI{ObjectMeta: meta}, &novav1.NovaCell{ObjectMeta: meta}, &novav1.NovaCompute{ObjectMeta: meta}, &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: meta},
		} {
			c, err := topology.ConsumerOf(api.Scheme(), who)
			if err != nil {
				t.Fatal(err)
			}
			consumers, held = append(consumers, who), append(held, c.Finalizer())
		}
	}
	if n := roles*nodesOfRole + len(consumers); n < 10000 {
		t.Fatalf("there are only %d consumers", n)
	}
	topo := makeTopology(t, api, "crowded", held[:len(held)-few]...)
	for _, who := range consumers[len(consumers)-few:] {
		if _, err := topology.Ensure(t.Context(), api, who, ref(topo.Name), nil); err != nil {
			t.Fatal(err)
		}
	}
	crowded := stored(t, api, topo.Name)
	text, err := json.Marshal(crowded)
	if err != nil {
		t.Fatal(err)
	}
	if limit := 256 << 10; len(text) > limit || len(crowded.Finalizers) != topology.MaxHolders {
		t.Errorf("with %d finalizers it has %d bytes; want %d and at most %d", len(crowded.Finalizers), len(text), topology.MaxHolders, limit)
	}
	_, err = topology.Ensure(t.Context(), api, consumer("too-many"), ref(topo.Name), nil)
	expectHalt(t, err, topologyv1.TopologyFullReason, `"crowded"`, "1000 objects", "create another")
	first, err := topology.ConsumerOf(api.Scheme(), consumers[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.Release(t.Context(), api, consumers[0], ref(topo.Name)); err != nil {
		t.Fatal(err)
	}
	expectFinalizers(t, api, topo.Name, slices.DeleteFunc(crowded.Finalizers, func(f string) bool { return f == first.Finalizer() })...)
	ensure(t, api, "there-is-room", ref(topo.Name), nil)
}

// frozen reads a Topology as a cache that lags behind shows it.
type frozen struct {
	client.Client
	topo topologyv1.Topology
}

func (f *frozen) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if topo, ok := obj.(*topologyv1.Topology); ok && key == (types.NamespacedName{Namespace: f.topo.Namespace, Name: f.topo.Name}) {
		f.topo.DeepCopyInto(topo)
		return nil
	}
	return f.Client.Get(ctx, key, obj, opts...)
}

func (f *frozen) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := f.Client.List(ctx, list, opts...)
	if topologies, ok := list.(*topologyv1.TopologyList); ok {
		topologies.Items = slices.DeleteFunc(topologies.Items, func(t topologyv1.Topology) bool { return t.Name == f.topo.Name })
		topologies.Items = append(topologies.Items, f.topo)
	}
	return err
}
