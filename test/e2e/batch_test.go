package e2e

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

const batchRole = "e2e-batch"

var batchSteps = []string{"quick-a", "quick-b", "libvirt-tls", "libvirt", "nova", "live-migration"}

// batchStories tell how four hosts are configured together when two of them
// have problems, and when the manager dies over and over.
func batchStories() {
	var good, bad []lab.Host // without and with problems
	var silent, broken lab.Host

	BeforeAll(func(ctx SpecContext) {
		good, bad = spare[:2], spare[2:]
		silent, broken = spare[2], spare[3]
		Expect(silent.Console(ctx, "systemctl stop ssh")).Error().NotTo(HaveOccurred())
		Expect(broken.Console(ctx, "touch /etc/e2e-broken")).Error().NotTo(HaveOccurred())
		create(ctx, control(batchNS)...)
		create(ctx, quickService(batchNS, "quick-a"), quickService(batchNS, "quick-b"))
		create(ctx, inCell(newRole(batchNS, batchRole, "quick-a", "quick-b"), "nova-cell1"))
		for _, host := range spare {
			create(ctx, newNode(batchNS, batchRole, host))
		}
	}, NodeTimeout(3*time.Minute))

	It("takes one run, with a result for each host", func(ctx SpecContext) {
		Eventually(func(g Gomega) {
			for _, host := range spare {
				run, ok := runsByStep(ctx, batchNS, host.Name)["quick-a"]
				g.Expect(ok).To(BeTrue(), "no run has %s", host.Name)
				g.Expect(run.Spec.Targets).To(HaveLen(len(spare)))
				g.Expect(run.Finished()).To(BeTrue())
				result, known := run.Host(host.Name)
				g.Expect(known).To(BeTrue(), host.Name)
				g.Expect(result.Unreachable > 0).To(Equal(host.Name == silent.Name), host.Name)
				g.Expect(result.Failed > 0).To(Equal(host.Name == broken.Name), host.Name)
			}
		}).WithTimeout(6 * time.Minute).Should(Succeed())
	}, SpecTimeout(9*time.Minute))

	It("says of the two with problems which problem", func(ctx SpecContext) {
		Eventually(current(ctx, nodeNamed(batchNS, silent.Name))).WithTimeout(3 * time.Minute).Should(
			haveProblem(dataplanev1.ProvisionReadyCondition, dataplanev1.HostUnreachableReason, "quick-a", "refused", "next at"))
		Eventually(current(ctx, nodeNamed(batchNS, broken.Name))).WithTimeout(3 * time.Minute).Should(
			haveProblem(condition.DeploymentReadyCondition, "Failed", "quick-a", "Check that the host is whole", "next at"))
		for _, host := range bad {
			Expect(current(ctx, computeNamed(batchNS, host.Name))()).To(
				haveProblem(novav1.DataPlaneNodeReadyCondition, novav1.NodeNotReadyReason, host.Name))
		}
		Eventually(warnings).WithArguments(ctx, batchNS).WithTimeout(60 * time.Second).Should(ContainElements(
			silent.Name+": "+string(dataplanev1.HostUnreachableReason), broken.Name+": Failed"))
	}, SpecTimeout(9*time.Minute))

	It("brings the two without problems all the way", func(ctx SpecContext) {
		for _, host := range good {
			Eventually(current(ctx, computeNamed(batchNS, host.Name))).WithTimeout(15 * time.Minute).Should(beReady())
			Expect(trail(ctx, host)).To(HaveExactElements(startAndEnd(batchSteps...)), host.Name)
		}
		Expect(historyOf(ctx, silent)[silent.Name]).To(BeEmpty())
		Expect(trail(ctx, broken)).To(HaveEach("start quick-a"))
	}, SpecTimeout(18*time.Minute))

	It("recovers automatically once the hosts are fixed", func(ctx SpecContext) {
		Expect(silent.Console(ctx, "systemctl start ssh")).Error().NotTo(HaveOccurred())
		Expect(broken.Console(ctx, "rm /etc/e2e-broken")).Error().NotTo(HaveOccurred())
		for _, host := range bad {
			Eventually(current(ctx, computeNamed(batchNS, host.Name))).WithTimeout(18 * time.Minute).Should(beReady())
			Expect(node(ctx, batchNS, host.Name)).To(beReady())
			Expect(sshOutput(ctx, host, "systemctl is-active edpm_nova_compute.service")).To(Equal("active"))
		}
		// The key of the host that was silent is known only now: the others take it over, and do
		// nothing else.
		for _, host := range good {
			Eventually(trail).WithArguments(ctx, host).WithTimeout(3*time.Minute).Should(
				HaveExactElements(startAndEnd(append(slices.Clone(batchSteps), "live-migration")...)),
				func() string { return trailWithRuns(ctx, host) })
		}
		for _, host := range bad { // the first of them that recovered takes it over too
			Eventually(func(g Gomega) {
				conditions := compute(ctx, batchNS, host.Name).GetConditions()
				g.Expect(conditions.IsTrue(novav1.LiveMigrationReadyCondition)).To(BeTrue(), "%s: %v", host.Name, conditions)
			}).WithTimeout(3 * time.Minute).Should(Succeed())
		}
	}, SpecTimeout(24*time.Minute))

	It("runs exactly once for each hash, however often the manager dies", func(ctx SpecContext) {
		random := rand.New(rand.NewSource(seed()))
		for _, host := range bad { // they were started over and over before
			Expect(host.Console(ctx, "rm -f /var/log/edpm/runs.log")).Error().NotTo(HaveOccurred())
		}
		deaths, least := 3, 1
		if tier.All() {
			deaths, least = 10, 3
		}
		rounds, inFlight := 0, 0
		before := novaHashes(ctx)
		for range deaths {
			if rounds == 0 || rolledOut(ctx, before) {
				rounds++
				before = novaHashes(ctx)
				startRound(ctx, rounds)
			}
			pause, end, how := time.Duration(random.Int63n(int64(8*time.Second))), manager.Kill, "killing"
			if random.Intn(2) == 0 {
				end, how = manager.Evict, "evicting"
			}
			time.Sleep(pause)
			if unfinished(ctx, batchNS) > 0 {
				inFlight++
			}
			By(fmt.Sprintf("%s the manager in round %d, %v after it was ready", how, rounds, pause.Round(time.Millisecond)))
			Expect(end(ctx)).To(Succeed())
			Expect(manager.Ready(ctx)).To(Succeed())
		}
		By("waiting for the last round")
		Eventually(rolledOut).WithArguments(ctx, before).WithTimeout(18 * time.Minute).WithPolling(2 * time.Second).Should(BeTrue())
		for _, host := range spare {
			starts, ends := startsAndEnds(ctx, batchNS, host)
			Expect(starts).To(HaveEach(1), "how often each was started on %s", host.Name)
			Expect(ends).To(HaveEach(1), "how often each came to its end on %s", host.Name)
			Expect(ends).To(HaveLen(len(starts)), "all came to their ends on %s", host.Name)
		}
		for _, host := range bad { // their trail began with the rounds
			_, ends := startsAndEnds(ctx, batchNS, host)
			Expect(ends).To(HaveLen(len(batchSteps)*rounds), host.Name)
		}
		Expect(inFlight).To(BeNumerically(">=", least), "the manager hardly died while anything ran")
		AddReportEntry(fmt.Sprintf("the manager died %d times in %d rounds, %d times while runs were under way", deaths, rounds, inFlight))
	}, SpecTimeout(30*time.Minute))

	It("stays as it is when its runs are deleted, and when the manager has forgotten them", tier.Long, func(ctx SpecContext) {
		before := historyOf(ctx, spare...)
		Expect(k8s.DeleteAllOf(ctx, &ansibleeev1.OpenStackAnsibleEE{}, client.InNamespace(batchNS))).To(Succeed())
		Eventually(allRuns).WithArguments(ctx, batchNS).WithTimeout(3 * time.Minute).Should(BeEmpty())
		Expect(manager.Kill(ctx)).To(Succeed())
		Expect(manager.Ready(ctx)).To(Succeed())
		// Longer than the manager gathers hosts, or waits for more of them.
		Consistently(allRuns).WithArguments(ctx, batchNS).WithTimeout(10 * time.Second).WithPolling(2 * time.Second).Should(BeEmpty())
		before.untouched(ctx, spare...)
		for _, host := range spare {
			Expect(current(ctx, computeNamed(batchNS, host.Name))()).To(beReady())
		}
	}, SpecTimeout(12*time.Minute))

	It("runs again when a run ends without a result, or is deleted midway", tier.Long, func(ctx SpecContext) {
		before := historyOf(ctx, spare...)
		mustChange(ctx, &dataplanev1.OpenStackDataPlaneService{ObjectMeta: named(batchNS, "quick-b")}, func(s *dataplanev1.OpenStackDataPlaneService) {
			s.Spec.Play = slowPlay
		})
		for _, host := range spare {
			Eventually(before.since).WithArguments(ctx, host).WithTimeout(3 * time.Minute).Should(Equal([]string{"start quick-b"}))
		}
		runs := allRuns(ctx, batchNS)
		Expect(runs).To(HaveLen(2), "batchSize is 2")
		Expect(k8s.Delete(ctx, &runs[0])).To(Succeed())
		Expect(k8s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(batchNS), client.GracePeriodSeconds(1),
			client.MatchingLabels{"openstackansibleee_cr": runs[1].Name})).To(Succeed())
		for _, host := range spare {
			Eventually(before.since).WithArguments(ctx, host).WithTimeout(6*time.Minute).Should(
				Equal([]string{"start quick-b", "start quick-b", "end quick-b"}), host.Name)
			Eventually(current(ctx, nodeNamed(batchNS, host.Name))).WithTimeout(6 * time.Minute).Should(beReady())
			Eventually(current(ctx, computeNamed(batchNS, host.Name))).WithTimeout(6 * time.Minute).Should(beReady())
		}
		Expect(gone(ctx, &runs[0])()).To(BeTrue())
	}, SpecTimeout(18*time.Minute))
}

