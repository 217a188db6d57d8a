package controllers_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// restored has a finalizer and no status, as a backup has an object.
func restored[T client.Object](obj T, finalizer string) T {
	obj.SetFinalizers([]string{finalizer})
	return obj
}

// at matches requests for the path of an object, or of its status.
func at(path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, path) }
}

var _ = Describe("What was restored from a backup without its status", func() {
	var w *world
	compute := func() *novav1.NovaExternalCompute {
		return restored(MakeCompute("n", w.ns, "cell1"), novav1.NovaExternalComputeFinalizer)
	}
	owner := func(g Gomega) *metav1.OwnerReference { return metav1.GetControllerOf(get(g, w.compute("n"))) }

	BeforeEach(func() {
		w = newCloud()
		role := w.role("compute").Cell("cell1").Obj()
		role.Spec.DeployStrategy.Deploy = ptr.To(false)
		w.make(role)
	})

	It("belongs to no node before that has its finalizer, and leaves the host with the next one", func() {
		resume := w.wire.hold(at("/openstackdataplanenodes/n"))
		DeferCleanup(resume)
		w.make(compute(), MakeNode("n", w.ns).Role("compute").Obj())
		Consistently(owner).Should(BeNil(), "it would be deleted with the node, which nothing holds")
		remove(w.node("n"))
		gone(w.node("n"))
		resume()
		Expect(get(Default, w.compute("n")).DeletionTimestamp).To(BeNil())
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Eventually(owner).ShouldNot(BeNil())
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")).To(Equal([]string{cleanup}))
	})

	It("leaves the host when its node is deleted before it reports that it was restored", func() {
		resume := w.wire.hold(at("/novaexternalcomputes/n/status"))
		DeferCleanup(resume)
		w.make(compute(), MakeNode("n", w.ns).Role("compute").Obj())
		Eventually(owner).ShouldNot(BeNil())
		remove(w.node("n"))
		w.halted(w.node("n"), condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason, "NovaExternalCompute/n")
		resume()
		gone(w.node("n"))
		Expect(w.steps("n")).To(Equal([]string{cleanup}))
	})

	It("leaves the host even if the API server did not answer when its compute was first checked", func() {
		heal := w.wire.lose(at("/novaexternalcomputes/n"))
		w.make(compute(), MakeNode("n", w.ns).Role("compute").Obj())
		Eventually(func(g Gomega) int64 { return get(g, w.compute("n")).Status.ObservedGeneration }).ShouldNot(BeZero())
		heal()
		Eventually(owner).ShouldNot(BeNil())
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")).To(Equal([]string{cleanup}))
	})

	It("leaves the host even if the API server did not answer when its node was first checked", func() {
		heal := w.wire.lose(at("/openstackdataplanenodes/n"))
		w.make(restored(MakeNode("n", w.ns).Role("compute").Obj(), dataplanev1.NodeFinalizer))
		Eventually(func(g Gomega) int64 { return get(g, w.node("n")).Status.ObservedGeneration }).ShouldNot(BeZero())
		heal()
		w.condition(w.compute("n"), novav1.DataPlaneNodeReadyCondition, "False/DataPlaneNodeNotReady/Info")
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")).To(Equal([]string{cleanup}))
	})

	It("differs from what a person creates, even if the manager dies between the finalizer and the first status", func() {
		resume := w.wire.hold(at("/novaexternalcomputes/n/status"))
		DeferCleanup(resume)
		mine := MakeCompute("n", w.ns, "cell1")
		w.make(mine)
		Eventually(w.wire.waiting).Should(BeTrue())
		Consistently(func(g Gomega) []string { return get(g, mine).Finalizers }).Should(BeEmpty(), "with it, and without a status, it would count as restored")
		resume()
		Eventually(func(g Gomega) []string { return get(g, mine).Finalizers }).Should(ConsistOf(novav1.NovaExternalComputeFinalizer))
		Expect(get(Default, mine).Status.Unknown()).To(BeFalse())
	})

	It("leaves the host even if the class of a service was restored after the service", func() {
		role := w.role("edge").Annotation("example.org/agent", "true").Obj()
		role.Spec.DeployStrategy.Deploy = ptr.To(false)
		w.make(role, restored(w.service("agent", "n"), edpmv1.EDPMServiceFinalizer), MakeNode("n", w.ns).Role("edge").Obj())
		w.halted(w.service("agent", "n"), edpmv1.ServiceClassReadyCondition, edpmv1.ClassMissingReason)
		w.make(MakeServiceClass("agent", w.ns).Obj())
		Eventually(func(g Gomega) *metav1.OwnerReference { return metav1.GetControllerOf(get(g, w.service("agent", "n"))) }).ShouldNot(BeNil())
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")).To(Equal([]string{"agent-cleanup"}))
	})
})
