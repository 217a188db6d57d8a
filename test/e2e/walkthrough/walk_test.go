package walkthrough

import (
	"strings"
	"time"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	namespace = "openstack"
	systemNS  = "edpm-operators-system"
)

var _ = Describe("A new user", Ordered, func() {
	var guests map[lab.Host]string // their processes

	It("brings up a cluster with OLM, and hosts", func(ctx SpecContext) {
		Expect(follow(ctx, "A cluster with OLM, and hosts")).To(MatchRegexp(`lab-worker-0 +Ready`))
		Expect(cluster.Connect()).To(Succeed())
	}, SpecTimeout(20*time.Minute))

	It("makes a bundle and a catalog, and installs the operators", func(ctx SpecContext) {
		follow(ctx, "A bundle and a catalog")
		Expect(follow(ctx, "Install")).To(MatchRegexp(`edpm-operators.v0.1.0 .* Succeeded`))
		Expect(managerImage(ctx)).To(HaveSuffix(":v0.1.0"))
	}, SpecTimeout(10*time.Minute))

	It("deploys two computes, each in its cell", func(ctx SpecContext) {
		follow(ctx, "What only you know")
		Expect(follow(ctx, "Two computes")).To(And(ContainSubstring("\nactive\n"), ContainSubstring("end run=")))
		for host, cell := range map[string]string{compute0.Name: "nova-cell1", compute1.Name: "nova-cell2"} {
			Expect(node(ctx, host)).To(expect.Ready())
			Expect(compute(ctx, host)).To(expect.Ready())
			Expect(compute(ctx, host).Spec.CellName).To(Equal(cell))
		}
		for _, host := range []lab.Host{compute0, compute1} {
			Expect(noted(ctx, host)).To(Equal(once(allSteps()...)), host.Name)
			Expect(novaState(ctx, host)).To(Equal("active"), host.Name)
		}
	}, SpecTimeout(12*time.Minute))

	It("starts a guest on each", func(ctx SpecContext) {
		Expect(strings.Count(follow(ctx, "Start guests"), "guest: hello from the config drive")).To(Equal(2))
		guests = map[lab.Host]string{compute0: guestOn(ctx, compute0), compute1: guestOn(ctx, compute1)}
	}, SpecTimeout(8*time.Minute))

	It("breaks one, and nothing else", func(ctx SpecContext) {
		before := noted(ctx, compute0)
		Expect(follow(ctx, "Break one")).To(ContainSubstring(`line 2: [DEFAULT] debug is "verbose", but should be true or false`))
		Expect(noted(ctx, compute0)).To(Equal(before))
		Expect(compute(ctx, compute0.Name)).To(expect.Ready())
		Expect(compute(ctx, compute1.Name)).NotTo(expect.Ready())
	}, SpecTimeout(5*time.Minute))

	It("finds out why", func(ctx SpecContext) {
		printed := follow(ctx, "Find out why")
		status, rest, _ := strings.Cut(printed, "What helps:")
		Expect(status).To(And(MatchRegexp(`1 nova +False +Refused`), MatchRegexp(`debug\s+in\s+\[DEFAULT\]\s+is\s+not\s+valid`)),
			"status names the option")
		Expect(rest).To(ContainSubstring("fatal: [edpm-compute-1]"), "logs have the task that failed")
		Expect(printed).NotTo(ContainSubstring("edpm-compute-0"), "everything is about one host")
		Expect(rest).To(ContainSubstring("see docs/"), "explain leads to the page")
		Expect(searchArchive(ctx)).To(BeNumerically(">", 30), "there is hardly anything in the archive")
	}, SpecTimeout(3*time.Minute))

	It("fixes it", func(ctx SpecContext) {
		before := noted(ctx, compute0)
		follow(ctx, "Fix it")
		Expect(compute(ctx, compute1.Name)).To(expect.Ready())
		trail := noted(ctx, compute1)
		Expect(trail[len(trail)-2:]).To(Equal(once("nova")))
		Expect(novaState(ctx, compute1)).To(Equal("active"))
		Expect(noted(ctx, compute0)).To(Equal(before))
	}, SpecTimeout(6*time.Minute))

	It("upgrades while something runs: nothing is lost, and nothing runs again", func(ctx SpecContext) {
		before := map[lab.Host][]string{compute0: noted(ctx, compute0), compute1: noted(ctx, compute1)}
		Expect(strings.Count(follow(ctx, "Upgrade while something runs"), "ACTIVE")).To(Equal(2))
		Expect(managerImage(ctx)).To(HaveSuffix(":v0.2.0"))
		Expect(runsAcross(ctx, managerPod(ctx))).NotTo(BeEmpty(), "no run was under way when the new manager came")
		for host, trail := range before {
			Expect(node(ctx, host.Name)).To(expect.Ready())
			Expect(compute(ctx, host.Name)).To(expect.Ready())
			Expect(noted(ctx, host)).To(Equal(append(trail, once(allSteps()...)...)), host.Name)
			Expect(guestOn(ctx, host)).To(Equal(guests[host]), "the process of the guest on %s", host.Name)
		}
	}, SpecTimeout(15*time.Minute))

	It("removes the operators, and finds hosts and objects as they were", func(ctx SpecContext) {
		before0, before1 := noted(ctx, compute0), noted(ctx, compute1)
		Expect(follow(ctx, "Remove the operators only")).To(ContainSubstring("\nactive\n"))
		Expect(novaState(ctx, compute1)).To(Equal("active"))
		Expect(managerImage(ctx)).To(HaveSuffix(":v0.2.0"))
		Eventually(leader).WithArguments(ctx).Should(HavePrefix(managerPod(ctx).Name + "_"))
		Consistently(noted).WithArguments(ctx, compute0).WithTimeout(10 * time.Second).WithPolling(time.Second).Should(Equal(before0))
		Expect(noted(ctx, compute1)).To(Equal(before1))
	}, SpecTimeout(8*time.Minute))

	It("removes the nodes, and with them what was on the hosts", func(ctx SpecContext) {
		before := map[lab.Host][]string{compute0: noted(ctx, compute0), compute1: noted(ctx, compute1)}
		follow(ctx, "Remove the nodes")
		for host, trail := range before {
			Expect(noted(ctx, host)).To(Equal(append(trail, once("nova-cleanup")...)), host.Name)
			Expect(host.Console(ctx, remains)).To(BeEmpty(), host.Name)
		}
	}, SpecTimeout(6*time.Minute))

	It("removes everything else", func(ctx SpecContext) {
		follow(ctx, "Remove everything else")
		Expect(ahead).To(BeEmpty(), "not all of the page was run")
		Expect(cluster.Kubeconfig).NotTo(BeAnExistingFile())
	}, SpecTimeout(8*time.Minute))
})
