package controllers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

// discoverAsTold maps hosts as the command of the Job says.
func discoverAsTold(server *fakenova.Server, job *batchv1.Job) {
	command := strings.Join(job.Spec.Template.Spec.Containers[0].Command, " ")
	switch {
	case !strings.HasPrefix(job.Name, discovery):
	case strings.Contains(command, "--by-service"):
		server.DiscoverByService()
	default:
		server.Discover()
	}
}

// Pods are made by no one here: they are in test/podified.
var _ = Describe("The services of a NovaCompute in nova", func() {
	const service = novav1.ComputeServiceReadyCondition
	var w *world
	var server *fakenova.Server
	var ironic *novav1.NovaCompute
	set := func(g Gomega) int32 {
		return *get(g, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ironic"}}).Spec.Replicas
	}
	scale := func(n int32) {
		GinkgoHelper()
		change(ironic, func(c *novav1.NovaCompute) { c.Spec.Replicas = ptr.To(n) })
	}
	shown := func(g Gomega) []string {
		var names []string
		for _, h := range get(g, ironic).Status.Hosts {
			names = append(names, h.Name)
		}
		return names
	}
	// waits expects that the services keep it from being Ready. It has no pods, so that Ready says
	// more.
	waits := func(reason condition.Reason, severity condition.Severity, parts ...string) {
		GinkgoHelper()
		w.condition(ironic, service, fmt.Sprintf("False/%s/%s", reason, severity), parts...)
	}
	// pod makes a pod as the StatefulSet would, which no kubelet runs.
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: map[string]string{"service": "nova-compute", "owner": "ironic"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
	}
	// serve makes a NovaCompute whose pods report to nova.
	serve := func(pods ...string) {
		GinkgoHelper()
		ironic.Spec.Replicas = ptr.To(int32(len(pods)))
		w.make(ironic)
		server.Register(pods...)
		w.condition(ironic, service, "True/Ready/", fmt.Sprintf("nova-compute in %d pods is up and mapped", len(pods)))
	}

	BeforeEach(func() {
		w, server = newOpenStack(discoverAsTold)
		ironic = &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ironic"}, Spec: novav1.NovaComputeSpec{CellName: "nova-cell1"}}
	})

	It("are mapped although ironic has no nodes, by one Job, and make it Ready as long as all are up", func() {
		ironic.Spec.Replicas = ptr.To[int32](2)
		w.make(ironic)
		waits(novav1.ServiceNotReportedReason, condition.SeverityInfo, "report to nova as host ironic-0", "kubectl logs --namespace "+w.ns+" ironic-0", "1 more pods are not ready in nova")
		server.Register("ironic-0", "ironic-1")
		w.condition(ironic, service, "True/Ready/", "nova-compute in 2 pods is up and mapped")
		Expect(server.Host("ironic-1")).To(Equal(fakenova.State{Service: true, Mapped: true}))
		w.quiet()
		jobs := w.discoveries()
		Expect(jobs).To(BeNumerically("<=", 2), "one for both, or one for each if they come one after the other")
		before := get(Default, ironic).ResourceVersion
		w.restart()
		w.quiet()
		w.condition(ironic, service, "True/Ready/")
		Expect(w.discoveries()).To(Equal(jobs), "that they are mapped is known")
		Expect(get(Default, ironic).ResourceVersion).To(Equal(before))

		By("one of them ending")
		server.Stop("ironic-1")
		waits(novav1.ServiceDownReason, condition.SeverityWarning, "nova-compute on host ironic-1 has not reported to nova since")
		Eventually(gauges).Should(And(
			HaveKeyWithValue("edpm_compute_services{nova-cell1,down}", 1.0), HaveKeyWithValue("edpm_compute_services{nova-cell1,up}", 1.0)))
		server.Run("ironic-1")
		w.condition(ironic, service, "True/Ready/")
	})

	It("are not observed where no API is run, and are as soon as one is", func() {
		nova := MakeNova("nova", w.ns, "")
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = nil })
		w.make(ironic)
		w.condition(ironic, service, "True/NotObserved/", "no Nova with an API manages NovaCell nova-cell1")
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = ptr.To[int32](1) })
		waits(novav1.ServiceNotReportedReason, condition.SeverityInfo)
		server.Register("ironic-0")
		w.condition(ironic, service, "True/Ready/")
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = ptr.To[int32](0) })
		w.condition(ironic, service, "True/NotObserved/")

		By("deleting it without an API")
		remove(ironic)
		gone(ironic)
		Expect(server.Host("ironic-0").Service).To(BeTrue())
	})

	It("disappear from nova on scale-down, after their instances and their pods", func() {
		serve("ironic-0", "ironic-1", "ironic-2")
		server.Boot("ironic-1", 2)
		w.make(pod("ironic-2"))
		scale(1)
		waits(novav1.InstancesPresentReason, condition.SeverityError, "Scaling down to 1 pods: nova has instances on hosts ironic-1 (2 instances)", common.SkipCleanupAnnotation)
		Eventually(set).Should(BeEquivalentTo(2), "the empty one may leave, the other not")
		for _, host := range []string{"ironic-1", "ironic-2"} {
			Expect(server.Host(host)).To(Equal(fakenova.State{Service: true, Mapped: true, Disabled: true, Reason: "edpm-operators: the compute is being removed"}))
		}
		w.quiet()
		Expect(server.Requests("DELETE")).To(BeZero(), "the pod still runs")
		server.Stop("ironic-2")
		Expect(api.Delete(ctx, pod("ironic-2"), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(func() fakenova.State { return server.Host("ironic-2") }).Should(Equal(fakenova.State{}))
		Eventually(shown).Should(Equal([]string{"ironic-0", "ironic-1"}))

		By("its instances being deleted")
		server.Stop("ironic-1")
		server.Boot("ironic-1", 0)
		w.condition(ironic, service, "True/Ready/", "in 1 pods")
		Expect(set(Default)).To(BeEquivalentTo(1))
		Expect(server.Host("ironic-1")).To(Equal(fakenova.State{}))
		Expect(shown(Default)).To(Equal([]string{"ironic-0"}))
		w.quiet()

		By("scaling up again")
		scale(2)
		waits(novav1.ServiceNotReportedReason, condition.SeverityInfo, "ironic-1")
		server.Register("ironic-1")
		w.condition(ironic, service, "True/Ready/", "in 2 pods")
	})

	It("are enabled when a scale-down is taken back, but for those that a person has disabled", func() {
		serve("ironic-0", "ironic-1", "ironic-2")
		server.Boot("ironic-1", 1)
		server.Boot("ironic-2", 1)
		server.Disable("ironic-2", true, "bad DIMM")
		scale(1)
		waits(novav1.InstancesPresentReason, condition.SeverityError, "ironic-1 (1 instances)", "ironic-2 (1 instances)")
		Eventually(func() bool { return server.Host("ironic-1").Disabled }).Should(BeTrue())
		scale(3)
		waits(novav1.ServiceDisabledReason, condition.SeverityInfo, "host ironic-2", "bad DIMM")
		Expect(server.Host("ironic-1").Disabled).To(BeFalse())
		Expect(server.Host("ironic-2").Reason).To(Equal("bad DIMM"))
		server.Disable("ironic-2", false, "")
		w.condition(ironic, service, "True/Ready/", "in 3 pods")
		Expect(set(Default)).To(BeEquivalentTo(3))
	})

	It("keep their pods while nova cannot be asked, unless clean-up is skipped", func() {
		serve("ironic-0", "ironic-1")
		server.Break(fakenova.NovaDown)
		scale(1)
		waits(novav1.APIUnreachableReason, condition.SeverityWarning, "Scaling down to 1 pods: services cannot be disabled and deleted in nova:", common.SkipCleanupAnnotation)
		w.quiet()
		Expect(set(Default)).To(BeEquivalentTo(2))
		annotate(ironic, common.SkipCleanupAnnotation, "true")
		Eventually(set).Should(BeEquivalentTo(1))
		Eventually(func() []string { return w.events("ironic") }).Should(ContainElement(ContainSubstring("Warning ComputeServiceLeft")))
		Expect(server.Host("ironic-1").Service).To(BeTrue())
	})

	It("keep it from being deleted as long as they have instances, and disappear from nova with it", func() {
		serve("ironic-0", "ironic-1")
		server.Boot("ironic-0", 1)
		server.Stop("ironic-1")
		remove(ironic)
		waits(novav1.InstancesPresentReason, condition.SeverityError, "Deleting: nova has instances on hosts ironic-0 (1 instances)")
		Eventually(set).Should(BeEquivalentTo(1))
		server.Stop("ironic-0")
		server.Boot("ironic-0", 0)
		gone(ironic)
		Expect([]fakenova.State{server.Host("ironic-0"), server.Host("ironic-1")}).To(HaveEach(fakenova.State{}))
		Expect(set(Default)).To(BeZero())
	})

	It("stay in nova, disabled, when it is deleted without clean-up and they have instances", func() {
		serve("ironic-0", "ironic-1")
		server.Boot("ironic-0", 3)
		server.Stop("ironic-1")
		annotate(ironic, common.SkipCleanupAnnotation, "true")
		remove(ironic)
		gone(ironic)
		state := server.Host("ironic-0")
		Expect(state.Service && state.Disabled && !state.ForcedDown).To(BeTrue(), "%+v", state)
		Expect(server.Host("ironic-1")).To(Equal(fakenova.State{}))
		Eventually(func() []string { return w.events("ironic") }).Should(ContainElement(ContainSubstring("nova keeps the service nova-compute of pod ironic-0 (3 instances)")))
	})

	It("are left alone while a compute on a host has their name", func() {
		w.makeNodes(1, "compute")
		setVars(w, "n000", `{"edpm_nova_host": "ironic-1"}`)
		server.Run("ironic-1")
		w.computesReady("n000")
		ironic.Spec.Replicas = ptr.To[int32](2)
		w.make(ironic)
		server.Register("ironic-0")
		waits(novav1.ServiceConflictReason, condition.SeverityError, "NovaCompute ironic and NovaExternalCompute n000 both register host ironic-1 in nova")
		scale(1)
		waits(novav1.ServiceConflictReason, condition.SeverityError, "Scaling down to 1 pods: NovaCompute ironic and NovaExternalCompute n000 both register host ironic-1 in nova")
		w.quiet()
		w.computesReady("n000")
		Expect(server.Requests("DELETE")).To(BeZero())
		Expect(server.Host("ironic-1").Disabled).To(BeFalse())
	})

	It("are not changed for a compute on a host that looks for their name", func() {
		serve("ironic-0", "ironic-1")
		w.makeNodes(1, "compute")
		setVars(w, "n000", `{"edpm_nova_host": "ironic-1"}`)
		annotate(w.node("n000"), common.DisableAnnotation, "not yet")
		w.halted(w.compute("n000"), service, novav1.ServiceConflictReason, "NovaExternalCompute n000 and NovaCompute ironic both register host ironic-1 in nova", "Fix edpm_nova_host")
		w.quiet()
		w.condition(ironic, service, "True/Ready/")
		Expect(server.Requests("PUT")).To(BeZero())
	})

	Context("leave nothing in nova even if the manager dies at any write of a scale-down", func() {
		eachDeath(2, 6, func(rng *rand.Rand) {
			serve("ironic-0", "ironic-1", "ironic-2")
			w.running.end()
			server.Stop("ironic-1", "ironic-2")
			scale(1)
			w.running = startManager(w.ns, w.opts)
			at, answered := 1+rng.IntN(4), rng.IntN(2) == 0
			By(fmt.Sprintf("dying at write %d, answered: %v, in %s", at, answered, w.ns))
			w.wire.cutAfter(at, answered).orUntil(func(g Gomega) { g.Expect(shown(g)).To(HaveLen(1)) })
			w.restart()
			w.condition(ironic, service, "True/Ready/", "in 1 pods")
			Expect(slices.Concat([]fakenova.State{server.Host("ironic-1")}, []fakenova.State{server.Host("ironic-2")})).To(HaveEach(fakenova.State{}))
			Expect(set(Default)).To(BeEquivalentTo(1))
		})
	})
})
