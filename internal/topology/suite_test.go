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

// TestProtection runs the stories of those who begin to use a Topology.
func TestProtection(t *testing.T) {
	env := shared.Env(t)
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	api, err := client.New(config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for name, story := range map[string]func(*testing.T, client.Client){
		"gets the finalizer before it is used":                     protectedFirst,
		"in order is not written":                                  noNeedlessWrites,
		"that does not exist is awaited":                           missingIsAwaited,
		"that is being deleted accepts no new users":               deletingIsRefused,
		"that is being deleted stays with those that use it":       deletingIsKept,
		"that is refused for another reason is not called deleted": refusalIsTold,
		"that could not be protected is protected the next time":   failedWrite,
		"with many users has one finalizer":                        manyAtOnce,
		"that is gone is not created by who wants to use it":       goneIsNotCreated,
		"of an earlier version gets one finalizer for many":        oldFinalizers,
	} {
		t.Run("a Topology "+name, func(t *testing.T) { story(t, api) })
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

// user is an object that uses Topologies.
func user(name string) client.Object {
	return &glancev1.GlanceAPI{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
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

func stored(t *testing.T, api client.Client, name string) *topologyv1.Topology {
	t.Helper()
	topo := &topologyv1.Topology{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, topo); err != nil {
		t.Fatal(err)
	}
	return topo
}

func expectFinalizers(t *testing.T, api client.Client, name string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := finalizers(t, api, name); !slices.Equal(got, want) {
		t.Errorf("Topology %s has finalizers %v; want %v", name, got, want)
	}
}

func use(t *testing.T, api client.Client, who string, want, applied *topologyv1.TopologyRef) *topologyv1.Topology {
	t.Helper()
	topo, err := topology.Use(t.Context(), api, user(who), want, applied)
	if err != nil {
		t.Fatalf("using %v: %v", want, err)
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

func protectedFirst(t *testing.T, api client.Client) {
	makeTopology(t, api, "first", "example.com/backup")
	if got := use(t, api, "a", ref("first"), nil); got == nil || got.Name != "first" {
		t.Fatalf("Use returned %v; want first", got)
	}
	expectFinalizers(t, api, "first", "example.com/backup", topologyv1.Finalizer)
	if got := use(t, api, "a", nil, ref("first")); got != nil {
		t.Errorf("without a reference Use returned %s", got.Name)
	}
}

func noNeedlessWrites(t *testing.T, api client.Client) {
	makeTopology(t, api, "still")
	use(t, api, "a", ref("still"), nil)
	watched := &recorder{Client: api}
	for range 3 {
		use(t, watched, "a", ref("still"), ref("still"))
		use(t, watched, "other", nil, nil)
	}
	if len(watched.writes) > 0 {
		t.Errorf("%d needless writes: %q", len(watched.writes), watched.writes)
	}
	before := stored(t, api, "still").ResourceVersion
	use(t, api, "b", ref("still"), nil)
	if after := stored(t, api, "still").ResourceVersion; after != before {
		t.Error("a second user has changed the Topology")
	}
}

func missingIsAwaited(t *testing.T, api client.Client) {
	_, err := topology.Use(t.Context(), api, user("a"), ref("absent"), ref("present"))
	expectHalt(t, err, topologyv1.TopologyMissingReason, `"absent"`, "namespace default", "create it")
	makeTopology(t, api, "absent")
	use(t, api, "a", ref("absent"), ref("present"))
	expectFinalizers(t, api, "absent", topologyv1.Finalizer)
}

func deletingIsRefused(t *testing.T, api client.Client) {
	leaving := makeTopology(t, api, "leaving")
	use(t, api, "first", ref("leaving"), nil)
	stale := &frozen{Client: api, topo: *stored(t, api, "leaving")}
	if err := api.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]client.Client{"seen by the cache": api, "not seen by the cache yet": stale} {
		_, err := topology.Use(t.Context(), c, user("newcomer"), ref("leaving"), ref("staying"))
		t.Run(name, func(t *testing.T) {
			expectHalt(t, err, topologyv1.TopologyDeletingReason, `"leaving"`, "refer to another")
		})
	}
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
		_, err := topology.Use(t.Context(), refusing{api, refusal}, user("a"), ref("guarded"), nil)
		var halt *phase.Halt
		if !errors.Is(err, refusal) || errors.As(err, &halt) {
			t.Errorf("%s: the error is %#v; want the refusal, which is tried again and shown", name, err)
		}
	}
	expectFinalizers(t, api, "guarded")
}

func deletingIsKept(t *testing.T, api client.Client) {
	used := makeTopology(t, api, "used")
	use(t, api, "a", ref("used"), nil)
	if err := api.Delete(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	if got := use(t, api, "a", ref("used"), ref("used")); got == nil {
		t.Error("a consumer lost its Topology because a user deleted it")
	}
	expectFinalizers(t, api, "used", topologyv1.Finalizer)
}

func manyAtOnce(t *testing.T, api client.Client) {
	const users = 40
	makeTopology(t, api, "popular", "example.com/mine")
	var group sync.WaitGroup
	for i := range users {
		group.Go(func() {
			if _, err := topology.Use(t.Context(), api, user(fmt.Sprintf("c%02d", i)), ref("popular"), nil); err != nil && !apierrors.IsConflict(err) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	expectFinalizers(t, api, "popular", "example.com/mine", topologyv1.Finalizer)
}

func goneIsNotCreated(t *testing.T, api client.Client) {
	topo := makeTopology(t, api, "ghost")
	stale := &frozen{Client: api, topo: *topo}
	if err := api.Delete(t.Context(), topo); err != nil {
		t.Fatal(err)
	}
	_, err := topology.Use(t.Context(), stale, user("a"), ref("ghost"), nil)
	expectHalt(t, err, topologyv1.TopologyMissingReason, `"ghost"`)
	expectFinalizers(t, api, "ghost", "gone")
}

// oldFinalizers : each user replaces that of its own, and no other.
func oldFinalizers(t *testing.T, api client.Client) {
	long := strings.Repeat("edge-", 20) + "a"
	const cut = "openstack.org/glanceapi-edge-edge-edge-edge-edge-edge-edge-edge-ed-53de4169ff"
	others := []string{"openstack.org/glanceapi-b", "openstack.org/cinderapi-a", "openstack.org/openstackdataplanenode-n1"}
	makeTopology(t, api, "upgraded", append(others, "openstack.org/glanceapi-a", "openstack.org/openstackdataplanenodes-compute")...)
	use(t, api, "a", ref("upgraded"), ref("upgraded"))
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "n1"}}
	node.Spec.Role = "compute"
	if _, err := topology.Use(t.Context(), api, node, ref("upgraded"), ref("upgraded")); err != nil {
		t.Fatal(err)
	}
	expectFinalizers(t, api, "upgraded", "openstack.org/glanceapi-b", "openstack.org/cinderapi-a", topologyv1.Finalizer)

	makeTopology(t, api, "upgraded-long", cut)
	use(t, api, long, ref("upgraded-long"), ref("upgraded-long"))
	expectFinalizers(t, api, "upgraded-long", topologyv1.Finalizer)
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
	makeTopology(t, api, "lost-write")
	late := &failing{Client: api, left: 1}
	if _, err := topology.Use(t.Context(), late, user("a"), ref("lost-write"), nil); err == nil {
		t.Error("what was not written protects nothing")
	}
	use(t, late, "a", ref("lost-write"), nil)
	expectFinalizers(t, api, "lost-write", topologyv1.Finalizer)
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
