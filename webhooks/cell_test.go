package webhooks_test

import (
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

const annotationField = "metadata.annotations[nova.openstack.org/cell]"

var _ = Describe("The cell rule", func() {
	var w world
	BeforeEach(func() {
		w = newWorld()
		w.role("none", "-")
		w.role("one", "cell1")
		w.role("uno", "cell1")
		w.role("two", "cell2")
	})

	// Each row is a node (role, own annotation), a change and the verdict. An
	// empty verdict is consent.
	DescribeTable("when a node is written",
		func(role, cell string, change func() error, verdict ...string) {
			w.node("n", role, cell)
			err := change()
			if len(verdict) == 0 {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			refused(err, append(verdict, "node n is in cell cell1", "delete the node")...)
		},
		Entry("accepts a first cell by annotation", "none", "-", func() error { return w.annotateNode("n", "cell1") }),
		Entry("accepts a first cell on a node without a role", "", "-", func() error { return w.annotateNode("n", "cell1") }),
		Entry("accepts a first cell by moving to a role", "none", "-", func() error { return w.moveNode("n", "one") }),
		Entry("accepts a first cell after the node opted out of that of its role", "one", "", func() error { return w.annotateNode("n", "cell2") }),
		Entry("accepts the annotation that the role has already", "one", "-", func() error { return w.annotateNode("n", "cell1") }),
		Entry("accepts another role of the same cell", "one", "-", func() error { return w.moveNode("n", "uno") }),
		Entry("accepts a role of another cell when the node has its own annotation", "one", "cell1", func() error { return w.moveNode("n", "two") }),
		Entry("accepts no role when the node has its own annotation", "one", "cell1", func() error { return w.moveNode("n", "") }),
		Entry("refuses another cell on the node", "none", "cell1",
			func() error { return w.annotateNode("n", "cell2") }, annotationField+`: Invalid value: "cell2"`, "cannot be moved to cell cell2"),
		Entry("refuses to remove the annotation from the node", "none", "cell1",
			func() error { return w.annotateNode("n", "-") }, annotationField+`: Invalid value: ""`, "cannot be moved to no cell"),
		Entry("refuses an empty annotation on the node", "none", "cell1",
			func() error { return w.annotateNode("n", "") }, annotationField+`: Invalid value: ""`, "cannot be moved to no cell"),
		Entry("refuses to override the cell by an annotation", "one", "-",
			func() error { return w.annotateNode("n", "cell2") }, annotationField+`: Invalid value: "cell2"`, "cannot be moved to cell cell2"),
		Entry("refuses to opt out by an empty annotation", "one", "-",
			func() error { return w.annotateNode("n", "") }, annotationField+`: Invalid value: ""`, "cannot be moved to no cell"),
		Entry("refuses a role of another cell", "one", "-",
			func() error { return w.moveNode("n", "two") }, `spec.role: Invalid value: "two"`, "cannot be moved to cell cell2"),
		Entry("refuses a role without a cell", "one", "-",
			func() error { return w.moveNode("n", "none") }, `spec.role: Invalid value: "none"`, "cannot be moved to no cell"),
		Entry("refuses a role that does not exist", "one", "-",
			func() error { return w.moveNode("n", "ghost") }, `spec.role: Invalid value: "ghost"`, "nor a role that exists"),
		Entry("refuses to leave the role", "one", "-",
			func() error { return w.moveNode("n", "") }, `spec.role: Invalid value: ""`, "cannot be moved to no cell"),
		Entry("refuses to move and annotate with another cell at once", "one", "-", func() error {
			return w.updateNode("n", func(n *dataplanev1.OpenStackDataPlaneNode) {
				n.Spec.Role, n.Annotations = "none", annotated("cell2")
			})
		}, annotationField+`: Invalid value: "cell2"`, "cannot be moved to cell cell2"),
	)

	It("accepts a role of another cell together with an annotation that keeps the cell", func() {
		w.node("n", "one", "-")
		Expect(w.updateNode("n", func(n *dataplanev1.OpenStackDataPlaneNode) {
			n.Spec.Role, n.Annotations = "two", annotated("cell1")
		})).To(Succeed())
	})

	It("keeps the annotation of a node even where that of its role is the same", func() {
		w.node("n", "one", "cell1")
		refused(w.annotateNode("n", "-"), annotationField, "cannot be changed or removed once it is set", "restore the annotation")
	})

	It("refuses what is not the name of a NovaCell", func() {
		w.node("n", "none", "-")
		refused(w.annotateNode("n", "Cell 1"), annotationField+`: Invalid value: "Cell 1"`, "for example nova-cell1")
		refused(w.annotateRole("none", "cell1 "), annotationField+`: Invalid value: "cell1 "`, "for example nova-cell1")
		refused(api.Create(ctx, w.newRole("new", "nova/cell1")), annotationField+`: Invalid value: "nova/cell1"`)
	})

	It("warns when the NovaCell does not exist, or is cell0", func() {
		create(&novav1.NovaCell{ObjectMeta: w.meta("cell1", "-")})
		create(&novav1.NovaCell{ObjectMeta: w.meta("nova-cell0", "-"), Spec: novav1.NovaCellSpec{CellName: "cell0"}})
		w.node("n", "none", "-")
		warnings.take()
		Expect(w.annotateNode("n", "cell1")).To(Succeed())
		Expect(warnings.take()).To(BeEmpty())
		w.node("typo", "none", "cel1")
		Expect(warnings.take()).To(ConsistOf(And(ContainSubstring("NovaCell cel1 does not exist in namespace"), ContainSubstring("cannot be changed later"))))
		w.role("zero", "nova-cell0")
		Expect(warnings.take()).To(ConsistOf(ContainSubstring("is cell0, which has no computes")))
	})

	Describe("when a NovaExternalCompute records the cell", func() {
		BeforeEach(func() {
			w.node("n", "one", "-")
			w.compute("n", "cell1")
		})
		recreateNode := func(role, cell string) error {
			w.delete(w.newNode("n", "", "-"))
			return api.Create(ctx, w.newNode("n", role, cell))
		}

		It("refuses another cell after the node is deleted and created again", func() {
			refused(recreateNode("none", "cell2"), annotationField+`: Invalid value: "cell2"`,
				"node n is in cell cell1", "delete NovaExternalCompute n first")
			refused(api.Create(ctx, w.newNode("n", "two", "-")), `spec.role: Invalid value: "two"`, "is in cell cell1")
		})
		It("gives a node its cell again when it is created again", func() { Expect(recreateNode("one", "-")).To(Succeed()) })
		It("leaves a node without any cell alone", func() {
			Expect(recreateNode("none", "-")).To(Succeed())
			Expect(w.annotateNode("n", "cell1")).To(Succeed())
		})
		It("refuses another cell after the role is deleted", func() {
			w.delete(w.newRole("one", "-"))
			refused(w.annotateNode("n", "cell2"), "node n is in cell cell1", "delete NovaExternalCompute n first")
			refused(w.moveNode("n", "two"), `spec.role: Invalid value: "two"`, "is in cell cell1")
			Expect(w.moveNode("n", "none")).To(Succeed(), "it has no cell by annotation before and after")
			Expect(w.moveNode("n", "uno")).To(Succeed(), "this is where it belongs")
		})
		It("refuses another cell by deleting the role and creating it again", func() {
			w.delete(w.newRole("one", "-"))
			refused(api.Create(ctx, w.newRole("one", "cell2")), annotationField+`: Invalid value: "cell2"`, "n (in cell cell1)", "cell cell2")
			w.role("one", "cell1")
		})
		It("refuses another cell for a role that was created again without one", func() {
			w.delete(w.newRole("one", "-"))
			w.role("one", "-")
			refused(w.annotateRole("one", "cell2"), "n (in cell cell1)")
			Expect(w.annotateRole("one", "cell1")).To(Succeed())
		})
		It("accepts any cell once the record is deleted", func() {
			w.delete(w.newNode("n", "", "-"))
			w.delete(w.newCompute("n", "-"))
			w.node("n", "two", "-")
		})
		It("refuses another cell in the record", func() {
			compute := w.newCompute("n", "cell1")
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cellName":"cell2"}}`))
			refused(api.Patch(ctx, compute, patch), "spec.cellName", "cannot be changed", "create it again")
		})
	})

	It("refuses a new NovaExternalCompute of another cell", func() {
		w.node("n", "one", "-")
		refused(api.Create(ctx, w.newCompute("n", "cell2")), `spec.cellName: Invalid value: "cell2"`, "node n is in cell cell1", "set cell1")
		w.compute("before-its-node", "cell2")
		refused(api.Create(ctx, w.newNode("before-its-node", "one", "-")), "is in cell cell2")
		w.node("before-its-node", "two", "-")
	})

	Describe("when a role is written", func() {
		It("accepts a first cell for all nodes, and refuses another one afterwards", func() {
			w.node("a", "none", "-")
			w.node("b", "none", "-")
			Expect(w.annotateRole("none", "cell1")).To(Succeed())
			for _, cell := range []string{"cell2", "-", ""} {
				refused(w.annotateRole("none", cell), annotationField, "a (in cell cell1), b (in cell cell1)", "use another role")
			}
		})
		It("keeps the cell even if the role has no nodes", func() {
			for _, cell := range []string{"cell2", "-", ""} {
				refused(w.annotateRole("one", cell), annotationField, "is cell1 and can be neither changed nor removed", "restore it")
			}
		})
		It("accepts a first cell if the other nodes override it", func() {
			w.node("a", "none", "cell2")
			w.node("b", "none", "-")
			w.node("c", "none", "")
			w.compute("a", "cell2")
			Expect(w.annotateRole("none", "cell1")).To(Succeed())
			By("naming only the nodes that would move")
			err := w.annotateRole("none", "cell3")
			refused(err, "b (in cell cell1)")
			Expect(err.Error()).NotTo(Or(ContainSubstring("a (in"), ContainSubstring("c (in")))
		})
		It("refuses a first cell over nodes that are recorded in other cells, and names each", func() {
			for _, name := range []string{"b", "a", "c"} {
				w.node(name, "none", "-")
			}
			w.compute("a", "cell1")
			w.compute("b", "cell2")
			w.compute("c", "cell3")
			refused(w.annotateRole("none", "cell3"), annotationField+`: Invalid value: "cell3"`,
				"cannot move nodes a (in cell cell1), b (in cell cell2) to cell cell3")
		})
		It("names ten nodes of many", func() {
			for i := range 13 {
				w.node(fmt.Sprintf("n-%02d", i), "one", "-")
			}
			err := w.annotateRole("one", "cell2")
			refused(err, "n-00 (in cell cell1)", "n-09 (in cell cell1) and 3 more")
			Expect(strings.Count(err.Error(), "in cell cell1")).To(Equal(10))
		})
		It("looks at the nodes of this role and namespace only", func() {
			other := newWorld()
			other.node("n", "none", "-")
			other.compute("n", "cell9")
			w.node("m", "uno", "-")
			w.compute("m", "cell1")
			Expect(w.annotateRole("none", "cell2")).To(Succeed())
		})
		It("accepts a cell of a role that is created after its nodes", func() {
			w.node("n", "late", "-")
			w.role("late", "cell2")
			refused(w.annotateNode("n", "cell1"), "node n is in cell cell2")
		})
	})

	It("allows writes that concern no cell, and deletion", func() {
		w.node("n", "one", "-")
		w.compute("n", "cell1")
		Expect(w.updateNode("n", func(n *dataplanev1.OpenStackDataPlaneNode) {
			n.Labels, n.Spec.HostName = map[string]string{"a": "b"}, "host"
		})).To(Succeed())
		Expect(w.updateRole("one", func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Annotations["note"], r.Spec.DataPlane = "x", "openstack-edpm"
		})).To(Succeed())
		w.delete(w.newRole("one", "-"))
		w.delete(w.newNode("n", "", "-"))
		w.delete(w.newCompute("n", "-"))
	})

	It("refuses to change the cell through a status update", func() {
		w.node("n", "one", "-")
		node := &dataplanev1.OpenStackDataPlaneNode{}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(w.newNode("n", "", "-")), node)).To(Succeed())
		node.Annotations, node.Spec.Role = annotated("cell2"), "two"
		node.Status.InventoryConfigMapName = "dataplanenode-n"
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		Expect(api.Get(ctx, client.ObjectKeyFromObject(node), node)).To(Succeed())
		Expect(node.Status.InventoryConfigMapName).To(Equal("dataplanenode-n"))
		Expect(node.Annotations).NotTo(HaveKey(novav1.CellAnnotation))
		Expect(node.Spec.Role).To(Equal("one"))
	})

	Describe("when two updates race", func() {
		It("lets exactly one of them set the cell", func() {
			for round := range 10 {
				role := fmt.Sprintf("race-%d", round)
				w.role(role, "-")
				errs := inParallel(
					func() error { return w.patchRole(role, "cell1") },
					func() error { return w.patchRole(role, "cell2") },
				)
				if errs[0] == nil {
					refused(errs[1], "is cell1 and can be neither changed nor removed")
				} else {
					Expect(errs[1]).NotTo(HaveOccurred())
					refused(errs[0], "is cell2 and can be neither changed nor removed")
				}
			}
		})

		It("keeps the cell of the record when a role gets a cell while a node of it gets another", func() {
			w.node("n", "none", "-")
			reads.once("n", func() {
				defer GinkgoRecover()
				By("annotating the role, and the controller recording it, before the node is stored")
				Expect(w.annotateRole("none", "cell1")).To(Succeed())
				w.compute("n", "cell1")
			})
			Expect(w.annotateNode("n", "cell2")).To(Succeed(), "its webhook had read before the role was annotated")
			w.stays("n", "cell1")
		})

		It("keeps the cell of the record when a role gets a cell while a node moves into it", func() {
			By("starting with a node whose role is gone and whose record is there")
			w.node("n", "gone", "-")
			w.compute("n", "cell1")
			reads.once("n", func() {
				defer GinkgoRecover()
				Expect(w.annotateRole("none", "cell2")).To(Succeed(), "the node is not in the role yet")
			})
			Expect(w.moveNode("n", "none")).To(Succeed(), "its webhook had read before the role was annotated")
			w.stays("n", "cell1")
		})
	})
})

// stays expects that the cell of the node's record cannot be changed.
func (w world) stays(node, cell string) {
	GinkgoHelper()
	compute := &novav1.NovaExternalCompute{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: string(w), Name: node}, compute)).To(Succeed())
	Expect(compute.Spec.CellName).To(Equal(cell))
	compute.Spec.CellName = "cell2"
	refused(api.Update(ctx, compute), "spec.cellName", "cannot be changed")
}

// patchRole annotates without a resource version, so that the API server
// decides the order of concurrent calls.
func (w world) patchRole(name, cell string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, novav1.CellAnnotation, cell)
	return api.Patch(ctx, w.newRole(name, "-"), client.RawPatch(types.MergePatchType, []byte(patch)))
}

func inParallel(calls ...func() error) []error {
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	wg.Wait()
	return errs
}
