package controllers_test

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// unfinished are the runs that have not ended.
func (w *world) unfinished(g Gomega) []ansibleeev1.OpenStackAnsibleEE {
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	g.Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	return slices.DeleteFunc(list.Items, func(r ansibleeev1.OpenStackAnsibleEE) bool { return r.Finished() })
}

// inputsOfRuns are the names of the Secrets that runs left.
func (w *world) inputsOfRuns(g Gomega) []string {
	list := &corev1.SecretList{}
	g.Expect(api.List(ctx, list, client.InNamespace(w.ns), client.HasLabels{common.RunInputsLabel})).To(Succeed())
	var names []string
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	return names
}

var _ = Describe("A run that cannot start", func() {
	var w *world
	var role *dataplanev1.OpenStackDataPlaneRole

	attach := func(network string) {
		GinkgoHelper()
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.NetworkAttachments = []string{network} })
		// A run that is asked for before the manager has seen the change has the old network.
		Eventually(func(g Gomega) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
			g.Expect(role.Status.ObservedGeneration).To(Equal(role.Generation))
		}).Should(Succeed())
	}
	// stuck waits until all runs wait for their network, and returns them.
	stuck := func() []ansibleeev1.OpenStackAnsibleEE {
		GinkgoHelper()
		var runs []ansibleeev1.OpenStackAnsibleEE
		Eventually(func(g Gomega) {
			runs = w.unfinished(g)
			g.Expect(runs).NotTo(BeEmpty())
			for _, r := range runs {
				c := r.Status.Conditions.Get(ansibleeev1.NetworkAttachmentsReadyCondition)
				g.Expect(c).NotTo(BeNil())
				g.Expect(c.Reason).To(Equal(ansibleeev1.NetworkAttachmentMissingReason))
			}
		}).Should(Succeed())
		return runs
	}

	BeforeEach(func() {
		w = newCloud()
		nad := &unstructured.Unstructured{}
		nad.SetAPIVersion("k8s.cni.cncf.io/v1")
		nad.SetKind("NetworkAttachmentDefinition")
		nad.SetNamespace(w.ns)
		nad.SetName("right")
		w.make(nad)
		role = w.role("compute").Cell("cell1").Obj()
		role.Spec.NetworkAttachments = []string{"typo"}
		w.make(role)
		w.makeNodes(2, "compute")
		stuck()
	})

	It("withdraws when its inputs are corrected, which takes effect at once", func() {
		first := stuck()
		attach("right")
		w.computesReady(nodeNames(2)...)
		w.exactlyOnce()
		for i := range first {
			gone(&first[i])
		}
		Eventually(w.inputsOfRuns).Should(BeEmpty(), "the inputs of a run that was taken back are left")
	})

	It("lets a node be deleted, and the others run without it", func() {
		remove(w.node("n000"))
		gone(w.node("n000"))
		attach("right")
		w.computesReady("n001")
		Expect(w.times("n000", "install-os")).To(BeZero(), "a run has started for a node that is gone")
	})

	It("leaves the host as it is when its token is removed", func() {
		attach("right")
		w.computesReady(nodeNames(2)...)
		attach("typo")
		annotate(w.compute("n000"), common.RerunAnnotation, "again")
		stuck()
		annotate(w.compute("n000"), common.RerunAnnotation, "")
		Eventually(w.unfinished).Should(BeEmpty())
		w.computesReady(nodeNames(2)...)
		w.exactlyOnce()
	})
})
