package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// startSets has the pods of all StatefulSets of a namespace ready until the story ends, and
// notes the images that these have, with each change.
func startSets(namespace string) (seen func() []map[string]string) {
	var mu sync.Mutex
	images, all := map[string]string{}, []map[string]string(nil)
	story.Each(namespace, &appsv1.StatefulSetList{}, func(ctx context.Context, set *appsv1.StatefulSet) {
		mu.Lock()
		if image := set.Spec.Template.Spec.Containers[0].Image; images[set.Name] != image {
			images[set.Name] = image
			all = append(all, maps.Clone(images))
		}
		mu.Unlock()
		readySet(ctx, set)
	})
	return func() []map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// readySet has the pods of a StatefulSet ready.
func readySet(ctx context.Context, set *appsv1.StatefulSet) {
	if set.Status.ObservedGeneration == set.Generation {
		return
	}
	before, replicas := client.MergeFrom(set.DeepCopy()), ptr.Deref(set.Spec.Replicas, 1)
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: replicas, ReadyReplicas: replicas, UpdatedReplicas: replicas}
	_ = api.Status().Patch(ctx, set, before) // fails if the set was deleted
}

// releases of the services in the order of an update, as conductors, scheduler, API, computes in pods.
func releases(images map[string]string) []string {
	var all []string
	for _, name := range []string{"nova-cell0-conductor", "nova-cell1-conductor", "nova-scheduler", "nova-api", "ironic"} {
		_, release, _ := strings.Cut(images[name], ":")
		all = append(all, release)
	}
	all[0], all[1] = max(all[0], all[1]), min(all[0], all[1]) // cells are independent
	return all
}

var _ = Describe("An update of a Nova", func() {
	die := func(rng *rand.Rand) {
		w, server := newOpenStack()
		seen := startSets(w.ns)
		nova := MakeNova("nova", w.ns, "", "")
		ironic := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ironic"}, Spec: novav1.NovaComputeSpec{CellName: "nova-cell1"}}
		w.make(ironic)
		w.makeNodes(1, "compute")
		server.Register("ironic-0")
		server.DiscoverByService()
		up(server, "n000")
		w.computesReady("n000")
		w.condition(ironic, novav1.ComputeServiceReadyCondition, "True/Ready/")
		w.deployed("1")
		w.bring("2")
		w.restart()
		id := w.offered(nova)
		w.calm()
		before, mark := w.databases.times(), len(seen())

		at, answered := 1+rng.IntN(40), rng.IntN(2) == 0
		By(fmt.Sprintf("dying at write %d, answered: %v, in %s", at, answered, w.ns))
		end := func(g Gomega) {
			status := get(g, nova).Status
			g.Expect(status.Images).To(HaveKeyWithValue("api", "api:2"))
			g.Expect(status.Deployed).To(BeNil())
			g.Expect(status.UpgradeCheck).To(BeNil())
			g.Expect(releases(w.images(g))).To(HaveEach("2"))
			g.Expect(status.Jobs).To(And(HaveKey("nova-cell0-mapping"), HaveKey("nova-cell1-mapping")))
		}
		if rng.IntN(2) == 0 { // as a day later
			Expect(api.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(w.ns), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		}
		cut := w.wire.cutAfter(at, answered)
		annotate(nova, common.UpdateAnnotation, id)
		cut.orUntil(end)
		w.restart()
		Eventually(end).Should(Succeed())
		w.calm()
		end(Default)
		for _, images := range seen()[mark:] {
			Expect(slices.IsSortedFunc(releases(images), func(a, b string) int { return strings.Compare(b, a) })).To(BeTrue(), "conductors, scheduler, API and computes in pods are of releases %v", releases(images))
		}
		after := map[string]int{}
		for job, times := range w.databases.times() {
			Expect(times).To(Equal(1), job)
			if before[job] == 0 {
				after[job[:strings.LastIndex(job, "-")]]++
			}
		}
		Expect(after).To(Equal(map[string]int{
			"nova-upgrade-check": 1, "nova-api-db-sync": 1, "nova-cell0-db-sync": 1, "nova-cell1-db-sync": 1, "nova-cell0-mapping": 1, "nova-cell1-mapping": 1,
			"nova-cell0-online-migrations": 1, "nova-cell1-online-migrations": 1,
		}))
	}

	Context("ends in the same way and runs each Job once even if the manager dies at any write", func() {
		eachDeath(4, 200, die)
	})
})
