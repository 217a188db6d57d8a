package controllers_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// zoned makes Kubernetes nodes, each in a zone, and returns the label that says
// so: nodes are the whole cluster's, so that each story has a label of its own.
// A node in no zone lacks the label.
func (w *world) zoned(zones ...string) string {
	GinkgoHelper()
	key := "zone-" + w.ns
	for i, zone := range zones {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.worker(i), Labels: map[string]string{"story": w.ns}}}
		if zone != "" {
			node.Labels[key] = zone
		}
		w.make(node)
		DeferCleanup(func() { _ = api.Delete(ctx, node) })
		change(node, func(n *corev1.Node) { n.Spec.Taints = nil }) // the API server takes a new node as not ready
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
		Expect(api.Status().Update(ctx, node)).To(Succeed())
	}
	return key
}

// worker is the name of the i-th Kubernetes node of the story.
func (w *world) worker(i int) string { return fmt.Sprintf("%s-worker-%d", w.ns, i) }

// pod makes a pod of a service on a worker, as the service's StatefulSet would:
// with the Topology applied on top of what keeps it on the nodes of the story.
func (w *world) pod(t *topologyv1.Topology, consumer string, worker int) *corev1.Pod {
	GinkgoHelper()
	labels := map[string]string{"service": "glance", "api": consumer}
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		NodeName: w.worker(worker), NodeSelector: map[string]string{"story": w.ns}, Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	topology.Apply(template, t, &metav1.LabelSelector{MatchLabels: map[string]string{"api": consumer}}, topology.Consumer{Kind: "OpenStackDataPlaneRole", Name: consumer})
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = w.ns, consumer+"-"
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: consumer, UID: "none"}}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	w.make(pod)
	return pod
}

// columns are what kubectl get shows of a Topology.
func (w *world) columns(name string) string {
	t := w.topology(name)
	if err := api.Get(ctx, metaKey(t), t); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d|%s|%s", t.Status.ConsumerCount, t.Status.DomainsSummary, t.Status.SkewSummary)
}

func (w *world) shows(name, columns string) {
	GinkgoHelper()
	Eventually(func() string { return w.columns(name) }).Should(Equal(columns))
}

