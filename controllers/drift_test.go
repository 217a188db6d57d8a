package controllers_test

import (
	"strconv"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// shiftedClock is ahead of the real one.
type shiftedClock struct{ by atomic.Int64 }

func (c *shiftedClock) Now() time.Time                  { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *shiftedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// driftWorld is a world whose hosts are checked every ten minutes of its clock.
type driftWorld struct {
	*world
	clock *shiftedClock
	names []string
}

func newDriftWorld(repair common.RepairPolicy, nodes int) *driftWorld {
	GinkgoHelper()
	clock := &shiftedClock{}
	w := &driftWorld{world: newCloud(func(o *controllers.Options) { o.Engine.Clock = clock }), clock: clock}
	role := w.role("compute").Obj()
	role.Spec.DeployStrategy.DriftCheck = &dataplanev1.DriftCheck{Interval: &metav1.Duration{Duration: 10 * time.Minute}, Repair: repair}
	w.names = w.makeTogether(role, nodes)
	for _, n := range w.names {
		w.ready(w.node(n))
	}
	return w
}

// checks of a host.
func (w *driftWorld) checks(host string) (found []fakekube.Execution) {
	for _, e := range w.hosts.Book() {
		if e.Host == host && e.Check {
			found = append(found, e)
		}
	}
	return found
}

// runsOf a host that can change it.
func (w *driftWorld) runsOf(host string) int {
	n := 0
	for _, e := range w.hosts.Book() {
		if e.Host == host && !e.Check {
			n++
		}
	}
	return n
}

// nextTurn moves the clock until every host has been checked once more, and each node knows.
func (w *driftWorld) nextTurn() {
	GinkgoHelper()
	w.nextTurnBegins()
	w.quiet()
}

// nextTurnBegins moves the clock until a check of every host has begun once more.
func (w *driftWorld) nextTurnBegins() {
	GinkgoHelper()
	before := map[string]int{}
	for _, n := range w.names {
		before[n] = len(w.checks(n))
	}
	Eventually(func(g Gomega) {
		w.clock.by.Add(int64(40 * time.Second))
		for _, n := range w.names {
			annotate(w.node(n), "example.org/look", strconv.FormatInt(w.clock.by.Load(), 10))
		}
		for _, n := range w.names {
			g.Expect(len(w.checks(n))).To(BeNumerically(">", before[n]), "checks of %s", n)
		}
	}).WithPolling(500 * time.Millisecond).Should(Succeed())
}

func (w *driftWorld) drift(g Gomega, name string) common.Drift {
	return get(g, w.node(name)).Status.DriftOf("install-os")
}

var _ = Describe("A host that is checked", func() {
	It("shows what differs, stays Ready, and is not run", func() {
		w := newDriftWorld(common.RepairNever, 3)
		ledger := get(Default, w.node("n001")).Status.Ledger
		Expect(ledger.Drift).To(BeEmpty(), "nothing was checked yet")
		w.hosts.Drift("n001", "install-os", "Write the names of hosts", "Start chrony")
		w.nextTurn()
		node := get(Default, w.node("n001"))
		Expect(w.drift(Default, "n001").Differences).To(Equal([]common.Difference{{Task: "Write the names of hosts"}, {Task: "Start chrony"}}))
		Expect(node.Status.Hash).To(Equal(ledger.Hash))
		Expect(node.Status.Runs).To(Equal(ledger.Runs), "a check is no run")
		w.ready(node)
		w.condition(node, common.HostInSyncCondition, "False/HostDiffers/Warning", "install-os", "Write the names of hosts")
		Eventually(func() []string { return w.events("n001") }).Should(ContainElement(ContainSubstring("HostDiffers")))
		other := get(Default, w.node("n000"))
		Expect(w.drift(Default, "n000").Checked.Time.IsZero()).To(BeFalse())
		Expect(w.drift(Default, "n000").Differs()).To(BeFalse())
		Expect(other.Status.Conditions.Get(common.HostInSyncCondition)).To(BeNil())
		w.exactlyOnce()

		w.resync()
		Expect(w.wire.Since(0)).To(BeEmpty(), "what a resync writes")
		Expect(w.checks("n001")).To(HaveLen(1), "a manager that starts checks nothing before its turn")

		By("asking for a rerun, which repairs it")
		annotate(w.node("n001"), common.RerunAnnotation, "1")
		Eventually(func(g Gomega) {
			g.Expect(w.drift(g, "n001").Differs()).To(BeFalse())
			g.Expect(get(g, w.node("n001")).Status.Conditions.Get(common.HostInSyncCondition)).To(BeNil())
		}).Should(Succeed())
		Expect(w.runsOf("n001")).To(Equal(2))
	})

	It("is not failed by a check that cannot be done", func() {
		w := newDriftWorld(common.RepairAsk, 2)
		w.hosts.Decide(func(host, _ string) fakekube.Outcome {
			if host == "n000" {
				return fakekube.Unreachable
			}
			return fakekube.OK
		})
		w.hosts.Drift("n001", "install-os", "Write the names of hosts")
		w.nextTurn()
		Eventually(func(g Gomega) { g.Expect(w.drift(g, "n000").Message).To(ContainSubstring("no route to host")) }).Should(Succeed())
		w.ready(w.node("n000"), w.node("n001"))
		Expect(get(Default, w.node("n000")).Status.NextRetry).To(BeNil())
		w.condition(w.node("n001"), common.HostInSyncCondition, "False/RepairAwaited/Warning", common.RerunAnnotation)
		w.exactlyOnce()
	})

	It("is repaired once for each finding, where its role wants that", func() {
		w := newDriftWorld(common.RepairAlways, 1)
		w.hosts.Drift("n000", "install-os", "Write the names of hosts")
		w.nextTurn()
		Eventually(func(g Gomega) {
			g.Expect(w.runsOf("n000")).To(Equal(2))
			g.Expect(w.drift(g, "n000").Differs()).To(BeFalse())
			g.Expect(w.drift(g, "n000").Repaired).To(BeTrue())
		}).Should(Succeed())
		w.ready(w.node("n000"))

		By("changing the host again")
		w.hosts.Drift("n000", "install-os", "Write the names of hosts")
		w.nextTurn()
		w.condition(w.node("n000"), common.HostInSyncCondition, "False/DriftReturned/Warning")
		w.nextTurn()
		Expect(w.runsOf("n000")).To(Equal(2), "it came back right after the repair")

		By("finding what does it")
		w.hosts.Drift("n000", "install-os")
		w.nextTurn()
		Expect(w.drift(Default, "n000").Repaired).To(BeFalse())
		w.hosts.Drift("n000", "install-os", "Write the names of hosts")
		w.nextTurn()
		Eventually(func() int { return w.runsOf("n000") }).Should(Equal(3), "this is another finding")
		Expect(w.hosts.Overlaps()).To(BeEmpty())
	})

	It("is not run before its check has ended", func() {
		w := newDriftWorld(common.RepairNever, 2)
		release := w.hosts.Hold()
		w.nextTurnBegins()
		change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = JSON(`{"a": 2}`) })
		w.halted(w.node("n000"), condition.DeploymentReadyCondition, "Pending")
		release()
		w.ready(w.node("n000"))
		Expect(w.hosts.Overlaps()).To(BeEmpty())
		w.exactlyOnce()
	})
})
