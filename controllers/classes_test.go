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

	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// class is an empty object to read a class into.
func (w *world) class(name string) *edpmv1.EDPMServiceClass {
	return MakeServiceClass(name, w.ns).Obj()
}

func (w *world) service(class, node string) *edpmv1.EDPMService {
	return MakeEDPMService(class, node, w.ns)
}

// servicesReady waits until the service of the class is Ready on the nodes.
func (w *world) servicesReady(class string, nodes ...string) {
	GinkgoHelper()
	for _, n := range nodes {
		w.ready(w.service(class, n))
	}
}

// services are the names of all EDPMServices of the world.
func (w *world) services(g Gomega) []string {
	list := &edpmv1.EDPMServiceList{}
	g.Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	var names []string
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	return names
}

// onNode are the services that a node shows, and whether they are ready.
func (w *world) onNode(node string) func(Gomega) map[string]bool {
	return func(g Gomega) map[string]bool {
		out := map[string]bool{}
		for _, s := range get(g, w.node(node)).Status.Services {
			out[s.Name] = s.Ready
		}
		return out
	}
}

// newPlane makes a world with a key and the role edge, which has an annotation for each
// of the classes.
func newPlane(classes ...string) *world {
	GinkgoHelper()
	return newWorld().withPlane(classes...)
}

func (w *world) withPlane(classes ...string) *world {
	GinkgoHelper()
	role := w.role("edge")
	for _, c := range classes {
		role.Annotation("example.org/"+c, "true")
	}
	w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"), role.Obj())
	return w
}

// runsOf are the runs of a service.
func (w *world) runsOf(service string) int {
	n := 0
	for _, r := range w.runs() {
		if r.Spec.Service == service && !r.Spec.Removal {
			n++
		}
	}
	return n
}