func seed() int64 {
	n, err := strconv.ParseInt(os.Getenv("E2E_SEED"), 10, 64)
	if err != nil {
		n = time.Now().UnixNano() % 1_000_000
	}
	AddReportEntry(fmt.Sprintf("E2E_SEED=%d tells when the manager is killed", n), ReportEntryVisibilityAlways)
	return n
}

// startRound changes something that every step of every host has to do with.
func startRound(ctx context.Context, round int) {
	GinkgoHelper()
	mustChange(ctx, roleNamed(batchNS, batchRole), func(r *dataplanev1.OpenStackDataPlaneRole) {
		r.Spec.DeployStrategy.BatchSize = ptr.To[int32](2)
		r.Spec.NodeTemplate.AnsibleVars = jsonVars(map[string]any{"e2e_round": round})
	})
}

// novaHashes returns what nova runs for on each host of the batch.
func novaHashes(ctx context.Context) map[string]string {
	GinkgoHelper()
	hashes := map[string]string{}
	for _, host := range spare {
		hashes[host.Name] = compute(ctx, batchNS, host.Name).Status.Hash["nova"]
	}
	return hashes
}

// rolledOut reports whether every host runs for something else than before, and is Ready.
func rolledOut(ctx context.Context, before map[string]string) bool {
	GinkgoHelper()
	for _, host := range spare {
		c := compute(ctx, batchNS, host.Name)
		if c.Status.Hash["nova"] == before[host.Name] || !c.Status.Conditions.IsTrue(condition.ReadyCondition) {
			return false
		}
	}
	return true
}

// unfinished counts the runs that are under way.
func unfinished(ctx context.Context, ns string) int {
	GinkgoHelper()
	n := 0
	for _, run := range allRuns(ctx, ns) {
		if !run.Finished() {
			n++
		}
	}
	return n
}
