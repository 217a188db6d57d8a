package controllers_test

import (
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// sick decides by a table of hosts, which can be changed while runs continue.
type sick struct {
	mu    sync.Mutex
	hosts map[string]fakekube.Outcome
}

func (w *world) sick(hosts map[string]fakekube.Outcome) *sick {
	s := &sick{hosts: hosts}
	w.hosts.Decide(func(host, step string) fakekube.Outcome {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, key := range []string{host + "/" + step, host} {
			if o, ok := s.hosts[key]; ok {
				return o
			}
		}
		return fakekube.OK
	})
	return s
}

func (s *sick) heal(hosts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hosts {
		delete(s.hosts, h)
	}
}

// patient gives hosts that come together three times as long as in production: the
// machine that runs the tests may stand still for longer than a second. What failed is
// tried again as soon as in the other tests.
func patient(o *controllers.Options) {
	o.Engine.Debounce, o.Engine.Patience = 3*edpm.DefaultOptions().Debounce, edpm.DefaultOptions().Patience
}

var _ = Describe("A rollout", func() {
	It("runs the services of the role in order, and then libvirt and nova", func() {
		w := newCloud()
		w.make(MakeRole("compute", w.ns).SSHKey("ssh-key").Cell("cell1").Obj())
		w.makeNodes(2, "compute")
		w.computesReady(nodeNames(2)...)
		want := append(slices.Clone(dataplanev1.DefaultServices), "libvirt", "nova")
		for _, n := range nodeNames(2) {
			Expect(w.steps(n)).To(Equal(want), "of %s", n)
			node := get(Default, w.node(n))
			for _, s := range dataplanev1.DefaultServices {
				Expect(node.Status.Hash).To(HaveKey(s))
			}
			Eventually(w.entry).WithArguments(n).Should(Equal(dataplanev1.NodeServiceStatus{Name: "nova", Ready: true, Kind: "NovaExternalCompute", ObjectName: n}))
		}
		w.exactlyOnce()
	})

	It("runs services that users define, with their playbooks and files", func() {
		w := newCloud()
		own := MakeService("own", w.ns)
		own.Spec.ConfigMaps, own.Spec.Secrets = []string{"files"}, []string{"more"}
		inline := MakeService("inline", w.ns)
		inline.Spec.Playbook, inline.Spec.Play, inline.Spec.OpenStackAnsibleEERunnerImage = "", "- hosts: all\n  tasks: []\n", "mine:1"
		w.make(own, inline, MakeConfigMap("files", w.ns, "a.conf", "text"), MakeSecret("more", w.ns, "b.conf", "secret"))
		w.make(w.role("r").Services("own", "install-os", "inline").Obj(), MakeNode("n", w.ns).Role("r").Obj())
		w.nodesReady("n")
		Expect(w.steps("n")).To(Equal([]string{"own", "install-os", "inline"}))
		Expect(w.did("n", "own")[0].Files).To(Equal(map[string]string{"a.conf": "text", "b.conf": "secret"}))
		runs := map[string]ansibleeev1.OpenStackAnsibleEE{}
		for _, r := range w.runs() {
			runs[r.Spec.Step] = r
		}
		Expect(runs).To(HaveLen(2), "a playbook that is a text has its own run")
		Expect(runs["own,install-os"].Spec.Steps[0].Playbook).To(Equal("example.services.own"))
		Expect(runs["inline"].Spec.PlaybookContents).To(Equal(inline.Spec.Play))
		Expect(runs["inline"].Spec.Image).To(Equal("mine:1"))
	})

	It("starts phase 1 only after the node is Ready", func() {
		w := newCloud()
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.compute("n"), novav1.DataPlaneNodeReadyCondition, novav1.NodeNotReadyReason, "Waiting for OpenStackDataPlaneNode n")
		w.halted(w.node("n"), condition.DeploymentReadyCondition, condition.Reason(edpm.Running), "Step install-os is running in")
		Consistently(func() []string { return w.steps("n") }).ShouldNot(ContainElement("libvirt"))
		release()
		w.computesReady("n")
		Expect(w.steps("n")).To(Equal([]string{"install-os", "libvirt", "nova"}))
	})

	It("stops phase 1 again while phase 0 is repeated", func() {
		w := newCloud()
		ill := w.sick(map[string]fakekube.Outcome{"n/nova": fakekube.Failed})
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.compute("n"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		release := w.hosts.Hold()
		DeferCleanup(release)
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = JSON(`{"x": 1}`) })
		w.condition(w.compute("n"), novav1.DataPlaneNodeReadyCondition, "False/DataPlaneNodeNotReady/Info")
		before := w.times("n", "nova")
		time.Sleep(2 * time.Second) // longer than its next attempt is away
		Expect(w.times("n", "nova")).To(BeNumerically("<=", before+1), "its next attempt was taken back")
		ill.heal("n/nova")
		release()
		w.computesReady("n")
	})

	It("creates one run for phase 0 and one for phase 1 of 40 nodes that are created at once", func() {
		w := newCloud(patient)
		w.makeTogether(MakeRole("compute", w.ns).SSHKey("ssh-key").Cell("cell1").Services("install-os", "run-os").Obj(), 40)
		w.computesReady(nodeNames(40)...)
		steps := map[string]int{}
		for _, r := range w.runs() {
			steps[r.Spec.Step]++
			Expect(r.Status.HostsSummary).To(Equal("40/40"))
		}
		Expect(steps).To(Equal(map[string]int{"install-os,run-os": 1, "libvirt,nova": 1}))
		w.exactlyOnce()
	})

	It("creates four runs of each step for 40 nodes in batches of 10", func() {
		w := newCloud(patient)
		w.makeTogether(w.role("compute").BatchSize(10).Obj(), 40)
		w.nodesReady(nodeNames(40)...)
		var sizes []int
		for _, r := range w.runs() {
			sizes = append(sizes, len(r.Spec.Targets))
		}
		Expect(sizes).To(Equal([]int{10, 10, 10, 10}))
		w.exactlyOnce()
	})

	It("continues without hosts that fail or do not answer, which recover when fixed", func() {
		w := newCloud(patient)
		ill := w.sick(map[string]fakekube.Outcome{"n001": fakekube.Failed, "n002": fakekube.Unreachable})
		w.makeTogether(w.role("compute").BatchSize(4).Cell("cell1").Obj(), 4)
		w.computesReady("n000", "n003")
		w.halted(w.node("n001"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed), "Step install-os failed in compute-install-os-", "task Configure: boom on n001", "next at ")
		w.condition(w.node("n001"), dataplanev1.ProvisionReadyCondition, "True/Ready/", "The host answers")
		w.halted(w.node("n002"), dataplanev1.ProvisionReadyCondition, dataplanev1.HostUnreachableReason, "no route to host")
		Expect(w.hosts.Book()[:4]).To(HaveEach(HaveField("Job", w.hosts.Book()[0].Job)), "the four should have been in one run")

		By("showing further attempts")
		third := MatchRegexp(`attempt ([3-9]|\d\d)`)
		w.reads(w.node("n001"), condition.DeploymentReadyCondition, "False/Failed/Warning", third)
		w.reads(w.node("n002"), dataplanev1.ProvisionReadyCondition, "False/HostUnreachable/Warning", third)
		Eventually(func() []string { return w.events("n001") }).Should(ContainElement(ContainSubstring("Warning Failed")))
		Eventually(func() []string { return w.events("n002") }).Should(ContainElement(ContainSubstring("Warning HostUnreachable")))
		Expect(w.repeated("n001", "n002")).To(BeEmpty(), "only the first attempt is reported")
		retry := func(g Gomega) *metav1.Time { return get(g, w.node("n001")).Status.NextRetry }
		Eventually(retry).ShouldNot(BeNil())
		Expect(w.times("n000", "install-os")).To(Equal(1), "the failures of others are not its own")

		By("fixing them")
		ill.heal("n001", "n002")
		w.computesReady("n001", "n002")
		Eventually(retry).Should(BeNil())
		for _, n := range nodeNames(4) {
			ok := 0
			for _, e := range w.did(n, "install-os") {
				if e.Outcome == fakekube.OK {
					ok++
				}
			}
			Expect(ok).To(Equal(1), "successes of install-os on %s", n)
		}
		Expect(w.hosts.Overlaps()).To(BeEmpty())
	})

	It("does not try again what the same inputs lead to each time, before they change or a person asks for it", func() {
		w := newCloud()
		ill := w.sick(map[string]fakekube.Outcome{"n/nova": fakekube.Refused})
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		refusals := func(times int) {
			GinkgoHelper()
			Eventually(func() int { return w.times("n", "nova") }).Should(Equal(times))
			w.condition(w.compute("n"), condition.DeploymentReadyCondition, "False/Refused/Error",
				"Step nova was refused in", "is tried again when its inputs change: task Configure: no such option")
			w.calm()
			w.restart()
			w.calm()
			Expect(w.times("n", "nova")).To(Equal(times))
		}
		refusals(1)
		Expect(get(Default, w.compute("n")).Status.NextRetry).To(BeNil())
		annotate(w.compute("n"), common.RerunAnnotation, "again")
		refusals(2)
		change(w.compute("n"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		refusals(3)
		ill.heal("n/nova")
		change(w.compute("n"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "" })
		w.computesReady("n")
	})

	It("takes a host over that was refused for the services of another tool once its node names that tool", func() {
		w := newCloud()
		ill := w.sick(map[string]fakekube.Outcome{"n/libvirt": fakekube.Refused})
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.condition(w.compute("n"), condition.DeploymentReadyCondition, "False/Refused/Error", "Step libvirt was refused in")
		annotate(w.node("n"), common.TakeOverAnnotation, "puppet")
		w.halted(w.node("n"), condition.InputReadyCondition, dataplanev1.InvalidSpecReason, `metadata.annotations[edpm.openstack.org/take-over]: Unsupported value: "puppet": supported values: "edpm-ansible", "kolla-ansible", "packages"`)
		w.calm()
		Expect(w.times("n", "libvirt")).To(Equal(1))
		ill.heal("n/libvirt")
		annotate(w.node("n"), common.TakeOverAnnotation, "packages")
		w.computesReady("n")
		Expect(w.times("n", "libvirt")).To(Equal(2))
	})

	DescribeTable("retries when the result of a host is unknown",
		func(outcome fakekube.Outcome, message string) {
			w := newCloud()
			ill := w.sick(map[string]fakekube.Outcome{"n": outcome})
			w.make(w.role("compute").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
			w.halted(w.node("n"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed), "the run ended without a result for this host", message)
			ill.heal("n")
			w.nodesReady("n")
		},
		Entry("because its Pod was killed", fakekube.Killed, "The outcome is unknown: the runner left no recap"),
		Entry("because the recap leaves it out", fakekube.Missing, "The Job failed although no host did"),
	)

	It("runs one host at a time with maxUnavailable 1, and a failed host stops the others", func() {
		w := newCloud(patient)
		ill := w.sick(map[string]fakekube.Outcome{"n001": fakekube.Failed})
		w.hosts.Delay(100 * time.Millisecond)
		w.makeTogether(w.role("compute").MaxUnavailable(1).Obj(), 4)
		w.halted(w.node("n001"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		w.halted(w.node("n002"), condition.DeploymentReadyCondition, condition.Reason(edpm.RolloutHeld), "maxUnavailable is 1")
		Consistently(func() []string { return append(w.steps("n002"), w.steps("n003")...) }).Should(BeEmpty(), "the failed host is the one that may be unavailable")
		ill.heal("n001")
		w.nodesReady(nodeNames(4)...)
		book := w.hosts.Book()
		for i := range book[1:] {
			Expect(book[i+1].Start).To(BeTemporally(">=", book[i].End), "%s and %s should not run together", book[i].Host, book[i+1].Host)
		}
	})

	It("stops for good at the first failure with maxFailures 0, also while it is retried", func() {
		w := newCloud(patient)
		ill := w.sick(map[string]fakekube.Outcome{"n000": fakekube.Failed})
		w.hosts.Delay(200 * time.Millisecond)
		w.make(w.role("compute").BatchSize(1).MaxUnavailable(1).MaxFailures(0).Obj())
		w.makeNodes(1, "compute")
		w.firstRun("install-os") // a full batch waits for no one: any host could be the first
		w.makeMoreNodes(1, 3, "compute")
		w.halted(w.node("n001"), condition.DeploymentReadyCondition, condition.Reason(edpm.RolloutHeld), "maxFailures is 0, and more hosts have failed: n000")
		Eventually(func() int { return w.times("n000", "install-os") }).Should(BeNumerically(">=", 3))
		Expect(append(w.steps("n001"), w.steps("n002")...)).To(BeEmpty())

		By("restarting the manager, which must not forget it")
		w.restart()
		Eventually(func() int { return w.times("n000", "install-os") }).Should(BeNumerically(">=", 5))
		Expect(append(w.steps("n001"), w.steps("n002")...)).To(BeEmpty())

		By("allowing more failures")
		change(w.role("compute").Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Spec.DeployStrategy.MaxFailures, r.Spec.DeployStrategy.MaxUnavailable = ptr.To[int32](1), nil
		})
		w.nodesReady("n001", "n002")
		ill.heal("n000")
		w.nodesReady("n000")
	})

	It("leaves hosts outside ansibleLimit alone, and says so", func() {
		w := newCloud()
		role := w.role("compute").Obj()
		role.Spec.DeployStrategy.AnsibleLimit = "n00[0-1],!n001"
		w.make(role)
		w.makeNodes(3, "compute")
		w.nodesReady("n000")
		for _, n := range []string{"n001", "n002"} {
			w.halted(w.node(n), condition.DeploymentReadyCondition, condition.Reason(edpm.Excluded), "ansibleLimit does not match this host")
		}
		Expect(w.book()).To(Equal(map[string]int{"n000/install-os": 1}))

		By("taking the limit away")
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.AnsibleLimit = "" })
		w.nodesReady(nodeNames(3)...)
		w.exactlyOnce()
	})

	It("runs once when restricted by tags, and never marks a host as converged", func() {
		w := newCloud()
		role := w.role("compute").Cell("cell1").Obj()
		role.Spec.DeployStrategy.AnsibleTags, role.Spec.DeployStrategy.AnsibleSkipTags = "packages", "slow"
		w.make(role)
		w.makeNodes(2, "compute")
		for _, n := range nodeNames(2) {
			w.halted(w.node(n), condition.DeploymentReadyCondition, condition.Reason(edpm.Limited), "remove ansibleTags and ansibleSkipTags")
			Expect(get(Default, w.node(n)).Status.Hash).NotTo(HaveKey("install-os"))
		}
		run := w.runs()[0]
		Expect(run.Spec.AnsibleTags + "/" + run.Spec.AnsibleSkipTags).To(Equal("packages/slow"))
		remove(&run)
		gone(&run)
		w.restart()
		w.quiet()
		Expect(w.book()).To(Equal(map[string]int{"n000/install-os": 1, "n001/install-os": 1}), "neither a restart nor the deletion of the run repeats it")

		By("taking the tags away")
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Spec.DeployStrategy.AnsibleTags, r.Spec.DeployStrategy.AnsibleSkipTags = "", ""
		})
		w.computesReady(nodeNames(2)...)
		Expect(w.times("n000", "install-os")).To(Equal(2))
	})

	It("computes everything with deploy false, runs nothing and says so, and continues when it is true", func() {
		w := newCloud()
		role := w.role("compute").Cell("cell1").Deploy(false).Obj()
		w.make(role, MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), condition.DeploymentReadyCondition, condition.Reason(edpm.Paused), "deploy is false: set deploy to true")
		w.condition(w.node("n"), condition.InputReadyCondition, "True/Ready/")
		Expect(get(Default, MakeConfigMap("dataplanenode-n", w.ns, "", "")).Data["inventory"]).To(ContainSubstring("ansible_host"))
		Eventually(w.computes).Should(HaveKey("n"))
		Expect(get(Default, w.compute("n")).Spec.Deploy).To(Equal(ptr.To(false)))
		w.nothingRuns()
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = nil })
		w.computesReady("n")

		By("pausing a node that has converged, and changing it")
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.Deploy = ptr.To(false) })
		w.nodesReady("n") // there is nothing to be done
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = JSON(`{"x": 1}`) })
		w.halted(w.node("n"), condition.DeploymentReadyCondition, condition.Reason(edpm.Paused))
		w.nothingRuns()
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.Deploy = ptr.To(true) })
		w.computesReady("n")
		w.exactlyOnce()
	})

	It("runs again once for each new rerun token, on the node, its role or its compute", func() {
		w := newCloud()
		role := w.role("compute").Cell("cell1").Obj()
		w.make(role)
		w.makeNodes(2, "compute")
		w.computesReady(nodeNames(2)...)
		all := func(n000, n001 int) map[string]int {
			out := map[string]int{}
			for _, s := range []string{"install-os", "libvirt", "nova"} {
				out["n000/"+s], out["n001/"+s] = n000, n001
			}
			return out
		}
		annotate(w.node("n000"), common.RerunAnnotation, "A")
		Eventually(w.book).Should(Equal(all(2, 1)), "the token of a node is that of its services too")
		w.computesReady(nodeNames(2)...)
		annotate(role, common.RerunAnnotation, "B")
		Eventually(w.book).Should(Equal(all(2, 2)), "the token of the node wins over that of the role")
		w.computesReady(nodeNames(2)...)
		annotate(w.compute("n001"), common.RerunAnnotation, "C")
		want := all(2, 2)
		want["n001/libvirt"], want["n001/nova"] = 3, 3
		Eventually(w.book).Should(Equal(want), "the token of a compute is its own")
		w.computesReady(nodeNames(2)...)

		By("taking the token of the node back, and then all of them")
		change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Annotations = nil })
		w.nothingRuns()
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { delete(r.Annotations, common.RerunAnnotation) })
		change(w.compute("n001"), func(c *novav1.NovaExternalCompute) { delete(c.Annotations, common.RerunAnnotation) })
		w.nothingRuns()
		w.computesReady(nodeNames(2)...)
		Expect(w.book()).To(Equal(want), "no token asks for nothing")
	})
})
