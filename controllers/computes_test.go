package controllers_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// computes are the names of all computes of the world, with their cells.
func (w *world) computes(g Gomega) map[string]string {
	list := &novav1.NovaExternalComputeList{}
	g.Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	out := map[string]string{}
	for _, c := range list.Items {
		out[c.Name] = c.Spec.CellName
	}
	return out
}

// entry is what the node shows of nova.
func (w *world) entry(g Gomega, node string) dataplanev1.NodeServiceStatus {
	for _, s := range get(g, w.node(node)).Status.Services {
		if s.Name == "nova" {
			return s
		}
	}
	return dataplanev1.NodeServiceStatus{}
}

var _ = Describe("A node", func() {
	It("becomes a compute by the annotation of its role or its own, or not at all", func() {
		w := newCloud()
		w.make(w.role("annotated").Cell("cell1").Obj(), w.role("plain").Obj(),
			MakeNode("by-role", w.ns).Role("annotated").Obj(),
			MakeNode("overriding", w.ns).Role("annotated").Cell("cell2").Obj(),
			MakeNode("opting-out", w.ns).Role("annotated").Cell("").Obj(),
			MakeNode("by-itself", w.ns).Role("plain").Cell("cell1").Obj(),
			MakeNode("storage", w.ns).Role("plain").Obj())
		want := map[string]string{"by-role": "cell1", "overriding": "cell2", "by-itself": "cell1"}
		Eventually(w.computes).Should(Equal(want))
		w.nodesReady("by-role", "storage")
		Consistently(w.computes).Should(Equal(want))

		By("annotating the role afterwards")
		annotate(w.role("plain").Obj(), novav1.CellAnnotation, "cell1")
		Eventually(w.computes).Should(HaveKeyWithValue("storage", "cell1"))
	})

	It("becomes a compute whatever its name is, and leaves nothing when it is deleted", func() {
		w := newCloud()
		w.make(w.role("compute").Cell("cell1").Obj())
		start := strings.Repeat("a", 62)
		// The 63rd character ends what fits a label.
		names := []string{start + ".b", start + "-b", start + "b.example.com", strings.Repeat(start+".", 4) + "b"}
		for _, name := range names {
			w.make(MakeNode(name, w.ns).Role("compute").Obj())
		}
		w.computesReady(names...)
		w.nodesReady(names...)
		for _, name := range names {
			Expect(api.Delete(ctx, w.node(name))).To(Succeed())
			story.Gone(w.node(name))
			story.Gone(w.compute(name))
		}
	})

	It("becomes a compute in one run with the others that are annotated with it", func() {
		w := newCloud(patient)
		w.make(w.role("compute").Obj())
		names := w.makeNodes(30, "compute")
		w.nodesReady(names...)
		annotate(w.role("compute").Obj(), novav1.CellAnnotation, "cell1")
		w.computesReady(names...)
		var started []string
		for _, run := range w.runs() {
			if run.Spec.OwnerKind == "NovaExternalCompute" {
				started = append(started, run.Name)
			}
		}
		Expect(started).To(HaveLen(1), "no run should start while computes are being created")
	})

	It("updates the fields of its compute when the node or its role changes", func() {
		w := newCloud()
		role := w.role("compute").Cell("cell1").Networks("net-a").Obj()
		w.make(MakeSecret("other-key", w.ns, "ssh-privatekey", "key-2"))
		w.make(role, MakeNode("n", w.ns).Role("compute").Obj())
		spec := func(g Gomega) novav1.NovaExternalComputeSpec { return get(g, w.compute("n")).Spec }
		Eventually(spec).Should(Equal(novav1.NovaExternalComputeSpec{CellName: "cell1", ServiceSpec: hostedv1.ServiceSpec{
			DataplaneNodeName: "n", InventoryConfigMapName: "dataplanenode-n",
			SSHKeySecretName: "ssh-key", NetworkAttachments: []string{"net-a"}, Deploy: ptr.To(true),
		}}))
		owner := metav1.GetControllerOf(get(Default, w.compute("n")))
		Expect(owner).NotTo(BeNil(), "the compute should belong to the node")
		Expect(owner.Kind + "/" + owner.Name).To(Equal("OpenStackDataPlaneNode/n"))

		By("changing the role")
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "other-key"
			r.Spec.NetworkAttachments = nil
		})
		Eventually(spec).Should(And(HaveField("SSHKeySecretName", "other-key"), HaveField("NetworkAttachments", BeEmpty())))

		By("overriding it in the node")
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) {
			n.Spec.NetworkAttachments = []string{"net-b"}
			n.Spec.Node.AnsibleSSHPrivateKeySecret = "ssh-key"
			n.Spec.DeployStrategy.Deploy = ptr.To(false)
		})
		Eventually(spec).Should(And(HaveField("SSHKeySecretName", "ssh-key"), HaveField("NetworkAttachments", []string{"net-b"}), HaveField("Deploy", ptr.To(false))))
	})

	It("keeps what users write into its compute, also after a restart of the manager", func() {
		w := newCloud()
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.computesReady("n")
		human := func(c *novav1.NovaExternalCompute) {
			c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = false\n"
			c.Spec.NovaComputeContainerImage, c.Spec.NovaLibvirtContainerImage, c.Spec.AnsibleEEContainerImage = "mine:c", "mine:l", "mine:e"
		}
		change(w.compute("n"), human)
		want := get(Default, w.compute("n")).Spec
		for i := range 10 {
			annotate(w.node("n"), "unrelated", string(rune('a'+i)))
			change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.BatchSize = ptr.To(int32(i + 1)) })
			w.nodesReady("n")
		}
		w.restart()
		w.computesReady("n")
		Expect(get(Default, w.compute("n")).Spec).To(Equal(want))
		Expect(w.did("n", "nova")).To(HaveLen(2), "only the human's change runs again")
		last := w.did("n", "nova")[1]
		Expect(last.Files).To(HaveKeyWithValue("02-nova-override.conf", "[DEFAULT]\ndebug = false\n"))
		Expect(last.Vars).To(HaveKeyWithValue("edpm_nova_compute_image", "mine:c"))
	})

	It("adopts a compute that a user created before, with its configuration", func() {
		w := newCloud()
		early := MakeCompute("n", w.ns, "cell1")
		early.Spec.CustomServiceConfig = "[libvirt]\nvirt_type = qemu\n"
		w.make(early)
		w.halted(w.compute("n"), condition.InputReadyCondition, novav1.NodeMissingReason, `OpenStackDataPlaneNode "n" does not exist`)
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.computesReady("n")
		Expect(metav1.GetControllerOf(get(Default, w.compute("n")))).NotTo(BeNil(), "it should belong to the node")
		Expect(w.did("n", "nova")).To(HaveLen(1), "the first run has the configuration already")
		Expect(w.did("n", "nova")[0].Files).To(HaveKeyWithValue("02-nova-override.conf", "[libvirt]\nvirt_type = qemu\n"))
	})

	It("ignores a compute that a user creates, which waits for the annotation", func() {
		w := newCloud()
		w.make(w.role("plain").Obj(), MakeNode("n", w.ns).Role("plain").Obj())
		w.nodesReady("n")
		w.make(MakeCompute("n", w.ns, "cell1"))
		w.halted(w.compute("n"), condition.InputReadyCondition, novav1.AnnotationMissingReason,
			"OpenStackDataPlaneNode n is in no cell", `nova.openstack.org/cell: "cell1"`)
		w.nothingRuns()
		Expect(w.entry(Default, "n").Name).To(BeEmpty(), "nothing is on its host")
		annotate(w.node("n"), novav1.CellAnnotation, "cell1")
		w.computesReady("n")
		w.exactlyOnce()
	})

	It("leaves a compute of another owner as it is, which both report", func() {
		w := newCloud()
		owner := MakeConfigMap("somebody", w.ns, "a", "b")
		w.make(owner)
		theirs := MakeCompute("n", w.ns, "cell1")
		theirs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "somebody", UID: owner.UID, Controller: ptr.To(true)}}
		w.make(theirs)
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		message := func(g Gomega) string { return w.entry(g, "n").Message }
		Eventually(message).Should(And(ContainSubstring("belongs to ConfigMap/somebody"), ContainSubstring("delete it if nothing needs it")))
		w.nodesReady("n")
		w.quiet()
		Expect(message(Default)).To(ContainSubstring("belongs to ConfigMap/somebody"), "nobody should overwrite what the node says")
		Expect(get(Default, w.compute("n")).Spec).To(Equal(theirs.Spec))
		Eventually(func() []string { return w.events("n") }).Should(ContainElement(ContainSubstring("Warning Conflict")))

		By("removing the other one")
		remove(w.compute("n"))
		w.computesReady("n")
		Eventually(func(g Gomega) bool { return w.entry(g, "n").Ready }).Should(BeTrue(), "the node should show its own compute")
	})

	It("reports a compute of another cell, and changes nothing", func() {
		w := newCloud()
		w.makeCell("cell2")
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.computesReady("n")
		annotate(w.node("n"), novav1.CellAnnotation, "cell2") // no webhook forbids it here
		w.halted(w.compute("n"), condition.InputReadyCondition, novav1.CellMismatchReason, `spec.cellName is "cell1"`, `is "cell2"`, "delete the node and create it again")
		Eventually(func(g Gomega) string { return w.entry(g, "n").Message }).Should(ContainSubstring(`the annotation names cell "cell2"`))
		w.quiet()
		Expect(get(Default, w.compute("n")).Spec.CellName).To(Equal("cell1"))
		Expect(w.times("n", "nova")).To(Equal(1))
		before := len(w.wire.Since(0))
		w.restart()
		w.quiet()
		Expect(w.wire.Since(0)).To(BeEmpty(), "two controllers should not take turns in what the node says (%d writes before)", before)

		By("taking the annotation back")
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Annotations = nil })
		w.computesReady("n")
		Eventually(func(g Gomega) bool { return w.entry(g, "n").Ready }).Should(BeTrue())
		Expect(w.times("n", "nova")).To(Equal(1), "nothing has to run again")
	})

	It("keeps its compute as it is while its role is missing", func() {
		w := newCloud()
		role := w.role("compute").Cell("cell1").Obj()
		w.make(role, MakeNode("n", w.ns).Role("compute").Cell("cell1").Obj())
		w.computesReady("n")
		want := get(Default, w.compute("n")).Spec
		remove(role)
		w.halted(w.node("n"), condition.InputReadyCondition, dataplanev1.RoleMissingReason, `OpenStackDataPlaneRole "compute" does not exist`)
		w.quiet()
		Expect(get(Default, w.compute("n")).Spec).To(Equal(want))
		w.make(w.role("compute").Cell("cell1").Obj())
		w.computesReady("n")
		w.exactlyOnce()
	})
})
