package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/story"
)

var _ = Describe("A data plane", func() {
	var w *world
	var plane *dataplanev1.OpenStackDataPlane

	BeforeEach(func() {
		w = newCloud()
		plane = MakeDataPlane("plane", w.ns)
		plane.Spec.Roles["compute"] = w.role("").Obj().Spec
		plane.Spec.Nodes["n1"] = dataplanev1.OpenStackDataPlaneNodeSpec{Role: "compute"}
		plane.Spec.Nodes["n2"] = dataplanev1.OpenStackDataPlaneNodeSpec{Role: "compute", HostName: "host-2", AnsibleHost: "10.0.0.2"}
	})

	It("creates its roles and nodes, and is Ready once all of them are", func() {
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(plane)
		w.halted(plane, dataplanev1.NodesReadyCondition, dataplanev1.NodesNotReadyReason, "0/2 nodes are Ready", "n1 is not: see its conditions")
		role := get(Default, MakeRole("compute", w.ns).Obj())
		Expect(role.Spec.DataPlane).To(Equal("plane"))
		Expect(metav1.GetControllerOf(role).Name).To(Equal("plane"))
		Expect(get(Default, w.node("n1")).Spec.HostName).To(Equal("n1"), "the name of a node is that of its host")
		Expect(get(Default, w.node("n2")).Spec.HostName).To(Equal("host-2"))
		release()
		w.ready(plane, role)
		Expect(get(Default, plane).Status.NodesSummary).To(Equal("2/2"))
		status := get(Default, role).Status
		Expect(status.NodesSummary).To(Equal("2/2"))
		Expect(get(Default, MakeConfigMap(status.InventoryConfigMapName, w.ns, "", "")).Data["inventory"]).To(And(ContainSubstring("n1:"), ContainSubstring("ansible_host: 10.0.0.2")))
		w.exactlyOnce()
	})

	It("waits for its nodes before it is Ready", func() {
		w.make(plane)
		ready := func(g Gomega) bool {
			if got := shown(g, plane, condition.ReadyCondition); len(got) > 4 && got[:4] == "True" {
				Expect(plane.Status.NodesSummary).To(Equal("2/2"), "when it says that it is Ready")
				return true
			}
			return false
		}
		Eventually(ready).WithPolling(1).Should(BeTrue())

		By("changing all nodes")
		release := w.hosts.Hold()
		DeferCleanup(release)
		change(plane, func(p *dataplanev1.OpenStackDataPlane) {
			for name, n := range p.Spec.Nodes {
				n.Node.AnsibleVars = JSON(`{"x": 1}`)
				p.Spec.Nodes[name] = n
			}
		})
		Eventually(func(g Gomega) bool { get(g, plane); return story.IsObserved(g, plane) }).Should(BeTrue())
		Expect(shown(Default, plane, condition.ReadyCondition)).To(HavePrefix("False/"), "its nodes have to run again")
		release()
		w.ready(plane)
	})

	It("carries changes to its roles and nodes, and leaves what others write there", func() {
		w.make(plane)
		w.ready(plane)
		annotate(MakeRole("compute", w.ns).Obj(), novav1.CellAnnotation, "cell1")
		w.computesReady("n1", "n2")
		change(plane, func(p *dataplanev1.OpenStackDataPlane) {
			role := p.Spec.Roles["compute"]
			role.NodeTemplate.AnsibleVars = JSON(`{"x": 1}`)
			p.Spec.Roles["compute"] = role
			p.Spec.Nodes["n3"] = dataplanev1.OpenStackDataPlaneNodeSpec{Role: "compute"}
		})
		w.computesReady("n1", "n2", "n3")
		w.ready(plane)
		Expect(w.times("n1", "install-os")).To(Equal(2))
		Expect(w.times("n3", "install-os")).To(Equal(1))
		Expect(get(Default, MakeRole("compute", w.ns).Obj()).Annotations).To(HaveKeyWithValue(novav1.CellAnnotation, "cell1"))
		w.exactlyOnce()
	})

	It("removes the nodes and roles that it no longer describes, and their services first", func() {
		plane.Spec.Roles["other"] = w.role("").Obj().Spec
		w.make(plane)
		annotate2 := func() error {
			role := MakeRole("compute", w.ns).Obj()
			return api.Patch(ctx, role, jsonPatch(`{"metadata":{"annotations":{"nova.openstack.org/cell":"cell1"}}}`))
		}
		Eventually(annotate2).Should(Succeed())
		w.computesReady("n1", "n2")
		change(plane, func(p *dataplanev1.OpenStackDataPlane) {
			delete(p.Spec.Nodes, "n1")
			delete(p.Spec.Roles, "other")
		})
		gone(w.node("n1"))
		gone(MakeRole("other", w.ns).Obj())
		Expect(w.times("n1", cleanup)).To(Equal(1))
		w.ready(plane)
		Expect(get(Default, plane).Status.NodesSummary).To(Equal("1/1"))
		w.computesReady("n2")
	})

	It("pauses everything with deploy false, whatever roles and nodes say", func() {
		plane.Spec.DeployStrategy.Deploy = ptr.To(false)
		node := plane.Spec.Nodes["n1"]
		node.DeployStrategy.Deploy = ptr.To(true)
		plane.Spec.Nodes["n1"] = node
		w.make(plane)
		for _, n := range []string{"n1", "n2"} {
			Eventually(func() error { return api.Get(ctx, metaKey(w.node(n)), w.node(n)) }).Should(Succeed())
			w.halted(w.node(n), condition.DeploymentReadyCondition, condition.Reason(edpm.Paused))
		}
		w.nothingRuns()
		change(plane, func(p *dataplanev1.OpenStackDataPlane) { p.Spec.DeployStrategy.Deploy = nil })
		w.ready(plane)
		w.exactlyOnce()
	})

	It("gives its strategy to roles that have none", func() {
		plane.Spec.DeployStrategy.BatchSize = ptr.To[int32](1)
		own := w.role("").BatchSize(7).Obj().Spec
		plane.Spec.Roles["own"] = own
		w.make(plane)
		w.ready(plane)
		Expect(get(Default, MakeRole("compute", w.ns).Obj()).Spec.DeployStrategy.BatchSize).To(Equal(ptr.To[int32](1)))
		Expect(get(Default, MakeRole("own", w.ns).Obj()).Spec.DeployStrategy.BatchSize).To(Equal(ptr.To[int32](7)))
		Expect(w.runs()).To(HaveLen(2), "one host in each run")
	})

	It("deletes its roles and nodes when it is deleted", func() {
		w.make(plane)
		w.ready(plane)
		remove(plane)
		gone(plane)
		gone(w.node("n1"))
		gone(w.node("n2"))
		gone(MakeRole("compute", w.ns).Obj())
	})
})
