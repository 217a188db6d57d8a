package controllers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// consistent expects that what the ledgers say is what is on the hosts: the last
// run that reached the host went well and was for the hash of the ledger.
func (w *world) consistent(names ...string) {
	GinkgoHelper()
	last := map[string]fakekube.Execution{}
	for _, e := range w.hosts.Book() {
		if e.Outcome != fakekube.Unreachable && !e.Check {
			last[e.Host+"/"+e.Step] = e
		}
	}
	for _, n := range names {
		ledger := map[string]string{}
		for step, hash := range get(Default, w.node(n)).Status.Hash {
			ledger[step] = hash
		}
		compute := w.compute(n)
		if client.IgnoreNotFound(api.Get(ctx, client.ObjectKeyFromObject(compute), compute)) == nil {
			for step, hash := range compute.Status.Hash {
				ledger[step] = hash
			}
		}
		Expect(ledger).NotTo(BeEmpty(), "the ledger of %s", n)
		for step, hash := range ledger {
			e := last[n+"/"+step]
			Expect(string(e.Outcome)+" "+e.Hash).To(Equal("ok "+hash), "the last run of %s on %s", step, n)
		}
	}
	Expect(w.hosts.Overlaps()).To(BeEmpty(), "a host should be in one run at a time")
}

// firstRun waits for a run of the step.
func (w *world) firstRun(step string) *ansibleeev1.OpenStackAnsibleEE {
	GinkgoHelper()
	var found *ansibleeev1.OpenStackAnsibleEE
	Eventually(func() *ansibleeev1.OpenStackAnsibleEE {
		for _, r := range w.runs() {
			if slices.Contains(r.StepNames(), step) {
				found = &r
			}
		}
		return found
	}).ShouldNot(BeNil(), "a run of %s should be started", step)
	return found
}

// eachDeath tells a story in which the manager dies at a write that is drawn: few times, each
// time the suite runs others, or many times with E2E_LONG=1.
func eachDeath(few, many int, tell func(rng *rand.Rand)) {
	if inFull {
		few = many
	}
	for death := range few {
		It(fmt.Sprintf("(death %d)", death), func() { tell(rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(death)))) })
	}
}