var _ = Describe("A service class", func() {
	It("brings its service once to every node of an annotated role", func() {
		w := newPlane("agent")
		w.make(MakeServiceClass("agent", w.ns).Obj())
		names := w.makeNodes(12, "edge")
		w.servicesReady("agent", names...)
		for _, n := range names {
			Eventually(w.onNode(n)).Should(Equal(map[string]bool{"agent": true}))
			Expect(w.steps(n)).To(Equal([]string{"install-os", "agent"}))
		}
		first := w.did("n000", "agent")[0]
		Expect(first.Vars).To(And(HaveKeyWithValue("edpm_service_name", "agent"), HaveKeyWithValue("edpm_service_image", "agent:1"), HaveKeyWithValue("ansible_host", "10.0.0.000")))
		Expect(first.Files).To(BeEmpty(), "a class without configuration has no files")
		w.condition(w.class("agent"), edpmv1.ServicesReadyCondition, "True/Ready/", "12/12 nodes")
		Eventually(func(g Gomega) {
			g.Expect(get(g, w.class("agent")).Status).To(And(HaveField("Nodes", int32(12)), HaveField("ReadyNodes", int32(12))))
		}).Should(Succeed())
		owner := metav1.GetControllerOf(get(Default, w.service("agent", "n000")))
		Expect(owner.Kind + "/" + owner.Name).To(Equal("OpenStackDataPlaneNode/n000"))
		w.exactlyOnce()

		By("leaving an idle cluster alone, and another manager, too")
		w.quiet()
		w.resync()
		Expect(w.wire.Since(0)).To(BeEmpty(), "what a resync writes")
		w.exactlyOnce()
	})

	It("selects nodes by their own annotation or that of their role, and false opts out", func() {
		w := newPlane("agent")
		w.make(w.role("plain").Obj(), MakeServiceClass("agent", w.ns).Obj(),
			MakeNode("by-role", w.ns).Role("edge").Obj(),
			MakeNode("out", w.ns).Role("edge").Annotation("example.org/agent", "false").Obj(),
			MakeNode("itself", w.ns).Role("plain").Annotation("example.org/agent", "yes").Obj(),
			MakeNode("none", w.ns).Role("plain").Obj())
		w.servicesReady("agent", "by-role", "itself")
		w.nodesReady("out", "none")
		Consistently(w.services).Should(ConsistOf("agent-by-role", "agent-itself"))

		By("opting out afterwards: the service is removed from the host")
		annotate(w.node("by-role"), "example.org/agent", "false")
		gone(w.service("agent", "by-role"))
		Expect(w.steps("by-role")).To(Equal([]string{"install-os", "agent", "agent-cleanup"}))
		Eventually(w.onNode("by-role")).Should(BeEmpty())

		By("opting in again")
		annotate(w.node("by-role"), "example.org/agent", "true")
		w.servicesReady("agent", "by-role")
		Expect(w.times("by-role", "agent")).To(Equal(2))
	})

	It("waits for its services before it is Ready for a change", func() {
		w := newPlane("agent")
		w.make(MakeServiceClass("agent", w.ns).Obj(), MakeNode("n", w.ns).Role("edge").Obj())
		w.servicesReady("agent", "n")
		w.condition(w.class("agent"), condition.ReadyCondition, "True/Ready/")
		release := w.wire.hold(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/edpmservices/") })
		DeferCleanup(release)
		change(w.class("agent"), func(c *edpmv1.EDPMServiceClass) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = True\n" })
		w.condition(w.class("agent"), edpmv1.ServicesReadyCondition, "False/ServicesNotReady/Info", "0/1 nodes")
		release()
		w.condition(w.class("agent"), condition.ReadyCondition, "True/Ready/")
		Expect(w.times("n", "agent")).To(Equal(2))
	})

	It("affects no other namespace", func() {
		w := newPlane("agent")
		other := newPlane()
		other.make(MakeServiceClass("agent", other.ns).Obj())
		w.make(MakeNode("n", w.ns).Role("edge").Obj())
		w.nodesReady("n")
		Consistently(w.services).Should(BeEmpty())
		Expect(w.steps("n")).To(Equal([]string{"install-os"}))
	})

	It("shares nothing with another one on the same node but the order", func() {
		w := newPlane("first", "second")
		ill := w.sick(map[string]fakekube.Outcome{"n000/first": fakekube.Failed})
		w.make(MakeServiceClass("first", w.ns).Vars(`{"own": "1"}`).Obj(), MakeServiceClass("second", w.ns).After("first").Obj(), MakeServiceClass("third", w.ns).Obj())
		annotate(w.role("edge").Obj(), "example.org/third", "true")
		w.makeNodes(2, "edge")
		w.servicesReady("third", "n000", "n001")
		w.servicesReady("second", "n001")
		w.condition(w.service("first", "n000"), condition.DeploymentReadyCondition, "False/Failed/Warning")
		w.halted(w.service("second", "n000"), edpmv1.PrecedingServicesReadyCondition, edpmv1.PrecedingNotReadyReason, "Waiting for service first of OpenStackDataPlaneNode n000")
		Expect(w.times("n000", "second")).To(BeZero())
		Expect(w.did("n001", "second")[0].Vars).NotTo(HaveKey("own"))
		ill.heal("n000/first")
		w.servicesReady("second", "n000")
		for _, n := range []string{"n000", "n001"} {
			steps := w.steps(n)
			Expect(steps).To(ContainElement("third"))
			Expect(indexOf(steps, "first")).To(BeNumerically("<", indexOf(steps, "second")))
		}
		Expect(w.hosts.Overlaps()).To(BeEmpty())
	})

	It("waits for a service that the node does not have, and names it", func() {
		w := newPlane("agent")
		w.make(MakeServiceClass("agent", w.ns).After("nova").Obj(), MakeNode("n", w.ns).Role("edge").Obj())
		w.halted(w.service("agent", "n"), edpmv1.PrecedingServicesReadyCondition, edpmv1.PrecedingMissingReason, "service nova, which OpenStackDataPlaneNode n does not have", "spec.after of EDPMServiceClass agent")
		change(w.class("agent"), func(c *edpmv1.EDPMServiceClass) { c.Spec.After = nil })
		w.servicesReady("agent", "n")
	})

	It("reports that it comes after itself through another one, and heals", func() {
		w := newPlane("a", "b")
		w.make(MakeServiceClass("a", w.ns).After("b").Obj(), MakeServiceClass("b", w.ns).After("a").Obj(), MakeNode("n", w.ns).Role("edge").Obj())
		w.condition(w.class("a"), condition.InputReadyCondition, "False/AfterCycle/Error", "a comes after b comes after a")
		w.halted(w.service("b", "n"), edpmv1.PrecedingServicesReadyCondition, edpmv1.AfterCycleReason, "b comes after a comes after b")
		change(w.class("a"), func(c *edpmv1.EDPMServiceClass) { c.Spec.After = nil })
		w.servicesReady("a", "n")
		w.servicesReady("b", "n")
		w.condition(w.class("b"), condition.InputReadyCondition, "True/Ready/")
	})

	It("gives its files and both customServiceConfigs, and runs once for each change of them", func() {
		w := newPlane("agent")
		w.make(MakeSecret("peer", w.ns, "password", "s3cret"), MakeConfigMap("settings", w.ns, "agent.conf", "a = 1\n"))
		w.make(MakeServiceClass("agent", w.ns).Config("[DEFAULT]\ndebug = false\n").SecretFile("peer.txt", "peer", "password").ConfigMapFile("agent.conf", "settings").Obj())
		w.make(MakeNode("n000", w.ns).Role("edge").Host("10.0.0.1").Obj(), MakeNode("n001", w.ns).Role("edge").Host("10.0.0.2").Obj())
		w.servicesReady("agent", "n000", "n001")
		files := func() map[string]string { d := w.did("n000", "agent"); return d[len(d)-1].Files }
		want := map[string]string{"01-agent.conf": "[DEFAULT]\ndebug = false\n", "peer.txt": "s3cret", "agent.conf": "a = 1\n"}
		Expect(files()).To(Equal(want))

		By("overriding it on one node")
		change(w.service("agent", "n000"), func(s *edpmv1.EDPMService) { s.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		Eventually(func() int { return w.times("n000", "agent") }).Should(Equal(2))
		want["02-agent-override.conf"] = "[DEFAULT]\ndebug = true\n"
		Expect(files()).To(Equal(want))

		By("changing the content of the Secret and of the ConfigMap")
		w.servicesReady("agent", "n000")
		w.setSecret("peer", "password", "other")
		Eventually(func() []int { return []int{w.times("n000", "agent"), w.times("n001", "agent")} }).Should(Equal([]int{3, 2}))
		w.setConfigMap("settings", "agent.conf", "a = 2\n")
		Eventually(func() []int { return []int{w.times("n000", "agent"), w.times("n001", "agent")} }).Should(Equal([]int{4, 3}))
		Expect(files()).To(And(HaveKeyWithValue("peer.txt", "other"), HaveKeyWithValue("agent.conf", "a = 2\n")))
		w.servicesReady("agent", "n000", "n001")
		w.nothingRuns()
		w.exactlyOnce()
		Expect(asText(get(Default, w.service("agent", "n000")))).NotTo(ContainSubstring("s3cret"))
	})

	It("runs exactly once on each host for each change", func() {
		w := newWorld(patient).withPlane("agent")
		w.make(MakeServiceClass("agent", w.ns).Obj())
		names := w.makeNodes(6, "edge")
		w.servicesReady("agent", names...)
		change(w.class("agent"), func(c *edpmv1.EDPMServiceClass) { c.Spec.Image = "agent:2" })
		for _, n := range names {
			Eventually(func() int { return w.times(n, "agent") }).Should(Equal(2))
			Expect(w.did(n, "agent")[1].Vars).To(HaveKeyWithValue("edpm_service_image", "agent:2"))
		}
		w.servicesReady("agent", names...)
		w.nothingRuns()
		Expect(w.runsOf("agent")).To(BeNumerically("<=", 4), "hosts of a role share their runs")
		w.exactlyOnce()
	})

	It("names what it lacks, and continues when that exists", func() {
		w := newPlane("agent")
		w.make(MakeServiceClass("agent", w.ns).SecretFile("peer.txt", "peer", "password").Obj(), MakeNode("n", w.ns).Role("edge").Obj())
		w.halted(w.service("agent", "n"), edpmv1.ServiceClassReadyCondition, common.SecretMissingReason, `Secret "peer" does not exist`)
		w.condition(w.class("agent"), condition.InputReadyCondition, "False/SecretMissing/Warning", `Secret "peer" does not exist`)
		w.make(MakeSecret("peer", w.ns, "other", "x"))
		w.halted(w.service("agent", "n"), edpmv1.ServiceClassReadyCondition, common.SecretKeyMissingReason, `Secret "peer" has no key "password"`)
		w.setSecret("peer", "password", "p")
		w.servicesReady("agent", "n")
		w.condition(w.class("agent"), condition.InputReadyCondition, "True/Ready/")
	})

	It("rolls out by its own strategy, and runs nothing with deploy false", func() {
		w := newPlane("agent")
		class := MakeServiceClass("agent", w.ns).Obj()
		class.Spec.DeployStrategy = edpmv1.ServiceDeployStrategy{Deploy: ptr.To(false), BatchSize: ptr.To[int32](2)}
		w.make(class)
		names := w.makeNodes(6, "edge")
		w.halted(w.service("agent", "n000"), condition.DeploymentReadyCondition, "DeployDisabled")
		w.nothingRuns()
		change(class, func(c *edpmv1.EDPMServiceClass) { c.Spec.DeployStrategy.Deploy = nil })
		w.servicesReady("agent", names...)
		for _, r := range w.runs() {
			if r.Spec.Service == "agent" {
				Expect(len(r.Spec.Targets)).To(BeNumerically("<=", 2))
			}
		}
		w.exactlyOnce()
	})

	It("stays while nodes have its service, counts them, and says how to proceed", func() {
		w := newPlane("agent")
		w.make(MakeServiceClass("agent", w.ns).Obj())
		names := w.makeNodes(3, "edge")
		w.servicesReady("agent", names...)
		remove(w.class("agent"))
		w.condition(w.class("agent"), edpmv1.ServicesReadyCondition, "False/ServiceClassInUse/Warning", "3 nodes have the service: n000, n001, n002", "Remove annotation example.org/agent", `"false"`)
		w.make(MakeNode("late", w.ns).Role("edge").Obj())
		w.nodesReady("late")
		Consistently(w.services).Should(HaveLen(3), "a class that ends gets no further node")
		w.nothingRuns()

		annotate(w.role("edge").Obj(), "example.org/agent", "false")
		gone(w.class("agent"))
		for _, n := range names {
			Expect(w.times(n, "agent-cleanup")).To(Equal(1))
			Expect(w.did(n, "agent-cleanup")[0].Vars).To(HaveKeyWithValue("edpm_service_name", "agent"))
			gone(w.service("agent", n))
		}
		w.exactlyOnce()
	})

	It("gives no node its service before it has its finalizer", func() {
		w := newPlane("agent")
		resume := w.wire.hold(at("/edpmserviceclasses/agent"))
		DeferCleanup(resume)
		mine := w.service("agent", "mine")
		w.make(MakeServiceClass("agent", w.ns).Obj(), MakeNode("n", w.ns).Role("edge").Obj(), MakeNode("mine", w.ns).Role("edge").Host("10.0.0.2").Obj(), mine)
		w.nodesReady("n", "mine")
		Consistently(func(g Gomega) {
			g.Expect(w.services(g)).To(ConsistOf("agent-mine"))
			g.Expect(metav1.GetControllerOf(get(g, mine))).To(BeNil())
		}).Should(Succeed(), "the class could be deleted at once, and no one would know how the service is removed")
		w.nothingRuns()
		resume()
		w.servicesReady("agent", "n", "mine")
		w.exactlyOnce()
	})

	It("disappears at once when no node uses it", func() {
		w := newPlane()
		w.make(MakeServiceClass("agent", w.ns).Obj())
		w.condition(w.class("agent"), edpmv1.ServicesReadyCondition, "True/Ready/", "No node or role has annotation example.org/agent")
		remove(w.class("agent"))
		gone(w.class("agent"))
	})
})

// indexOf is the place of a word, past the end if it is not there.
func indexOf(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return len(words)
}

var _ = Describe("The service of a class on a node", func() {
	It("leaves the host when its node is deleted", func() {
		w := newPlane("agent", "other")
		w.make(MakeServiceClass("agent", w.ns).Obj(), MakeServiceClass("other", w.ns).Obj(), MakeNode("n", w.ns).Role("edge").Obj())
		w.servicesReady("agent", "n")
		w.servicesReady("other", "n")
		release := w.hosts.Hold()
		DeferCleanup(release)
		remove(w.node("n"))
		w.halted(w.node("n"), condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason, "EDPMService/agent-n", "EDPMService/other-n")
		release()
		gone(w.node("n"))
		gone(w.service("agent", "n"))
		Expect(w.times("n", "agent-cleanup")).To(Equal(1))
		Expect(w.times("n", "other-cleanup")).To(Equal(1))
		w.exactlyOnce()
	})

	It("says what is left on a host that cannot be cleaned up, and how to skip that", func() {
		w := newPlane("agent")
		class := MakeServiceClass("agent", w.ns).Obj()
		class.Spec.Leftovers = "unit edpm_agent, and /var/lib/agent"
		w.make(class, MakeNode("n", w.ns).Role("edge").Obj())
		w.servicesReady("agent", "n")
		w.sick(map[string]fakekube.Outcome{"n": fakekube.Unreachable})
		remove(w.node("n"))
		w.halted(w.service("agent", "n"), condition.DeploymentReadyCondition, hostedv1.CleanupFailedReason, "Cannot clean up host n", "Left on it: unit edpm_agent, and /var/lib/agent", "edpm.openstack.org/skip-cleanup")
		annotate(w.service("agent", "n"), common.SkipCleanupAnnotation, "true")
		gone(w.node("n"))
	})

	It("keeps the configuration of an object that a user created before", func() {
		w := newPlane()
		mine := w.service("agent", "n")
		mine.Spec.CustomServiceConfig = "[DEFAULT]\nmine = 1\n"
		w.make(MakeServiceClass("agent", w.ns).Obj(), MakeNode("n", w.ns).Role("edge").Obj(), mine)
		w.halted(mine, condition.InputReadyCondition, hostedv1.AnnotationMissingReason, "set annotation example.org/agent")
		annotate(w.role("edge").Obj(), "example.org/agent", "true")
		w.servicesReady("agent", "n")
		Expect(w.did("n", "agent")).To(HaveLen(1))
		Expect(w.did("n", "agent")[0].Files).To(Equal(map[string]string{"02-agent-override.conf": "[DEFAULT]\nmine = 1\n"}))
		Expect(get(Default, mine).Spec.CustomServiceConfig).To(Equal("[DEFAULT]\nmine = 1\n"))
	})

	It("is not run with the name of another one", func() {
		w := newPlane("agent")
		w.make(MakeServiceClass("agent", w.ns).Config("[DEFAULT]\nhost = of-the-class\n").Obj(), MakeNode("n", w.ns).Role("edge").Obj())
		w.servicesReady("agent", "n")
		change(w.service("agent", "n"), func(s *edpmv1.EDPMService) { s.Spec.CustomServiceConfig = "[DEFAULT]\nhost = other\n" })
		w.halted(w.service("agent", "n"), condition.ServiceConfigReadyCondition, hostedv1.InvalidConfigReason, "spec.customServiceConfig: line 2: [DEFAULT] host", "EDPMServiceClass")
		w.calm()
		Expect(w.times("n", "agent")).To(Equal(1))
	})

	It("reports a conflict and stays as it is when it belongs to another object", func() {
		w := newPlane()
		foreign := w.service("agent", "n")
		foreign.OwnerReferences = ownedBy("somebody", "1", "v1", "ConfigMap")
		w.make(MakeServiceClass("agent", w.ns).Obj(), MakeNode("n", w.ns).Role("edge").Obj(), foreign)
		annotate(w.role("edge").Obj(), "example.org/agent", "true")
		Eventually(func(g Gomega) {
			g.Expect(get(g, w.node("n")).Status.Services).To(ConsistOf(And(HaveField("Name", "agent"), HaveField("Ready", false), HaveField("Message", ContainSubstring("ConfigMap")))))
		}).Should(Succeed())
		w.nodesReady("n")
		w.nothingRuns()
		Expect(w.times("n", "agent")).To(BeZero())
		Expect(get(Default, foreign).OwnerReferences).To(HaveLen(1))
	})

	It("runs nothing under a name that its class and node do not make, and names the right one", func() {
		w := newPlane("agent")
		odd := w.service("agent", "n")
		odd.Name = "odd"
		w.make(MakeServiceClass("agent", w.ns).Obj(), odd, MakeNode("n", w.ns).Role("edge").Obj())
		w.servicesReady("agent", "n")
		w.halted(odd, condition.InputReadyCondition, hostedv1.InvalidSpecReason, `metadata.name must be "agent-n"`)
		Expect(w.times("n", "agent")).To(Equal(1))
	})

	It("waits for a missing class, also to be removed", func() {
		w := newPlane("agent")
		w.make(MakeNode("n", w.ns).Role("edge").Obj(), w.service("agent", "n"))
		w.halted(w.service("agent", "n"), edpmv1.ServiceClassReadyCondition, edpmv1.ClassMissingReason, `EDPMServiceClass "agent" does not exist`)
		w.make(MakeServiceClass("agent", w.ns).Obj())
		w.servicesReady("agent", "n")

		By("losing the class by force")
		class := get(Default, w.class("agent"))
		remove(class)
		Expect(api.Patch(ctx, class, jsonPatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		gone(class)
		remove(w.node("n"))
		w.halted(w.service("agent", "n"), condition.DeploymentReadyCondition, hostedv1.CleanupFailedReason, `EDPMServiceClass "agent", which says how, does not exist`, "skip-cleanup")
		w.make(MakeServiceClass("agent", w.ns).Obj())
		gone(w.node("n"))
		Expect(w.times("n", "agent-cleanup")).To(Equal(1))
	})

	It("runs again with a token on its node, and alone with its own", func() {
		w := newPlane("agent", "other")
		w.make(MakeServiceClass("agent", w.ns).Obj(), MakeServiceClass("other", w.ns).Obj(), MakeNode("n", w.ns).Role("edge").Obj())
		w.servicesReady("agent", "n")
		w.servicesReady("other", "n")
		annotate(w.service("agent", "n"), common.RerunAnnotation, "1")
		Eventually(func() int { return w.times("n", "agent") }).Should(Equal(2))
		annotate(w.node("n"), common.RerunAnnotation, "2")
		Eventually(func() int { return w.times("n", "other") }).Should(Equal(2))
		w.servicesReady("other", "n")
		Expect(w.times("n", "agent")).To(Equal(2), "its own token wins")
	})

	It("runs a class that bypassed admission only as admission would allow it", func() {
		w := newPlane("agent")
		class := MakeServiceClass("agent", w.ns).Vars(`{"ansible_connection": "local"}`).Obj()
		w.make(class, MakeNode("n", w.ns).Role("edge").Obj())
		w.halted(w.service("agent", "n"), edpmv1.ServiceClassReadyCondition, edpmv1.InvalidClassReason, "ansible_connection")
		w.condition(w.class("agent"), condition.InputReadyCondition, "False/InvalidServiceClass/Error", "ansible_connection")
		Expect(w.times("n", "agent")).To(BeZero())
	})

	It("waits for nova when its class names it", func() {
		w := newCloud()
		w.make(w.role("compute").Cell("cell1").Annotation("example.org/agent", "true").Obj(), MakeServiceClass("agent", w.ns).After("nova").Obj())
		w.makeNodes(2, "compute")
		w.servicesReady("agent", "n000", "n001")
		Expect(w.steps("n000")).To(Equal([]string{"install-os", "libvirt", "nova", "agent"}))
		Eventually(w.onNode("n000")).Should(Equal(map[string]bool{"nova": true, "agent": true}))
		w.exactlyOnce()
	})
})
