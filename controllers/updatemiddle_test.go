package controllers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// heldSets has the pods of all StatefulSets of a namespace ready, but for those of one with images of
// a release.
type heldSets struct {
	mu            sync.Mutex
	name, release string
}

func startHeldSets(namespace string) *heldSets {
	h := &heldSets{}
	story.Each(namespace, &appsv1.StatefulSetList{}, h.ready)
	return h
}

func (h *heldSets) ready(ctx context.Context, set *appsv1.StatefulSet) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if set.Name != h.name || !strings.HasSuffix(set.Spec.Template.Spec.Containers[0].Image, ":"+h.release) {
		readySet(ctx, set)
	}
}

// hold keeps the pods of a StatefulSet from being ready with images of a release, until it is called for
// another one.
func (h *heldSets) hold(namespace, name, release string) {
	GinkgoHelper()
	h.mu.Lock()
	h.name, h.release = name, release
	h.mu.Unlock()
	sets := &appsv1.StatefulSetList{}
	Expect(api.List(ctx, sets, client.InNamespace(namespace))).To(Succeed())
	for i := range sets.Items {
		h.ready(ctx, &sets.Items[i])
	}
}

// nameRelease has a Nova name the images of a release.
func nameRelease(release string) func(*novav1.Nova) {
	return func(n *novav1.Nova) {
		n.Spec.APIServiceTemplate.ContainerImage, n.Spec.SchedulerServiceTemplate.ContainerImage = "api:"+release, "scheduler:"+release
		for cell, t := range n.Spec.CellTemplates {
			t.ConductorServiceTemplate.ContainerImage, t.NovaComputeContainerImage = "conductor:"+release, "compute:"+release
			n.Spec.CellTemplates[cell] = t
		}
	}
}

// middle is an update of a Nova with a compute and a cell without any, which has stopped.
type middle struct {
	*world
	nova   *novav1.Nova
	server *fakenova.Server
}

func (m *middle) addCell(name string) {
	GinkgoHelper()
	m.make(MakeSecret("rabbitmq-transport-url-nova-"+name+"-transport", m.ns, "transport_url", "rabbit://"+name))
	change(m.nova, func(n *novav1.Nova) { n.Spec.CellTemplates[name] = novav1.NovaCellTemplate{} })
}

// inTheMiddle are what people do in the middle of an update to release 2, with the release at its end.
var inTheMiddle = []struct {
	what, release string
	do            func(*middle)
}{
	{"the images are taken back", "1", func(m *middle) { change(m.nova, nameRelease("1")) }},
	{"images of a third release are chosen", "3", func(m *middle) { change(m.nova, nameRelease("3")) }},
	{"all Jobs are deleted", "2", func(m *middle) {
		Expect(api.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(m.ns), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}},
	{"a cell is added", "2", func(m *middle) {
		m.addCell("added")
		change(m.nova, nameRelease("2"))
	}},
	{"a cell is removed", "2", func(m *middle) {
		change(m.nova, func(n *novav1.Nova) { delete(n.Spec.CellTemplates, "empty") })
	}},
	{"the scheduler is stopped", "2", func(m *middle) {
		change(m.nova, func(n *novav1.Nova) { n.Spec.SchedulerServiceTemplate.Replicas = ptr.To[int32](0) })
	}},
	{"the API gets replicas", "2", func(m *middle) {
		change(m.nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = ptr.To[int32](3) })
	}},
	{"the Nova is restored without its status", "2", func(m *middle) {
		m.running.end()
		loseStatus(m.nova)
		m.running = startManager(m.ns, m.opts)
	}},
	{"a compute is added", "2", func(m *middle) {
		m.make(MakeNode("n001", m.ns).Role("compute").Obj())
		up(m.server, "n000", "n001")
	}},
}

var _ = Describe("In the middle of an update of a Nova", func() {
	stops := []string{"nova-cell0-conductor", "nova-empty-conductor", "nova-scheduler", "nova-api", "n000"}
	tell := func(stop string, act int) {
		w, server := newOpenStack()
		sets := startHeldSets(w.ns)
		m := &middle{world: w, nova: MakeNova("nova", w.ns, "", ""), server: server}
		m.addCell("empty")
		w.makeNodes(1, "compute")
		up(server, "n000")
		w.computesReady("n000")
		w.condition(m.nova, novav1.OnlineMigrationsReadyCondition, "True/Ready/")
		w.calm()

		a := inTheMiddle[act]
		By(fmt.Sprintf("stopping at %s, where %s, in %s", stop, a.what, w.ns))
		sick := w.sick(map[string]fakekube.Outcome{})
		awaited := "StatefulSet " + stop
		if stop == "n000" {
			sick, awaited = w.sick(map[string]fakekube.Outcome{"n000/nova": fakekube.Failed}), "no compute of NovaCell nova-cell1"
		}
		sets.hold(w.ns, stop, "2")
		change(m.nova, nameRelease("2"))
		w.condition(m.nova, novav1.UpdateReadyCondition, "False/Updating/Info", awaited)
		a.do(m)
		sets.hold(w.ns, "", "")
		sick.heal("n000/nova")
		Eventually(func(g Gomega) {
			status := get(g, m.nova).Status
			g.Expect(status.Deployed).To(BeNil())
			g.Expect(status.UpgradeCheck).To(BeNil())
			g.Expect(status.Conditions.Get(novav1.UpdateReadyCondition)).To(BeNil())
			g.Expect(status.Conditions.IsTrue(novav1.OnlineMigrationsReadyCondition)).To(BeTrue())
			g.Expect(status.Conditions.IsTrue(novav1.NovaCellMappingsReadyCondition)).To(BeTrue())
			isReady(g, w.compute("n000"))
			g.Expect(get(g, w.compute("n000")).Status.Images).To(HaveKeyWithValue(novav1.ComputeComponent, "compute:"+a.release))
			images := w.images(g)
			for cell := range m.nova.Spec.CellTemplates {
				g.Expect(images).To(HaveKeyWithValue("nova-"+cell+"-conductor", "conductor:"+a.release))
			}
			g.Expect(images).To(HaveKeyWithValue("nova-api", "api:"+a.release))
		}).Should(Succeed())
		w.calm()
	}

	Context("what people do ends in the images that were chosen last", func() {
		if !inFull {
			for n := range uint64(2) {
				It(fmt.Sprintf("(case %d)", n), func() {
					rng := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), n))
					tell(stops[rng.IntN(len(stops))], rng.IntN(len(inTheMiddle)))
				})
			}
			return
		}
		for _, stop := range stops {
			for act, a := range inTheMiddle {
				It(fmt.Sprintf("(%s at %s)", a.what, stop), func() { tell(stop, act) })
			}
		}
	})
})