var _ = Describe("The engine", func() {
	It("configures a host once per hash even if the manager restarts at ten random moments", func() {
		rng := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 1))
		w := newCloud()
		w.hosts.Delay(150 * time.Millisecond)
		w.make(w.role("compute").Services("install-os", "configure-os", "run-os").BatchSize(5).Cell("cell1").Obj())
		names := w.makeNodes(12, "compute")
		for range 10 {
			time.Sleep(time.Duration(rng.IntN(600)) * time.Millisecond)
			w.restart()
		}
		w.computesReady(names...)
		w.exactlyOnce()
		w.consistent(names...)
	})

	Context("configures a host once per hash even if the manager dies at any write", func() {
		eachDeath(4, 16, func(rng *rand.Rand) {
			w := newCloud()
			w.running.end()
			at, answered := 1+rng.IntN(60), rng.IntN(2) == 0
			By(fmt.Sprintf("dying at write %d, answered: %v, in %s", at, answered, w.ns))
			w.make(w.role("compute").Cell("cell1").Obj())
			names := w.makeNodes(2, "compute")
			w.running = startManager(w.ns, w.opts)
			w.wire.cutAfter(at, answered).orUntil(func(g Gomega) {
				for _, n := range names {
					isReady(g, w.compute(n))
				}
			})
			w.restart()
			w.computesReady(names...)
			w.exactlyOnce()
			w.consistent(names...)
		})
	})

	It("configures a host once per hash in a thousand resyncs", long, func() {
		w := newCloud()
		w.hosts.Delay(50 * time.Millisecond)
		w.make(w.role("compute").Cell("cell1").Obj())
		names := w.makeNodes(10, "compute")
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				defer GinkgoRecover()
				for j := range 250 {
					patch := []byte(fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d-%d"}}}`, i, j))
					obj := client.Object(w.node(names[j%10]))
					if i%2 == 1 {
						obj = w.compute(names[j%10])
					}
					Expect(client.IgnoreNotFound(api.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", patch)))).To(Succeed())
				}
			})
		}
		all.Wait()
		w.computesReady(names...)
		w.restart()
		w.nothingRuns()
		w.computesReady(names...)
		w.exactlyOnce()
	})

	It("configures a host once per hash even if its runs are deleted after they succeeded", func() {
		w := newCloud()
		w.make(w.role("compute").Cell("cell1").Obj())
		names := w.makeNodes(3, "compute")
		w.computesReady(names...)
		for _, r := range w.runs() {
			remove(&r)
		}
		for _, r := range w.runs() {
			gone(&r)
		}
		w.nothingRuns()
		w.restart()
		w.nothingRuns()
		w.computesReady(names...)
		w.exactlyOnce()
	})

	It("keeps nodes Ready without interruption when runs are deleted", func() {
		w := newCloud()
		w.make(w.role("compute").Cell("cell1").Obj())
		names := w.makeNodes(2, "compute")
		w.computesReady(names...)
		w.quiet()
		before := get(Default, w.node("n000")).ResourceVersion
		for _, r := range w.runs() {
			remove(&r)
		}
		for _, r := range w.runs() {
			gone(&r)
		}
		w.quiet()
		Expect(get(Default, w.node("n000")).ResourceVersion).To(Equal(before), "the node should not be written")
	})

	It("configures a host once per hash even if its run is deleted at the moment of success", func() {
		w := newCloud(patient)
		release := w.hosts.Hold()
		names := w.makeTogether(w.role("compute").Obj(), 2)
		run := w.firstRun("install-os")
		Eventually(func() int { return len(w.hosts.Book()) }).Should(Equal(2))
		w.running.end()
		release()
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: run.Name}}
		Eventually(func(g Gomega) []batchv1.JobCondition { return get(g, job).Status.Conditions }).ShouldNot(BeEmpty())
		Expect(get(Default, run).Status.JobStatus).NotTo(Equal(ansibleeev1.JobSucceeded), "no one has read the outcome yet")
		remove(run)
		w.running = startManager(w.ns, w.opts)
		w.nodesReady(names...)
		gone(run)
		w.exactlyOnce()
	})

	It("configures a host once per hash even if its run is deleted between the end of its Pod and that of its Job", func() {
		w := newCloud(patient)
		w.hosts.Lag(5 * time.Second)
		release := w.hosts.Hold()
		names := w.makeTogether(w.role("compute").Obj(), 2)
		run := w.firstRun("install-os")
		Eventually(func() int { return len(w.hosts.Book()) }).Should(Equal(2))
		w.running.end() // which would have known the outcome at once
		release()
		Eventually(func() bool {
			pods := &corev1.PodList{}
			Expect(api.List(ctx, pods, client.InNamespace(w.ns))).To(Succeed())
			return len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodSucceeded
		}).Should(BeTrue())
		remove(run)
		w.running = startManager(w.ns, w.opts)
		w.nodesReady(names...)
		gone(run)
		w.exactlyOnce()
	})

	It("ignores the result of a run that is deleted while it is in progress, and waits for its end", func() {
		w := newCloud(patient)
		release := w.hosts.Hold()
		DeferCleanup(release)
		names := w.makeTogether(w.role("compute").Obj(), 2)
		run := w.firstRun("install-os")
		Eventually(func() int { return len(w.hosts.Book()) }).Should(Equal(2))
		remove(run)
		gone(run)
		release()
		w.nodesReady(names...)
		Expect(w.book()).To(Equal(map[string]int{
			"n000/install-os/cancelled": 1, "n000/install-os": 1, "n001/install-os/cancelled": 1, "n001/install-os": 1,
		}))
		w.consistent(names...)
	})

	It("ignores the result of a Job that is deleted while it is in progress, and starts no other at the same time", func() {
		w := newCloud(patient)
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(w.role("compute").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		run := w.firstRun("install-os")
		Eventually(func() int { return len(w.hosts.Book()) }).Should(Equal(1))
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: run.Name}}
		Expect(api.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed(), "as kubectl does it")
		w.halted(run, ansibleeev1.JobReadyCondition, ansibleeev1.JobLostReason, "was removed before its outcome was read")
		release()
		w.nodesReady("n")
		Expect(w.times("n", "install-os")).To(Equal(2))
		w.consistent("n")
	})

	It("continues after a failed run and its inputs are deleted", func() {
		w := newCloud()
		ill := w.sick(map[string]fakekube.Outcome{"n": fakekube.Unreachable})
		w.make(w.role("compute").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "False/HostUnreachable/Warning", "attempt ")
		for range 3 {
			for _, r := range w.runs() {
				Expect(client.IgnoreNotFound(api.Delete(ctx, &r))).To(Succeed())
			}
			time.Sleep(200 * time.Millisecond)
		}
		ill.heal("n")
		w.nodesReady("n")
		w.consistent("n")
	})

	It("undoes a change that was taken back during its run, and one that failed, but not one that never arrived", func() {
		w := newCloud()
		ill := w.sick(map[string]fakekube.Outcome{})
		w.make(w.role("compute").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.nodesReady("n")
		vars := func(text string) {
			change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = JSON(text) })
		}
		By("taking a change back during its run")
		release := w.hosts.Hold()
		vars(`{"x": 1}`)
		Eventually(func() int { return w.times("n", "install-os") }).Should(Equal(2))
		vars(`{}`)
		w.halted(w.node("n"), condition.DeploymentReadyCondition, condition.Reason(edpm.Running))
		release()
		w.nodesReady("n")
		Expect(w.times("n", "install-os")).To(Equal(3))
		w.consistent("n")

		By("taking a change back that never arrived")
		ill.hosts["n"] = fakekube.Unreachable
		vars(`{"x": 2}`)
		w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "False/HostUnreachable/Warning")
		vars(`{}`)
		w.nodesReady("n")
		reached := func() int {
			n := 0
			for _, e := range w.did("n", "install-os") {
				if e.Outcome != fakekube.Unreachable {
					n++
				}
			}
			return n
		}
		Expect(reached()).To(Equal(3), "the host still has what is wanted")

		By("taking a change back that failed")
		ill.mu.Lock()
		ill.hosts["n"] = fakekube.Failed
		ill.mu.Unlock()
		vars(`{"x": 3}`)
		w.condition(w.node("n"), condition.DeploymentReadyCondition, "False/Failed/Warning")
		vars(`{}`)
		ill.heal("n")
		w.nodesReady("n")
		w.consistent("n")
		Expect(reached()).To(BeNumerically(">", 4), "the host had a part of the change")
	})

	It("runs nothing again when an upgrade brings other default images of the execution environment", func() {
		w := newCloud()
		w.make(w.role("compute").Cell("cell1").Obj())
		names := w.makeNodes(2, "compute")
		byHand := MakeRun("by-hand", w.ns)
		w.make(byHand)
		w.computesReady(names...)
		w.ready(byHand)
		pods := w.hosts.Pods()
		w.opts.Images.AnsibleEE, w.opts.Images.NovaAnsibleEE = "ee:2", "nova-ee:2"
		w.restart()
		w.nothingRuns()
		w.computesReady(names...)
		w.ready(byHand)
		Expect(w.hosts.Pods()).To(Equal(pods))
		w.exactlyOnce()
	})

	It("configures each host once when an upgrade brings runs of several steps while those of one step are in progress", func() {
		w := newCloud()
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(w.role("compute").Obj()) // one step: such a run looks as all did before
		names := w.makeNodes(4, "compute")
		Eventually(func() []fakekube.Execution { return w.hosts.Book() }).Should(HaveLen(4))
		old := w.runs()
		Expect(old).To(HaveEach(HaveField("Spec.Steps", BeEmpty())))
		w.running.end()
		change(w.role("compute").Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Spec.Services = []string{"install-os", "configure-os", "run-os"}
		})
		annotate(w.role("compute").Obj(), novav1.CellAnnotation, "cell1")
		w.running = startManager(w.ns, w.opts)
		w.nothingRuns()
		release()
		w.computesReady(names...)
		w.exactlyOnce()
		for _, run := range w.runs() {
			isOld := func(o ansibleeev1.OpenStackAnsibleEE) bool { return o.Name == run.Name }
			if !slices.ContainsFunc(old, isOld) { // of which there are two if not all hosts came at once
				Expect(run.Spec.Step).To(BeElementOf("configure-os,run-os", "libvirt,nova"))
			}
		}
	})

	It("configures each host once while everything happens at once", long, func() {
		rng := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 3))
		w := newCloud()
		w.hosts.Delay(30 * time.Millisecond)
		var fate sync.Mutex
		w.hosts.Decide(func(string, string) fakekube.Outcome {
			fate.Lock()
			defer fate.Unlock()
			return []fakekube.Outcome{fakekube.OK, fakekube.OK, fakekube.OK, fakekube.OK, fakekube.Failed, fakekube.Unreachable, fakekube.Missing, fakekube.Killed}[rng.IntN(8)]
		})
		w.make(w.role("compute").BatchSize(3).Cell("cell1").Obj())
		names := w.makeNodes(6, "compute")
		pick := func(n int) int {
			fate.Lock()
			defer fate.Unlock()
			return rng.IntN(n)
		}
		for range 40 {
			time.Sleep(time.Duration(pick(150)) * time.Millisecond)
			switch pick(6) {
			case 0, 1:
				change(w.node(names[pick(6)]), func(n *dataplanev1.OpenStackDataPlaneNode) {
					n.Spec.Node.AnsibleVars = JSON(fmt.Sprintf(`{"x": %d}`, pick(2)))
				})
			case 2, 3:
				if runs := w.runs(); len(runs) > 0 {
					Expect(client.IgnoreNotFound(api.Delete(ctx, &runs[pick(len(runs))]))).To(Succeed())
				}
			case 4:
				jobs := &batchv1.JobList{}
				Expect(api.List(ctx, jobs, client.InNamespace(w.ns))).To(Succeed())
				if n := len(jobs.Items); n > 0 {
					Expect(client.IgnoreNotFound(api.Delete(ctx, &jobs.Items[pick(n)], client.PropagationPolicy(metav1.DeletePropagationBackground)))).To(Succeed())
				}
			case 5:
				w.restart()
			}
		}
		w.hosts.Decide(func(string, string) fakekube.Outcome { return fakekube.OK })
		w.computesReady(names...)
		w.quiet()
		w.consistent(names...)
		w.nothingRuns()
	})
})
