package topology_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// TestSharedProtection runs the stories of Topologies that single nodes refer to.
func TestSharedProtection(t *testing.T) {
	api := shared.Env(t).Client
	for name, story := range map[string]func(*testing.T, client.Client){
		"all nodes of a role hold it with one finalizer and one manager":     oneFinalizer,
		"it is released when no node holds it":                               releasedAtLast,
		"who holds it right after the release holds it again":                heldAfterRelease,
		"who came right before the release keeps it from being released":     heldBeforeRelease,
		"a node that moves to another role never leaves it unheld":           moved,
		"one that is deleted takes no new nodes and stays with those it had": sharedDeleting,
		"finalizers of single nodes, of versions before, are replaced":       migrated,
		"what nobody holds in common is not looked at":                       notLookedAt,
	} {
		t.Run(name, func(t *testing.T) { story(t, api) })
	}
}

var compute = topology.NodesOf("compute").Finalizer()

// stored is a Topology as the API server has it.
func stored(t *testing.T, api client.Client, name string) *topologyv1.Topology {
	t.Helper()
	topo := &topologyv1.Topology{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, topo); err != nil {
		t.Fatal(err)
	}
	return topo
}

func holdFor(t *testing.T, s *topology.Shared, c client.Client, role, name, applied string) {
	t.Helper()
	if err := s.Hold(t.Context(), c, topology.NodesOf(role), namespace, ref(name), ref(applied)); err != nil {
		t.Fatalf("holding %s for a node of %s: %v", name, role, err)
	}
}

// releaseWith releases with nodes by their roles.
func releaseWith(t *testing.T, s *topology.Shared, c client.Client, topo *topologyv1.Topology, roles map[string]string) {
	t.Helper()
	if err := s.Release(t.Context(), c, topo, func() (map[string]string, error) { return roles, nil }); err != nil {
		t.Fatal(err)
	}
}

func oneFinalizer(t *testing.T, api client.Client) {
	makeTopology(t, api, "shared-one")
	s, group := &topology.Shared{}, sync.WaitGroup{}
	for range 60 {
		group.Go(func() {
			persist(t, func() error {
				return s.Hold(context.Background(), api, topology.NodesOf("compute"), namespace, ref("shared-one"), nil)
			})
		})
	}
	group.Wait()
	expectFinalizers(t, api, "shared-one", compute)
	if n := len(stored(t, api, "shared-one").ManagedFields); n > 2 {
		t.Errorf("there are %d entries of managed fields; want that of who created it and that of the nodes", n)
	}
	watched := &recorder{Client: api}
	holdFor(t, s, watched, "compute", "shared-one", "")
	if len(watched.writes) > 0 {
		t.Errorf("needless writes: %q", watched.writes)
	}
}

func releasedAtLast(t *testing.T, api client.Client) {
	makeTopology(t, api, "shared-last", "example.com/mine")
	s := &topology.Shared{}
	holdFor(t, s, api, "compute", "shared-last", "")
	holdFor(t, s, api, "storage", "shared-last", "")
	releaseWith(t, s, api, stored(t, api, "shared-last"), map[string]string{"n1": "compute", "n2": "storage"})
	expectFinalizers(t, api, "shared-last", compute, topology.NodesOf("storage").Finalizer(), "example.com/mine")
	releaseWith(t, s, api, stored(t, api, "shared-last"), map[string]string{"n1": "compute"})
	expectFinalizers(t, api, "shared-last", compute, "example.com/mine")
	releaseWith(t, s, api, stored(t, api, "shared-last"), nil)
	expectFinalizers(t, api, "shared-last", "example.com/mine")
	if n := len(stored(t, api, "shared-last").ManagedFields); n > 2 {
		t.Errorf("%d entries of managed fields are left", n)
	}
}

// The cache still shows the finalizer that has just been removed.
func heldAfterRelease(t *testing.T, api client.Client) {
	makeTopology(t, api, "shared-late")
	s := &topology.Shared{}
	holdFor(t, s, api, "compute", "shared-late", "")
	stale := &frozen{Client: api, topo: *stored(t, api, "shared-late")}
	releaseWith(t, s, api, stored(t, api, "shared-late"), nil)
	holdFor(t, s, stale, "compute", "shared-late", "")
	expectFinalizers(t, api, "shared-late", compute)
}

