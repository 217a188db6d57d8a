package controllers_test

import (
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

const cleanup = "nova-cleanup"

// entryWrites matches what writes the entry of nova into the status of a node.
func entryWrites(node string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/openstackdataplanenodes/"+node+"/status") && r.URL.Query().Get("fieldManager") == "edpm-service-nova"
	}
}

// ownStatusWrites matches what the node's own controller writes into its status.
func ownStatusWrites(node string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/openstackdataplanenodes/"+node+"/status") && r.URL.Query().Get("fieldManager") != "edpm-service-nova"
	}
}

var _ = Describe("A node that is deleted", func() {
	var w *world
	var role *dataplanev1.OpenStackDataPlaneRole

	BeforeEach(func() {
		w = newCloud()
		role = w.role("compute").Cell("cell1").Vars(`{"ansible_user": "stack"}`).Obj()
		w.make(role)
	})

	computeNode := func() {
		GinkgoHelper()
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.computesReady("n")
	}

	It("removes its services from its host, and then disappears with all that belongs to it", func() {
		computeNode()
		release := w.hosts.Hold()
		DeferCleanup(release)
		remove(w.node("n"))
		Eventually(func() int { return w.times("n", cleanup) }).Should(Equal(1))
		w.halted(w.node("n"), condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason, "waiting until the services are removed from the host: nova (NovaExternalCompute/n")
		w.condition(w.compute("n"), condition.DeploymentReadyCondition, "False/CleaningUp/Info", "Step nova-cleanup is running in")
		Expect(w.did("n", cleanup)[0].Vars).To(And(HaveKeyWithValue("ansible_user", "stack"), HaveKeyWithValue("ansible_host", "n")))
		release()
		gone(w.node("n"))
		gone(w.compute("n"))
		gone(MakeConfigMap("dataplanenode-n", w.ns, "", ""))
		w.exactlyOnce()
	})

	It("removes its services even if deploy is false", func() {
		computeNode()
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = ptr.To(false) })
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.times("n", cleanup)).To(Equal(1))
	})

	It("disappears at once when nothing was ever deployed on its host", func() {
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = ptr.To(false) })
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Eventually(w.computes).Should(HaveKey("n"))
		remove(w.node("n"))
		gone(w.node("n"))
		gone(w.compute("n"))
		Expect(w.hosts.Book()).To(BeEmpty())
	})

	It("cleans up once even if the manager restarts meanwhile", func() {
		computeNode()
		release := w.hosts.Hold()
		DeferCleanup(release)
		remove(w.node("n"))
		Eventually(func() int { return w.times("n", cleanup) }).Should(Equal(1))
		w.restart()
		release()
		w.restart()
		gone(w.node("n"))
		w.exactlyOnce()
	})

	It("waits for a run that is in progress on its host, and cleans up after it", func() {
		computeNode()
		release := w.hosts.Hold()
		DeferCleanup(release)
		change(w.compute("n"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		Eventually(func() int { return w.times("n", "nova") }).Should(Equal(2))
		remove(w.node("n"))
		Consistently(func() int { return w.times("n", cleanup) }).Should(BeZero())
		release()
		gone(w.node("n"))
		Expect(w.times("n", cleanup)).To(Equal(1))
		w.exactlyOnce()
	})

	It("takes back what it still waited for", func() {
		ill := w.sick(map[string]fakekube.Outcome{"n/install-os": fakekube.Unreachable})
		DeferCleanup(func() { ill.heal("n/install-os") })
		w.make(MakeService("own", w.ns))
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.Services = []string{"install-os", "own"} })
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "False/HostUnreachable/Warning")
		remove(w.node("n"))
		gone(w.node("n"))
		before := len(w.hosts.Book())
		time.Sleep(2 * time.Second) // longer than its next attempt is away
		Expect(len(w.hosts.Book())).To(BeNumerically("<=", before+1), "only a run that had been started before may end later")
	})

	Context("with a host that does not answer", func() {
		var ill *sick

		BeforeEach(func() {
			computeNode()
			ill = w.sick(map[string]fakekube.Outcome{"n": fakekube.Unreachable})
			remove(w.node("n"))
			w.halted(w.compute("n"), condition.DeploymentReadyCondition, novav1.CleanupFailedReason,
				"Cannot clean up host n", "no route to host", "Left on it: units edpm_nova_compute", "edpm.openstack.org/skip-cleanup", "edpm.openstack.org/rerun")
		})

		It("retries a number of times, says what is left, and releases the host on demand", func() {
			w.condition(w.compute("n"), condition.DeploymentReadyCondition, "False/CleanupFailed/Error", "attempt 5, the last")
			w.halted(w.node("n"), condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason)
			time.Sleep(2 * time.Second) // longer than another attempt would be away
			Expect(w.times("n", cleanup)).To(Equal(5))
			Expect(w.repeated("n")).To(ConsistOf(ContainSubstring("attempt 5, the last")), "the first and the last attempt are reported")
			annotate(w.node("n"), common.SkipCleanupAnnotation, "true")
			gone(w.node("n"))
			gone(w.compute("n"))
			Expect(w.times("n", cleanup)).To(Equal(5))
		})

		It("skips clean-up by the annotation on the compute as well", func() {
			annotate(w.compute("n"), common.SkipCleanupAnnotation, "true")
			gone(w.node("n"))
		})

		It("cleans up when the host answers in time", func() {
			ill.heal("n")
			gone(w.node("n"))
		})

		It("retries after the last attempt when the access to the host is fixed", func() {
			w.condition(w.compute("n"), condition.DeploymentReadyCondition, "False/CleanupFailed/Error", "attempt 5, the last")
			ill.heal("n")
			w.nothingRuns()
			w.setSecret("ssh-key", "ssh-privatekey", "key-2")
			gone(w.node("n"))
			Expect(w.times("n", cleanup)).To(Equal(6))
		})

		It("retries after the last attempt on demand", func() {
			w.condition(w.compute("n"), condition.DeploymentReadyCondition, "False/CleanupFailed/Error", "attempt 5, the last")
			ill.heal("n")
			annotate(w.node("n"), common.RerunAnnotation, "again")
			gone(w.node("n"))
			Expect(w.times("n", cleanup)).To(Equal(6))
		})
	})

	It("reports that its key is missing, and cleans up when it exists again", func() {
		computeNode()
		remove(MakeSecret("ssh-key", w.ns, "", ""))
		remove(w.node("n"))
		w.halted(w.compute("n"), condition.DeploymentReadyCondition, novav1.CleanupFailedReason, `Secret "ssh-key" does not exist`)
		Expect(w.times("n", cleanup)).To(BeZero())
		w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"))
		gone(w.node("n"))
		Expect(w.times("n", cleanup)).To(Equal(1))
	})

	It("cleans up with the values of its role even if the role was deleted", func() {
		computeNode()
		remove(role)
		w.halted(w.node("n"), condition.InputReadyCondition, dataplanev1.RoleMissingReason)
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.did("n", cleanup)).To(HaveLen(1))
		Expect(w.did("n", cleanup)[0].Vars).To(HaveKeyWithValue("ansible_user", "stack"))
	})

	DescribeTable("disappears even if it is invalid",
		func(spec dataplanev1.OpenStackDataPlaneNodeSpec, reason condition.Reason) {
			n := MakeNode("n", w.ns).Obj()
			n.Spec = spec
			w.make(n)
			w.condition(n, condition.InputReadyCondition, "False/"+string(reason)+"/Error")
			remove(n)
			gone(n)
		},
		Entry("without a role", dataplanev1.OpenStackDataPlaneNodeSpec{}, dataplanev1.RoleMissingReason),
		Entry("with variables that cannot be read", dataplanev1.OpenStackDataPlaneNodeSpec{
			Role: "compute", Node: dataplanev1.NodeSection{AnsibleVars: JSON(`"a: ["`)},
		}, dataplanev1.InvalidVarsReason),
	)

	It("runs every step when it is created again", func() {
		computeNode()
		remove(w.node("n"))
		gone(w.node("n"))
		gone(w.compute("n"))
		computeNode()
		Expect(w.steps("n")).To(Equal([]string{"install-os", "libvirt", "nova", cleanup, "install-os", "libvirt", "nova"}))
		w.consistent("n")
	})

	It("waits for a run of its predecessor when it is created again", func() {
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Eventually(func() int { return w.times("n", "install-os") }).Should(Equal(1))
		remove(w.node("n"))
		gone(w.node("n"))
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Consistently(func() int { return w.times("n", "install-os") }).Should(Equal(1))
		release()
		w.computesReady("n")
		Expect(w.times("n", "install-os")).To(Equal(2))
		w.consistent("n")
	})

	It("leaves other nodes alone", func() {
		computeNode()
		w.make(MakeNode("other", w.ns).Role("compute").Obj())
		w.computesReady("other")
		remove(w.node("n"))
		gone(w.node("n"))
		w.computesReady("other")
		Expect(w.steps("other")).To(Equal([]string{"install-os", "libvirt", "nova"}))
	})

	It("cleans up once when its compute is deleted first; the compute comes back and is deployed again", func() {
		computeNode()
		old := get(Default, w.compute("n")).UID
		remove(w.compute("n"))
		Eventually(func(g Gomega) bool {
			c := w.compute("n")
			return api.Get(ctx, metaKey(c), c) == nil && c.UID != old
		}).Should(BeTrue(), "the node is still annotated")
		w.computesReady("n")
		Expect(w.steps("n")).To(Equal([]string{"install-os", "libvirt", "nova", cleanup, "libvirt", "nova"}))
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.times("n", cleanup)).To(Equal(2))
	})

	It("cleans up even if the last status of the previous compute is written when its successor exists", func() {
		computeNode()
		old := get(Default, w.compute("n")).UID
		// The status that follows the removal of the finalizer.
		released := false
		resume := w.wire.hold(func(r *http.Request) bool {
			switch path := r.URL.Path; {
			case strings.HasSuffix(path, "/novaexternalcomputes/n") && r.Header.Get("Content-Type") == string(types.MergePatchType):
				released = true
			case strings.HasSuffix(path, "/novaexternalcomputes/n/status"):
				return released
			}
			return false
		})
		DeferCleanup(resume)
		remove(w.compute("n"))
		Eventually(func(g Gomega) bool {
			c := w.compute("n")
			return api.Get(ctx, metaKey(c), c) == nil && c.UID != old
		}).Should(BeTrue(), "the node is still annotated")
		resume()
		w.computesReady("n")
		Expect(get(Default, w.compute("n")).Status.Runs).NotTo(HaveKey(cleanup), "its host has not been cleaned up since it exists")
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.times("n", cleanup)).To(Equal(2))
	})

	It("shows a compute before it exists", func() {
		resume := w.wire.hold(entryWrites("n"))
		DeferCleanup(resume)
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.nodesReady("n")
		Consistently(w.computes).Should(BeEmpty(), "the node could go without it")
		resume()
		w.computesReady("n")
		w.consistent("n")
	})

	It("waits for a compute that ran on its host even if the status of the node does not list it", func() {
		computeNode()
		Eventually(func(g Gomega) bool { return w.entry(g, "n").Ready }).Should(BeTrue())
		resume := w.wire.hold(entryWrites("n"))
		DeferCleanup(resume)
		Expect(api.Status().Patch(ctx, w.node("n"), jsonPatch(`{"status":{"services":null}}`))).To(Succeed())
		remove(w.node("n"))
		w.halted(w.node("n"), condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason, "NovaExternalCompute/n")
		resume()
		gone(w.node("n"))
		Expect(w.times("n", cleanup)).To(Equal(1))
	})

	It("waits for a compute that a user created and an earlier release deployed, until that is deleted", func() {
		w.make(w.role("plain").Obj(), MakeNode("n", w.ns).Role("plain").Obj())
		w.nodesReady("n")
		own := MakeCompute("n", w.ns, "cell1")
		own.Spec.InventoryConfigMapName, own.Spec.SSHKeySecretName = "dataplanenode-n", "ssh-key"
		w.make(own)
		w.halted(w.compute("n"), condition.InputReadyCondition, novav1.AnnotationMissingReason)
		Expect(api.Status().Patch(ctx, w.compute("n"), jsonPatch(`{"status":{"runs":{"nova":{"name":"old","serial":1}},"hash":{"nova":"h"}}}`))).To(Succeed())
		remove(w.node("n"))
		w.halted(w.node("n"), condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason, "NovaExternalCompute/n")
		remove(w.compute("n"))
		gone(w.node("n"))
		gone(w.compute("n"))
		Expect(w.steps("n")).To(Equal([]string{"install-os", cleanup}))
	})

	// restore makes an object as a backup has it: with its finalizer, without its status.
	restore := func(obj client.Object, finalizer string) {
		GinkgoHelper()
		obj.SetFinalizers([]string{finalizer})
		w.make(obj)
	}

	It("cleans up after a restore from a backup without a deployment since", func() {
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = ptr.To(false) })
		restore(MakeNode("n", w.ns).Role("compute").Obj(), dataplanev1.NodeFinalizer)
		w.condition(w.compute("n"), novav1.DataPlaneNodeReadyCondition, "False/DataPlaneNodeNotReady/Info")
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")).To(Equal([]string{cleanup}))
	})

	It("cleans up after a restore from a backup that is not in its status yet", func() {
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = ptr.To(false) })
		resume := w.wire.hold(ownStatusWrites("n"))
		DeferCleanup(resume)
		restore(MakeNode("n", w.ns).Role("compute").Obj(), dataplanev1.NodeFinalizer)
		w.condition(w.compute("n"), novav1.DataPlaneNodeReadyCondition, "False/DataPlaneNodeNotReady/Info")
		remove(w.node("n"))
		Eventually(w.steps).WithArguments("n").Should(Equal([]string{cleanup}))
		resume()
		gone(w.node("n"))
	})

	It("cleans up after its compute was restored from a backup without a deployment since", func() {
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = ptr.To(false) })
		restore(MakeCompute("n", w.ns, "cell1"), novav1.NovaExternalComputeFinalizer)
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Eventually(func(g Gomega) *metav1.OwnerReference { return metav1.GetControllerOf(get(g, w.compute("n"))) }).ShouldNot(BeNil())
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")).To(Equal([]string{cleanup}))
	})

	It("skips clean-up when it was never deployed; its compute has its finalizer from the start", func() {
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = ptr.To(false) })
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.condition(w.compute("n"), novav1.DataPlaneNodeReadyCondition, "False/DataPlaneNodeNotReady/Info")
		Expect(get(Default, w.compute("n")).Finalizers).To(ConsistOf(novav1.NovaExternalComputeFinalizer))
		written := slices.DeleteFunc(w.wire.Since(0), func(write string) bool { return !strings.HasSuffix(write, "/novaexternalcomputes/n") })
		Expect(written).To(HaveLen(1), "writes of the compute itself: its creation")
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")).To(BeEmpty())
	})

	It("cleans up even if the manager died before it recorded which compute it had created", func() {
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = ptr.To(false) })
		resume := w.wire.hold(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/novaexternalcomputes/n") })
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Eventually(func() []string { return w.wire.Since(0) }).Should(ContainElement(HaveSuffix("/novaexternalcomputes/n")))
		w.wire.cutAfter(0, true)
		resume()
		Eventually(w.computes).Should(HaveLen(1))
		w.restart()
		w.condition(w.compute("n"), novav1.DataPlaneNodeReadyCondition, "False/DataPlaneNodeNotReady/Info")
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")).To(Equal([]string{cleanup}))
	})

	It("keeps its services when a restored compute of its predecessor is collected", func() {
		old := MakeCompute("n", w.ns, "cell1")
		old.OwnerReferences = ownedBy("n", "of-before", dataplanev1.GroupVersion.String(), "OpenStackDataPlaneNode")
		old.Spec.InventoryConfigMapName, old.Spec.SSHKeySecretName = "dataplanenode-n", "ssh-key"
		restore(old, novav1.NovaExternalComputeFinalizer)
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.nodesReady("n")
		w.condition(w.compute("n"), novav1.DataPlaneNodeReadyCondition, "False/Conflict/Error", "owned by OpenStackDataPlaneNode/n, not by")
		remove(old)
		w.computesReady("n")
		Expect(w.steps("n")).To(Equal([]string{"install-os", "libvirt", "nova"}))
	})

	It("keeps waiting visibly for a service of another owner", func() {
		computeNode()
		n := w.node("n")
		n.ManagedFields = nil
		Expect(api.Status().Patch(ctx, n, jsonPatch(`{"status":{"services":[{"name":"nova","ready":true,"kind":"NovaExternalCompute","objectName":"n"},{"name":"ovn","ready":true,"kind":"OVNMetadataAgent","objectName":"x","message":"busy"}]}}`))).To(Succeed())
		remove(w.node("n"))
		w.halted(w.node("n"), condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason, "ovn (OVNMetadataAgent/x: busy)")
		gone(w.compute("n"))
		Consistently(func(g Gomega) *metav1.Time { return get(g, w.node("n")).DeletionTimestamp }).ShouldNot(BeNil())
		Expect(api.Status().Patch(ctx, w.node("n"), jsonPatch(`{"status":{"services":null}}`))).To(Succeed())
		gone(w.node("n"))
	})
})