var _ = Describe("A Topology", func() {
	It("shows who uses it, with how many pods, and how these are spread", func() {
		w := newWorld()
		key := w.zoned("zoneA", "zoneB", "zoneC", "")
		spread := MakeTopology("spread", w.ns).Spread(key, "service", "glance").Obj()
		w.make(spread, MakeRole("external", w.ns).Topology("spread").Obj(), MakeRole("internal", w.ns).Topology("spread").Obj())
		w.ready(spread)
		w.shows("spread", "2|zoneA=0,zoneB=0,zoneC=0|0/1")
		for zone := range 3 {
			w.pod(spread, "external", zone)
			w.pod(spread, "internal", zone)
		}
		w.shows("spread", "2|zoneA=2,zoneB=2,zoneC=2|0/1")
		status := get(Default, spread).Status
		Expect(status.Consumers).To(Equal([]topologyv1.Consumer{
			{Kind: "OpenStackDataPlaneRole", Name: "external", Pods: 3}, {Kind: "OpenStackDataPlaneRole", Name: "internal", Pods: 3},
		}))
		Expect(status.Constraints).To(Equal([]topologyv1.ConstraintStatus{{
			TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: 1, Skew: 0, Holds: true, DomainCount: 3,
			Domains:         []topologyv1.Domain{{Name: "zoneA", Nodes: 1, Pods: 2}, {Name: "zoneB", Nodes: 1, Pods: 2}, {Name: "zoneC", Nodes: 1, Pods: 2}},
			NodesLackingKey: topologyv1.NodesLackingKey{Count: 1, Names: []string{w.worker(3)}},
		}}))
		w.ready(spread)
	})

	It("follows nodes and pods: labels, pods that are deleted or end, and pods of others that a constraint selects", func() {
		w := newWorld()
		key := w.zoned("zoneA", "zoneB", "")
		spread := MakeTopology("spread", w.ns).Spread(key, "service", "glance").Obj()
		w.make(spread, MakeTopology("other", w.ns).Pin("story", w.ns).Obj(), MakeRole("a", w.ns).Topology("spread").Obj())
		first := w.pod(spread, "a", 0)
		w.shows("spread", "1|zoneA=1,zoneB=0|1/1")
		w.ready(spread)

		others := w.pod(w.topology("other"), "b", 0)
		w.shows("spread", "1|zoneA=2,zoneB=0|2/1")
		w.halted(spread, topologyv1.SpreadReadyCondition, topologyv1.SkewExceededReason,
			"spec.topologySpreadConstraints[0]", "a skew of 2, and maxSkew is 1", "delete pods of the", fmt.Sprintf("(kubectl delete pod -n %s %s: it would be scheduled in zoneB)", w.ns, first.Name))
		Eventually(func() []string { return w.events("spread") }).Should(ContainElement(HavePrefix("Warning SkewExceeded SpreadReady: ")))

		change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.worker(2)}}, func(n *corev1.Node) { n.Labels[key] = "zoneB" })
		Eventually(func(g Gomega) {
			constraint := get(g, spread).Status.Constraints[0]
			g.Expect(constraint.NodesLackingKey.Count).To(BeZero())
			g.Expect(constraint.Domains[1]).To(Equal(topologyv1.Domain{Name: "zoneB", Nodes: 2}))
		}).Should(Succeed())

		others.Status.Phase = corev1.PodSucceeded
		Expect(api.Status().Update(ctx, others)).To(Succeed())
		w.shows("spread", "1|zoneA=1,zoneB=0|1/1")
		w.ready(spread)
		Expect(api.Delete(ctx, first, client.GracePeriodSeconds(0))).To(Succeed())
		w.shows("spread", "1|zoneA=0,zoneB=0|0/1")
	})

	It("measures a constraint without a selector for each consumer, and shows the worst", func() {
		w := newWorld()
		key := w.zoned("zoneA", "zoneB")
		spread := MakeTopology("spread", w.ns).Spread(key).Obj()
		w.make(spread, MakeRole("a", w.ns).Topology("spread").Obj(), MakeRole("b", w.ns).Topology("spread").Obj())
		for range 2 {
			w.pod(spread, "a", 0)
			w.pod(spread, "b", 1)
		}
		w.shows("spread", "2|zoneA=2,zoneB=2|2/1")
		w.halted(spread, topologyv1.SpreadReadyCondition, topologyv1.SkewExceededReason)
		w.pod(spread, "a", 1)
		w.pod(spread, "b", 0)
		w.shows("spread", "2|zoneA=3,zoneB=3|1/1")
		w.ready(spread)
	})

	It("says when no node has the label, unless pods may run all the same", func() {
		w := newWorld()
		spread := MakeTopology("spread", w.ns).Spread("no-such-label/"+w.ns, "service", "glance").Obj()
		w.make(spread)
		w.halted(spread, topologyv1.SpreadReadyCondition, topologyv1.NoDomainReason, "no node has the label no-such-label/"+w.ns, "label the nodes", "ScheduleAnyway")
		change(spread, func(t *topologyv1.Topology) {
			t.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
		})
		w.ready(spread)
	})

	It("shows no domains when it only pins", func() {
		w := newWorld()
		pin := MakeTopology("pin", w.ns).Pin("zone", "zoneA").Obj()
		w.make(pin)
		w.ready(pin)
		w.shows("pin", "0||")
	})

	It("stays when it is deleted while it is used, and says who uses it", func() {
		w := newWorld()
		pin := MakeTopology("pin", w.ns).Pin("zone", "zoneA").Obj()
		pin.Finalizers = []string{"example.com/backup"}
		roles := []client.Object{MakeRole("a", w.ns).Topology("pin").Obj(), MakeRole("b", w.ns).Topology("pin").Obj()}
		w.make(append(roles, pin)...)
		w.shows("pin", "2||")
		remove(pin)
		w.halted(pin, topologyv1.ConsumersReadyCondition, topologyv1.InUseReason, "held by OpenStackDataPlaneRole/a, OpenStackDataPlaneRole/b, finalizer example.com/backup")
		Eventually(func() []string { return w.events("pin") }).Should(ContainElement(And(HavePrefix("Warning InUse "), ContainSubstring("held by OpenStackDataPlaneRole/a"))))
		remove(roles[0])
		w.halted(pin, topologyv1.ConsumersReadyCondition, topologyv1.InUseReason, "held by OpenStackDataPlaneRole/b, finalizer")
		remove(roles[1])
		w.halted(pin, topologyv1.ConsumersReadyCondition, topologyv1.InUseReason, "held by finalizer example.com/backup.")
		change(pin, func(t *topologyv1.Topology) { t.Finalizers = nil })
		gone(pin)
	})

	It("ignores users that no longer exist, and keeps its users even if their hold on it is removed", func() {
		w := newWorld()
		long := strings.Repeat("edge-", 20) + "a"
		w.make(MakeRole("a", w.ns).Topology("pin").Obj(), MakeRole(long, w.ns).Topology("pin").Obj())
		others := []string{"example.com/backup", "openstack.org/cinderapi-of-another-operator"}
		pin := MakeTopology("pin", w.ns).Pin("zone", "zoneA").Obj()
		pin.Finalizers = append([]string{"openstack.org/openstackdataplanerole-a", "openstack.org/openstackdataplanerole-ghost", "openstack.org/glanceapi-ghost", "openstack.org/novacompute-ghost"}, others...)
		w.make(pin)
		finalizers := func() []string { return get(Default, pin).Finalizers }
		Eventually(finalizers).Should(ConsistOf(append(others, topologyv1.Finalizer)), "what an earlier version set is released")
		change(pin, func(t *topologyv1.Topology) { t.Finalizers = nil })
		Eventually(finalizers).Should(ConsistOf(topologyv1.Finalizer), "a person has removed all finalizers")
	})

	It("disappears when it is deleted even if the finalizer of a user was removed manually", func() {
		w := newWorld()
		pin := MakeTopology("pin", w.ns).Pin("zone", "zoneA").Obj()
		pin.Finalizers = []string{"openstack.org/novacell-ghost"}
		w.make(pin)
		remove(pin)
		gone(pin)
	})

	It("takes a storm of consumers and pods with few writes, and then rests", long, func() {
		const many = 60
		w := newWorld(func(o *controllers.Options) { o.Gather = time.Second })
		key := w.zoned("zoneA", "zoneB", "zoneC")
		spread := MakeTopology("spread", w.ns).Spread(key).Obj()
		w.make(spread)
		w.ready(spread)
		before := len(w.wire.Since(0))
		start := time.Now()
		for i := range many {
			name := fmt.Sprintf("r%02d", i)
			w.make(MakeRole(name, w.ns).Topology("spread").Obj())
			for zone := range 3 {
				w.pod(spread, name, zone)
			}
		}
		Eventually(w.columns).WithArguments("spread").WithTimeout(later).
			Should(Equal(fmt.Sprintf("%d|zoneA=%d,zoneB=%d,zoneC=%d|0/1", many, many, many, many)))
		w.quiet()
		took, status, held := time.Since(start), 0, 0
		for _, write := range w.wire.Since(before) {
			if strings.HasSuffix(write, "/topologies/spread/status") {
				status++
			} else if strings.HasSuffix(write, "/topologies/spread") {
				held++
			}
		}
		// Each role asks whether it is there, which changes nothing, and the first protects it.
		Expect(held).To(BeNumerically("<=", 2*many), "each consumer protects it with few requests")
		Expect(status).To(BeNumerically("<=", 2+int(took/w.opts.Gather)), "the status is written no oftener than changes are gathered")
		seen := reconciliations()
		Consistently(reconciliations).WithTimeout(3 * time.Second).Should(Equal(seen))
	})
})