// The release waits for who holds, and then sees the object in the cache.
func heldBeforeRelease(t *testing.T, api client.Client) {
	makeTopology(t, api, "shared-race")
	s, mu, cache := &topology.Shared{}, sync.Mutex{}, map[string]string{}
	group := sync.WaitGroup{}
	for i := range 20 {
		name := fmt.Sprintf("n%02d", i)
		group.Go(func() {
			mu.Lock()
			cache[name] = "compute"
			mu.Unlock()
			persist(t, func() error {
				return s.Hold(context.Background(), api, topology.NodesOf("compute"), namespace, ref("shared-race"), nil)
			})
		})
		group.Go(func() {
			persist(t, func() error {
				topo := &topologyv1.Topology{}
				if err := api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "shared-race"}, topo); err != nil {
					return err
				}
				return s.Release(context.Background(), api, topo, func() (map[string]string, error) {
					mu.Lock()
					defer mu.Unlock()
					seen := map[string]string{}
					for n, role := range cache {
						seen[n] = role
					}
					return seen, nil
				})
			})
		})
	}
	group.Wait()
	expectFinalizers(t, api, "shared-race", compute)
}

func moved(t *testing.T, api client.Client) {
	makeTopology(t, api, "shared-moved")
	s, other := &topology.Shared{}, topology.NodesOf("other")
	holdFor(t, s, api, "compute", "shared-moved", "")
	releaseWith(t, s, api, stored(t, api, "shared-moved"), map[string]string{"n": "other"})
	expectFinalizers(t, api, "shared-moved", compute)
	holdFor(t, s, api, "other", "shared-moved", "shared-moved")
	releaseWith(t, s, api, stored(t, api, "shared-moved"), map[string]string{"n": "other"})
	expectFinalizers(t, api, "shared-moved", other.Finalizer())
}

func sharedDeleting(t *testing.T, api client.Client) {
	topo := makeTopology(t, api, "shared-leaving")
	s := &topology.Shared{}
	holdFor(t, s, api, "compute", "shared-leaving", "")
	if err := api.Delete(t.Context(), topo); err != nil {
		t.Fatal(err)
	}
	holdFor(t, s, api, "compute", "shared-leaving", "shared-leaving")
	for applied, role := range map[string]string{"": "compute", "another": "other"} {
		err := s.Hold(t.Context(), api, topology.NodesOf(role), namespace, ref("shared-leaving"), ref(applied))
		expectHalt(t, err, topologyv1.TopologyDeletingReason, `"shared-leaving"`)
	}
	releaseWith(t, s, api, stored(t, api, "shared-leaving"), map[string]string{"n": "compute"})
	expectFinalizers(t, api, "shared-leaving", compute)
	releaseWith(t, s, api, stored(t, api, "shared-leaving"), nil)
	expectFinalizers(t, api, "shared-leaving", "gone")
}

func migrated(t *testing.T, api client.Client) {
	makeTopology(t, api, "shared-old")
	roles, legacy := map[string]string{}, []string{}
	for i := range 20 {
		node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("n%02d", i)}}
		if _, err := topology.Ensure(t.Context(), api, node, ref("shared-old"), nil); err != nil {
			t.Fatal(err)
		}
		roles[node.Name] = "compute"
		legacy = append(legacy, topology.Consumer{Kind: "OpenStackDataPlaneNode", Name: node.Name}.Finalizer())
	}
	s := &topology.Shared{}
	delete(roles, "n19") // deleted while no manager was there
	releaseWith(t, s, api, stored(t, api, "shared-old"), roles)
	expectFinalizers(t, api, "shared-old", slices.Clone(legacy[:19])...)
	holdFor(t, s, api, "compute", "shared-old", "shared-old")
	releaseWith(t, s, api, stored(t, api, "shared-old"), roles)
	expectFinalizers(t, api, "shared-old", compute)
	if n := len(stored(t, api, "shared-old").ManagedFields); n > 2 {
		t.Errorf("%d entries of managed fields are left of %d nodes", n, len(legacy))
	}
}

func notLookedAt(t *testing.T, api client.Client) {
	topo := makeTopology(t, api, "shared-none", "openstack.org/openstackdataplanerole-compute")
	s := &topology.Shared{}
	err := s.Release(t.Context(), api, topo, func() (map[string]string, error) {
		t.Error("nodes are listed for a Topology that no node holds")
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expectFinalizers(t, api, "shared-none", "openstack.org/openstackdataplanerole-compute")
}
