package controllers_test

import (
	"net/http"
	"path"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// zonesOf are the zones that the runner Pods for a host were pinned to, by step
// and host, in the order of their runs. "anywhere" is a Pod that was not.
func (w *world) zonesOf(host, step string) []string {
	GinkgoHelper()
	var zones []string
	for _, e := range w.did(host, step) {
		job := &batchv1.Job{}
		Expect(api.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: e.Job}, job)).To(Succeed())
		zones = append(zones, pinnedTo(job.Spec.Template.Spec.Affinity))
	}
	return zones
}

func pinnedTo(a *corev1.Affinity) string {
	if a == nil || a.NodeAffinity == nil {
		return "anywhere"
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
}

func (w *world) topology(name string) *topologyv1.Topology { return MakeTopology(name, w.ns).Obj() }

// heldBy are the finalizers of a Topology; nil when it is gone.
func (w *world) heldBy(name string) []string {
	t := w.topology(name)
	if err := api.Get(ctx, metaKey(t), t); err != nil {
		return nil
	}
	return slices.Sorted(slices.Values(t.Finalizers))
}

// users are the consumers that a Topology shows, as kind/name.
func (w *world) users(name string) []string {
	GinkgoHelper()
	var users []string
	for _, c := range get(Default, w.topology(name)).Status.Consumers {
		users = append(users, c.Kind+"/"+c.Name)
	}
	return users
}

var _ = Describe("The place of a run", func() {
	It("follows the Topology of the role in every step, unless the node has another", func() {
		w := newCloud()
		w.make(MakeTopology("edge-a", w.ns).Pin("zone", "A").Obj(), MakeTopology("edge-b", w.ns).Pin("zone", "B").Obj())
		w.make(w.role("compute").Cell("cell1").Topology("edge-a").Obj())
		w.make(MakeNode("n000", w.ns).Role("compute").Host("10.0.0.0").Obj(),
			MakeNode("n001", w.ns).Role("compute").Host("10.0.0.1").Topology("edge-b").Obj(),
			MakeNode("n002", w.ns).Role("compute").Host("10.0.0.2").Topology("").Obj())
		w.computesReady("n000", "n001", "n002")

		for host, zone := range map[string]string{"n000": "A", "n001": "B", "n002": "anywhere"} {
			for _, step := range []string{"install-os", "libvirt", "nova"} {
				Expect(w.zonesOf(host, step)).To(Equal([]string{zone}), "%s of %s", step, host)
			}
		}
		w.exactlyOnce()
		w.condition(w.node("n000"), condition.TopologyReadyCondition, "True/Ready/", "edge-a")
		w.condition(w.node("n001"), condition.TopologyReadyCondition, "True/Ready/", "edge-b")
		w.condition(MakeRole("compute", w.ns).Obj(), condition.TopologyReadyCondition, "True/Ready/", "edge-a")
		Expect(get(Default, w.node("n002")).Status.Conditions.Get(condition.TopologyReadyCondition)).To(BeNil())
		Eventually(func() []string { return w.users("edge-a") }).Should(Equal([]string{"OpenStackDataPlaneRole/compute"}))
		Eventually(func() []string { return w.users("edge-b") }).Should(Equal([]string{"OpenStackDataPlaneNodes/compute"}))
		Expect(w.heldBy("edge-a")).To(Equal([]string{topologyv1.Finalizer}))
		Expect(w.heldBy("edge-b")).To(Equal([]string{topologyv1.Finalizer}))
	})

	It("decides which hosts share a run", func() {
		w := newCloud(patient)
		w.make(MakeTopology("edge-a", w.ns).Pin("zone", "A").Obj(), MakeTopology("edge-b", w.ns).Pin("zone", "B").Obj())
		for i, name := range nodeNames(4) {
			node := MakeNode(name, w.ns).Role("compute").Host("10.0.0." + name[1:])
			if i%2 == 1 {
				node.Topology("edge-b")
			}
			w.make(node.Obj())
		}
		w.makeRoleOf(w.role("compute").Topology("edge-a").Obj(), nodeNames(4)...)
		w.nodesReady(nodeNames(4)...)
		for _, run := range w.runs() {
			Expect(run.Spec.TopologyRef).NotTo(BeNil())
			Expect(run.Spec.Targets).To(HaveLen(2), "the two nodes with %s share a run", run.Spec.TopologyRef.Name)
		}
	})

	It("changes with the Topology or the reference for runs to come, and re-runs nothing", func() {
		w := newCloud()
		w.make(MakeTopology("edge-a", w.ns).Pin("zone", "A").Obj(), MakeTopology("edge-b", w.ns).Pin("zone", "B").Obj())
		role := w.role("compute").Topology("edge-a").Obj()
		w.make(role)
		w.makeNodes(1, "compute")
		w.nodesReady("n000")

		change(w.topology("edge-a"), func(t *topologyv1.Topology) {
			t.Spec.Affinity = MakeTopology("x", w.ns).Pin("zone", "A2").Spec.Affinity
		})
		w.nothingRuns()
		annotate(w.node("n000"), common.RerunAnnotation, "1")
		Eventually(func() []string { return w.zonesOf("n000", "install-os") }).Should(Equal([]string{"A", "A2"}))
		w.nodesReady("n000")

		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.TopologyRef.Name = "edge-b" })
		Eventually(func() []string { return w.users("edge-b") }).Should(Equal([]string{"OpenStackDataPlaneRole/compute"}))
		Eventually(func() []string { return w.users("edge-a") }).Should(BeEmpty())
		w.nothingRuns()
		annotate(w.node("n000"), common.RerunAnnotation, "2")
		Eventually(func() []string { return w.zonesOf("n000", "install-os") }).Should(Equal([]string{"A", "A2", "B"}))
	})

	It("lets an unreachable host be retried at once from another place", func() {
		w := newCloud(patient, func(o *controllers.Options) { o.Engine.Backoff = edpm.Backoff{Base: time.Hour, Max: time.Hour} })
		role := w.role("compute").Cell("cell1").Obj()
		w.make(MakeTopology("edge-a", w.ns).Pin("zone", "A").Obj(), role)
		s := w.sick(map[string]fakekube.Outcome{"n000/libvirt": fakekube.Unreachable})
		w.makeNodes(1, "compute")
		w.condition(w.compute("n000"), condition.DeploymentReadyCondition, "False/Failed/Warning", "no route to host")
		s.heal("n000/libvirt")
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Spec.TopologyRef = &topologyv1.TopologyRef{Name: "edge-a"}
		})
		Eventually(func() []string { return w.zonesOf("n000", "libvirt") }).Should(Equal([]string{"anywhere", "A"}))
		w.computesReady("n000")
		Expect(w.times("n000", "install-os")).To(Equal(1))
	})

	It("holds runs back while the Topology does not exist", func() {
		w := newCloud()
		role := w.role("compute").Topology("late").Obj()
		w.make(role, MakeNode("n001", w.ns).Role("compute").Host("10.0.0.1").Topology("later").Obj())
		w.makeNodes(1, "compute")
		w.halted(w.node("n000"), condition.TopologyReadyCondition, topologyv1.TopologyMissingReason, `Topology "late" does not exist`, "create it")
		w.halted(w.node("n001"), condition.TopologyReadyCondition, topologyv1.TopologyMissingReason, `Topology "later" does not exist`)
		w.halted(role, condition.TopologyReadyCondition, topologyv1.TopologyMissingReason, `Topology "late" does not exist`)
		w.nothingRuns()
		w.make(MakeTopology("late", w.ns).Pin("zone", "A").Obj())
		w.nodesReady("n000")
		Expect(w.times("n001", "install-os")).To(BeZero(), "the other Topology is still missing")
		w.make(MakeTopology("later", w.ns).Pin("zone", "B").Obj())
		w.nodesReady("n001")
		w.ready(role)
		Expect(w.zonesOf("n001", "install-os")).To(Equal([]string{"B"}))
	})

	It("stays until everything is removed from the hosts, and then releases the Topology", func() {
		w := newCloud()
		w.make(MakeTopology("edge-a", w.ns).Pin("zone", "A").Obj(), MakeTopology("edge-b", w.ns).Pin("zone", "B").Obj())
		role := w.role("compute").Cell("cell1").Topology("edge-a").Obj()
		w.make(role, MakeNode("n001", w.ns).Role("compute").Host("10.0.0.1").Topology("edge-b").Obj())
		w.makeNodes(1, "compute")
		w.computesReady("n000", "n001")

		remove(w.node("n001"), w.topology("edge-b"))
		gone(w.node("n001"))
		gone(w.topology("edge-b"))
		Expect(w.zonesOf("n001", "nova-cleanup")).To(Equal([]string{"B"}))

		remove(w.topology("edge-a"))
		Consistently(func() []string { return w.heldBy("edge-a") }).Should(Equal([]string{topologyv1.Finalizer}))
		remove(w.node("n000"))
		gone(w.node("n000"))
		Expect(w.zonesOf("n000", "nova-cleanup")).To(Equal([]string{"A"}))
		remove(role)
		gone(role)
		gone(w.topology("edge-a"))
	})

	It("stays that of a role whose Topology is being deleted, which a new role cannot use", func() {
		w := newCloud()
		w.make(MakeTopology("edge-a", w.ns).Pin("zone", "A").Obj(), w.role("compute").Topology("edge-a").Obj())
		w.makeNodes(1, "compute")
		w.nodesReady("n000")
		remove(w.topology("edge-a"))
		annotate(w.node("n000"), common.RerunAnnotation, "1")
		Eventually(func() []string { return w.zonesOf("n000", "install-os") }).Should(Equal([]string{"A", "A"}))

		other := w.role("other").Topology("edge-a").Obj()
		w.make(other)
		w.halted(other, condition.TopologyReadyCondition, topologyv1.TopologyDeletingReason, "is being deleted", "refer to another")
		change(other, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.TopologyRef = nil })
		w.ready(other)
		Eventually(func() []string { return get(Default, other).Finalizers }).Should(BeEmpty())
	})

	Context("when the Topology is deleted while a role starts to use it, with another manager than that of Topologies", func() {
		// apart has a manager of everything but Topologies, and one of these.
		apart := func() (w *world, topologies *running) {
			w = newCloud(func(o *controllers.Options) {
				o.Operators = slices.DeleteFunc(slices.Clone(controllers.Operators), func(name string) bool { return name == "topology" })
			})
			opts := w.opts
			opts.Operators = []string{"topology"}
			topologies = startManager(w.ns, opts)
			DeferCleanup(topologies.end)
			w.make(MakeTopology("edge-a", w.ns).Pin("zone", "A").Obj())
			return w, topologies
		}
		ofTopology := func(r *http.Request) bool {
			return r.Method == http.MethodPatch && path.Base(r.URL.Path) == "edge-a"
		}
		role := func(w *world) *dataplanev1.OpenStackDataPlaneRole { return w.role("compute").Topology("edge-a").Obj() }

		It("refuses it if the deletion came first", func() {
			w, _ := apart()
			change(w.topology("edge-a"), func(t *topologyv1.Topology) { t.Finalizers = []string{"example.com/backup"} })
			begin := w.wire.hold(ofTopology)
			w.make(role(w))
			Eventually(w.wire.waiting).Should(BeTrue())
			remove(w.topology("edge-a"))
			begin()
			w.halted(role(w), condition.TopologyReadyCondition, topologyv1.TopologyDeletingReason, "is being deleted")
			change(w.topology("edge-a"), func(t *topologyv1.Topology) { t.Finalizers = nil })
			gone(w.topology("edge-a"))
		})

		It("refuses it if the finalizer is being removed", func() {
			w, topologies := apart()
			change(w.topology("edge-a"), func(t *topologyv1.Topology) { t.Finalizers = []string{topologyv1.Finalizer} })
			end := topologies.wire.hold(ofTopology)
			remove(w.topology("edge-a"))
			Eventually(topologies.wire.waiting).Should(BeTrue())
			w.make(role(w))
			w.halted(role(w), condition.TopologyReadyCondition, topologyv1.TopologyDeletingReason, "is being deleted")
			end()
			gone(w.topology("edge-a"))
			w.halted(role(w), condition.TopologyReadyCondition, topologyv1.TopologyMissingReason, "does not exist")
		})

		It("keeps it if the use came first", func() {
			w, _ := apart()
			w.make(role(w))
			w.condition(role(w), condition.TopologyReadyCondition, "True/Ready/", "edge-a")
			remove(w.topology("edge-a"))
			Consistently(func() []string { return w.heldBy("edge-a") }).Should(Equal([]string{topologyv1.Finalizer}))
			change(role(w), func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.TopologyRef = nil })
			gone(w.topology("edge-a"))
		})
	})

	It("applies to a run that a user creates", func() {
		w := newWorld()
		run := MakeRun("mine", w.ns)
		run.Spec.TopologyRef = &topologyv1.TopologyRef{Name: "edge-a"}
		w.make(run)
		w.halted(run, condition.TopologyReadyCondition, topologyv1.TopologyMissingReason, `Topology "edge-a" does not exist`)
		w.make(MakeTopology("edge-a", w.ns).Pin("zone", "A").Spread("zone").Obj())
		w.ready(run)
		w.condition(run, condition.TopologyReadyCondition, "True/Ready/", "edge-a")
		job := &batchv1.Job{}
		Expect(api.Get(ctx, metaKey(run), job)).To(Succeed())
		Expect(pinnedTo(job.Spec.Template.Spec.Affinity)).To(Equal("A"))
		Expect(job.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels).To(Equal(map[string]string{"osaee": "true"}))

		remove(w.topology("edge-a"))
		gone(w.topology("edge-a"))
		w.ready(run)
		Expect(get(Default, run).Status.JobStatus).To(Equal(ansibleeev1.JobSucceeded))
	})
})
