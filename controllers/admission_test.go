package controllers_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// runOn makes a run on hosts, as an engine of another manager would.
func (w *world) runOn(name string, hosts ...string) *ansibleeev1.OpenStackAnsibleEE {
	GinkgoHelper()
	run := MakeRun(name, w.ns)
	for _, h := range hosts {
		run.Spec.Targets = append(run.Spec.Targets, ansibleeev1.Target{Host: h, Hash: "h"})
	}
	w.make(run)
	return run
}

// queued waits until a run says that it waits for another one because of a host.
func (w *world) queued(run, other *ansibleeev1.OpenStackAnsibleEE, host string) {
	GinkgoHelper()
	w.condition(run, ansibleeev1.JobReadyCondition, "False/HostsBusy/Info",
		fmt.Sprintf("Waiting for OpenStackAnsibleEE %s to finish: both have host %s,", other.Name, host))
}

// jobs are the Jobs in the order in which they came to their first host.
func (w *world) jobs() []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range w.hosts.Book() {
		if !seen[e.Job] {
			seen[e.Job], out = true, append(out, e.Job)
		}
	}
	return out
}

var _ = Describe("A host", func() {
	It("takes part in one run at a time even if two are created at once: the second waits, names the first, and continues automatically", func() {
		w := newWorld()
		release := w.hosts.Hold()
		DeferCleanup(release)
		first := w.runOn("z-first", "h1", "h2")
		Eventually(w.jobs).Should(Equal([]string{"z-first"}))
		second := w.runOn("a-second", "h2", "h3")
		elsewhere, byHand := w.runOn("elsewhere", "h4"), MakeRun("by-hand", w.ns)
		w.make(byHand)
		w.queued(second, first, "h2")
		Eventually(w.jobs).Should(ConsistOf("z-first", "elsewhere", "by-hand"), "what has other hosts, or names none, does not wait")
		w.calm()

		By("starting another manager, which has to find out who is on the host")
		w.restart()
		w.queued(second, first, "h2")
		w.calm()
		release()
		w.ready(first, second, elsewhere, byHand)
		Expect(w.hosts.Overlaps()).To(BeEmpty())
	})

	It("serves waiting runs in the order of their creation, so that none is overtaken forever", func() {
		w := newWorld()
		release := w.hosts.Hold()
		DeferCleanup(release)
		first := w.runOn("first", "h1")
		Eventually(w.jobs).Should(Equal([]string{"first"}))
		second := w.runOn("second", "h1", "h2")
		w.queued(second, first, "h1")
		time.Sleep(time.Second) // the times of creation have no fractions
		third := w.runOn("a-third", "h2")
		w.queued(third, second, "h2")
		w.calm()
		release()
		w.ready(first, second, third)
		Expect(w.jobs()).To(Equal([]string{"first", "second", "a-third"}))
		Expect(w.hosts.Overlaps()).To(BeEmpty())
	})

	It("lets a run continue when the one that it waits for is deleted, in progress or waiting itself", func() {
		w := newWorld()
		release := w.hosts.Hold()
		DeferCleanup(release)
		first := w.runOn("first", "h1")
		Eventually(w.jobs).Should(Equal([]string{"first"}))
		second := w.runOn("second", "h1", "h2")
		w.queued(second, first, "h1")
		time.Sleep(time.Second)
		third := w.runOn("third", "h2")
		w.queued(third, second, "h2")
		remove(second)
		gone(second)
		Eventually(w.jobs).Should(Equal([]string{"first", "third"}))
		fourth := w.runOn("fourth", "h1")
		w.queued(fourth, first, "h1")
		remove(first)
		gone(first)
		release()
		w.ready(third, fourth)
	})

	It("takes part in one run at a time even if operators of two managers need it, and either restarts at any moment", func() {
		rng := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 4))
		w := newCloud(func(o *controllers.Options) { o.Operators = []string{"nova"} })
		dataplane := w.opts
		dataplane.Operators = []string{"ansibleee", "dataplane", "topology"}
		other := startManager(w.ns, dataplane)
		DeferCleanup(func() { other.end() })
		w.hosts.Delay(300 * time.Millisecond)
		w.make(w.role("compute").Services("install-os", "configure-os").BatchSize(3).Cell("cell1").Obj())
		names := w.makeNodes(3, "compute")
		w.computesReady(names...)
		for i := range 6 {
			// Nova has seen that the host is free, and its run is on the way when the
			// data plane sees the same.
			w.wire.slowdown("openstackansibleees", 400*time.Millisecond)
			change(w.compute("n000"), func(c *novav1.NovaExternalCompute) {
				c.Spec.CustomServiceConfig = fmt.Sprintf("[DEFAULT]\ndebug = %v\n# %d\n", i%2 == 0, i)
			})
			time.Sleep(200 * time.Millisecond)
			change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) {
				n.Spec.Node.AnsibleVars = JSON(fmt.Sprintf(`{"x": %d}`, i))
			})
			time.Sleep(time.Duration(rng.IntN(1200)) * time.Millisecond)
			switch rng.IntN(3) {
			case 0:
				w.restart()
			case 1:
				other.end()
				other = startManager(w.ns, dataplane)
			}
			w.computesReady(names...)
			w.nodesReady(names...)
		}
		w.quiet()
		w.consistent(names...)
		w.nothingRuns()
	})
})
