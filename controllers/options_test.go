package controllers_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// printing makes a world whose images print their options, and counts how often a log is read.
func printing(log string) (*world, *atomic.Int32) {
	GinkgoHelper()
	read := &atomic.Int32{}
	w := newCloud(prints(log, read))
	w.databases = startDatabases(w.ns, leavePod)
	return w, read
}

// prints has the pods of Jobs print a file, and counts how often that is read.
func prints(log string, read *atomic.Int32) func(*controllers.Options) {
	return func(o *controllers.Options) {
		o.Logs = func(context.Context, string, string) (io.ReadCloser, error) {
			read.Add(1)
			file, err := os.ReadFile(envtest.File(log))
			return io.NopCloser(strings.NewReader(string(file) + "\n" + catalogue.End + "\n")), err
		}
	}
}

// leavePod makes the pod of a Job, which has ended.
func leavePod(job *batchv1.Job) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name, Labels: map[string]string{batchv1.JobNameLabel: job.Name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "job", Image: "i"}}},
	}
	if api.Create(ctx, pod) != nil {
		return
	}
	before := client.MergeFrom(pod.DeepCopy())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "job", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}}}
	_ = api.Status().Patch(ctx, pod, before)
}

const generatedOptions = "internal/catalogue/testdata/generated.json"

var _ = Describe("The options of an image", func() {
	cell := func(w *world, name string) *novav1.NovaCell { return MakeCell(name, w.ns).Obj() }
	// stored are the owners of what is known, by image.
	stored := func(w *world) map[string][]string {
		list := &corev1.ConfigMapList{}
		Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
		owners := map[string][]string{}
		for i := range list.Items {
			cm := &list.Items[i]
			if !options.IsOptions(cm) || cm.BinaryData["options"] == nil {
				continue
			}
			for _, owner := range cm.OwnerReferences {
				owners[cm.Data["image"]] = append(owners[cm.Data["image"]], owner.Name)
			}
			slices.Sort(owners[cm.Data["image"]])
		}
		return owners
	}
	owned := func(w *world, owners map[string][]string) {
		GinkgoHelper()
		Eventually(stored).WithArguments(w).Should(Equal(owners))
	}

	It("are read once for all cells, and kept when the first is deleted", func() {
		w, read := printing(generatedOptions)
		w.condition(cell(w, "cell1"), novav1.OptionsKnownCondition, "True/Ready/", "options of all images are known: 1")
		w.makeCell("cell2")
		w.condition(cell(w, "cell2"), novav1.OptionsKnownCondition, "True/Ready/", "options of all images are known: 1")
		owned(w, map[string][]string{"compute:1": {"cell1", "cell2"}})
		w.resync()
		Expect(read.Load()).To(BeEquivalentTo(1))

		Expect(api.Delete(ctx, cell(w, "cell1"))).To(Succeed())
		story.Gone(cell(w, "cell1"))
		kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: options.Name("compute:1")}}
		change(kept, func(cm *corev1.ConfigMap) { // as the garbage collector does, which is not here for ConfigMaps
			cm.OwnerReferences = slices.DeleteFunc(cm.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Name == "cell1" })
		})
		w.makeCell("cell3")
		owned(w, map[string][]string{"compute:1": {"cell2", "cell3"}})
		Expect(read.Load()).To(BeEquivalentTo(1))

		By("deleting them")
		Expect(api.Delete(ctx, kept)).To(Succeed())
		owned(w, map[string][]string{"compute:1": {"cell2", "cell3"}})
		Expect(read.Load()).To(BeEquivalentTo(2))
	})

	for n := range 7 {
		It(fmt.Sprintf("are removed with the last cell that uses the image, even if the manager dies at write %d", n), func() {
			w, read := printing(generatedOptions)
			w.makeCell("cell2")
			owned(w, map[string][]string{"compute:1": {"cell1", "cell2"}})
			setImage := func(name string) {
				change(cell(w, name), func(c *novav1.NovaCell) { c.Spec.NovaComputeContainerImage = "other:1" })
			}
			setImage("cell1")
			owned(w, map[string][]string{"compute:1": {"cell2"}, "other:1": {"cell1"}})
			w.quiet()
			if n == 0 {
				setImage("cell2")
			} else {
				cut := w.wire.cutAfter(n, n%2 == 0)
				setImage("cell2")
				cut.orUntil(func(g Gomega) { g.Expect(stored(w)).To(Equal(map[string][]string{"other:1": {"cell1", "cell2"}})) })
				w.restart()
			}
			owned(w, map[string][]string{"other:1": {"cell1", "cell2"}})
			w.quiet()
			w.resync()
			Expect(read.Load()).To(BeEquivalentTo(2))
		})
	}

	It("of a Nova whose services have images of their own are known as well", func() {
		read := &atomic.Int32{}
		w, _ := openStackIn(newWorld(observing, prints(generatedOptions, read)), func(_ *fakenova.Server, job *batchv1.Job) { leavePod(job) })
		nova, ready := MakeNova("nova", w.ns, ""), condition.ServiceConfigReadyCondition
		w.condition(nova, novav1.OptionsKnownCondition, "True/Ready/", "options of all images are known: 2")
		Eventually(w.templates).Should(HaveKey("nova-api"))
		owned(w, map[string][]string{"api:1": {"nova"}, "scheduler:1": {"nova"}, "conductor:1": {"nova-cell0", "nova-cell1"}, "compute:1": {"nova-cell1"}})
		w.quiet()
		before := w.templates()
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.CustomServiceConfig = "[DEFAULT]\ndebug = maybe\n" })
		w.halted(nova, ready, novav1.OptionsRefusedReason, `spec.apiServiceTemplate.customServiceConfig: line 2: [DEFAULT] debug is "maybe", but should be true or false`)
		w.quiet()
		Expect(w.templates()).To(Equal(before), "the pods stay as they are")
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		w.condition(nova, ready, "True/Ready/", "customServiceConfig is valid, and api:1 has its options")
		w.resync()
		Expect(read.Load()).To(BeEquivalentTo(4))

		By("without an API")
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = nil })
		w.condition(nova, novav1.OptionsKnownCondition, "True/Ready/", "options of all images are known: 0")
		owned(w, map[string][]string{"conductor:1": {"nova-cell0", "nova-cell1"}, "compute:1": {"nova-cell1"}})
	})

	It("are read once for a Nova and its cells, and removed when none of them uses the image", func() {
		read := &atomic.Int32{}
		oneImage := func(o *controllers.Options) {
			o.Images.NovaAPI, o.Images.NovaScheduler, o.Images.NovaCompute = "conductor:1", "conductor:1", "conductor:1"
		}
		w, _ := openStackIn(newWorld(observing, oneImage, prints(generatedOptions, read)), func(_ *fakenova.Server, job *batchv1.Job) { leavePod(job) })
		nova := MakeNova("nova", w.ns, "")
		owned(w, map[string][]string{"conductor:1": {"nova", "nova-cell0", "nova-cell1"}})
		w.resync()
		Expect(read.Load()).To(BeEquivalentTo(1))
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = nil })
		owned(w, map[string][]string{"conductor:1": {"nova-cell0", "nova-cell1"}})
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = ptr.To[int32](1) })
		owned(w, map[string][]string{"conductor:1": {"nova", "nova-cell0", "nova-cell1"}})
		w.quiet()
		Expect(read.Load()).To(BeEquivalentTo(1))
	})

	It("refuse a value before a host is touched, and warn of what the image ignores", func() {
		w, _ := printing(generatedOptions)
		w.condition(cell(w, "cell1"), novav1.OptionsKnownCondition, "True/Ready/")
		wrong := MakeCompute("a", w.ns, "cell1")
		wrong.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = maybe\n"
		odd := MakeCompute("b", w.ns, "cell1")
		odd.Spec.CustomServiceConfigSecrets = []string{"mine"}
		odd.Spec.CustomServiceConfig = "[libvirt]\ncpu_mdoe = none\n"
		w.make(MakeSecret("mine", w.ns, "x", "[neutron]\npasswort = hunter2\n"), wrong, odd,
			w.role("r").Cell("cell1").Obj(), MakeNode("a", w.ns).Role("r").Obj(), MakeNode("b", w.ns).Role("r").Obj())
		w.computesReady("b")
		w.condition(w.compute("b"), condition.ServiceConfigReadyCondition, "True/OptionsWarned/",
			"spec.customServiceConfig: line 2: the image does not know [libvirt] cpu_mdoe and ignores it: do you mean [libvirt] cpu_mode?",
			`Secret "mine", key "x": line 2: the image does not know this option and ignores it`)
		w.halted(w.compute("a"), condition.ServiceConfigReadyCondition, novav1.OptionsRefusedReason,
			`spec.customServiceConfig: line 2: [DEFAULT] debug is "maybe", but should be true or false`)
		Expect(w.times("a", "nova")).To(BeZero())

		change(w.compute("a"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		w.computesReady("a")
		w.condition(w.compute("a"), condition.ServiceConfigReadyCondition, "True/Ready/", "customServiceConfig is valid")
		w.quiet()

		By("a template, of which the compute overrides what cannot be read")
		change(cell(w, "cell1"), func(c *novav1.NovaCell) {
			c.Spec.ComputeTemplates = []novav1.NovaComputeTemplate{{CustomServiceConfig: "[DEFAULT]\ndebug = maybe\n"}}
		})
		w.condition(w.compute("a"), condition.ServiceConfigReadyCondition, "True/OptionsWarned/",
			`spec.computeTemplates[0].customServiceConfig: line 2: [DEFAULT] debug is "maybe", but should be true or false (a later text overrides it)`)
		w.halted(w.compute("b"), condition.ServiceConfigReadyCondition, novav1.OptionsRefusedReason, `debug is "maybe", but should be true or false`)
	})

	It("refuse a value of services in pods before pods are replaced, and warn of what the image ignores", func() {
		w, _ := printing(generatedOptions)
		c, ready := cell(w, "cell1"), condition.ServiceConfigReadyCondition
		const at = `spec.conductorServiceTemplate.customServiceConfigSecrets: Secret "more", key "x": line 2: `
		w.make(MakeSecret("more", w.ns, "x", "[neutron]\npasswort = hunter2\n"))
		w.secretOf("passwords", "ServicePassword", "p", "CellDatabasePassword", "d")
		change(c, func(c *novav1.NovaCell) {
			c.Spec.Secret, c.Spec.CellDatabaseHostname = "passwords", "database.example"
			c.Spec.ConductorServiceTemplate.ContainerImage, c.Spec.ConductorServiceTemplate.CustomServiceConfigSecrets = "conductor:1", []string{"more"}
		})
		w.condition(c, ready, "True/OptionsWarned/", at+"the image does not know this option and ignores it")
		config := func() map[string][]byte { return get(Default, w.secret("cell1-conductor-config-data")).Data }
		before := config()
		w.setSecret("more", "x", "[DEFAULT]\ndebug = hunter2\n")
		w.halted(c, ready, novav1.OptionsRefusedReason, at+"[DEFAULT] debug should be true or false")
		Expect(config()).To(Equal(before), "the pods stay as they are")
		w.setSecret("more", "x", "[DEFAULT]\ndebug = true\n")
		w.condition(c, ready, "True/Ready/", "customServiceConfig is valid, and conductor:1 has its options")

		By("a compute in pods")
		compute := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ironic"}, Spec: novav1.NovaComputeSpec{CellName: "cell1", CustomServiceConfig: "[DEFAULT]\ndebug = maybe\n"}}
		w.make(compute)
		w.halted(compute, ready, novav1.OptionsRefusedReason, `spec.customServiceConfig: line 2: [DEFAULT] debug is "maybe", but should be true or false`)
		Expect(w.templates()).NotTo(HaveKey("ironic"))
		change(compute, func(c *novav1.NovaCompute) { c.Spec.CustomServiceConfig = "[libvirt]\ncpu_mdoe = none\n" })
		w.condition(compute, ready, "True/OptionsWarned/", "do you mean [libvirt] cpu_mode?")
		Eventually(w.templates).Should(HaveKey("ironic"))

		By("an image of the compute's own, which is read for it")
		change(compute, func(c *novav1.NovaCompute) {
			c.Spec.ContainerImage, c.Spec.CustomServiceConfig = "other:1", "[DEFAULT]\ndebug = true\n"
		})
		w.condition(compute, ready, "True/Ready/", "customServiceConfig is valid, and other:1 has its options")
		w.calm()
	})

	It("refuse a value of services of a Nova before their pods are replaced, and warn of what the image ignores", func() {
		oneImage := func(o *controllers.Options) {
			o.Images.NovaAPI, o.Images.NovaScheduler = o.Images.NovaConductor, o.Images.NovaConductor
		}
		w, _ := openStackIn(newWorld(observing, oneImage, prints(generatedOptions, &atomic.Int32{})), func(_ *fakenova.Server, job *batchv1.Job) { leavePod(job) })
		nova, ready := MakeNova("nova", w.ns, ""), condition.ServiceConfigReadyCondition
		w.condition(cell(w, "nova-cell1"), novav1.OptionsKnownCondition, "True/Ready/")
		change(nova, func(n *novav1.Nova) {
			n.Spec.SchedulerServiceTemplate.CustomServiceConfig = "[DEFAULT]\nmy_pi = 10.0.0.1\n"
		})
		const warning = "spec.schedulerServiceTemplate.customServiceConfig: line 2: the image does not know [DEFAULT] my_pi and ignores it: do you mean [DEFAULT] my_ip?"
		w.condition(nova, ready, "True/OptionsWarned/", warning)
		Eventually(w.templates).Should(And(HaveKey("nova-api"), HaveKey("nova-scheduler")))
		w.quiet()
		before := w.templates()

		change(nova, func(n *novav1.Nova) {
			n.Spec.APIServiceTemplate.CustomServiceConfig = "# ours\n[DEFAULT]\ndebug = maybe\n"
		})
		w.halted(nova, ready, novav1.OptionsRefusedReason, `spec.apiServiceTemplate.customServiceConfig: line 3: [DEFAULT] debug is "maybe", but should be true or false`)
		w.quiet()
		Expect(w.templates()).To(Equal(before), "the pods stay as they are")

		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		w.condition(nova, ready, "True/OptionsWarned/", warning)
		Eventually(w.templates).ShouldNot(Equal(before))
		change(nova, func(n *novav1.Nova) { n.Spec.SchedulerServiceTemplate.CustomServiceConfig = "" })
		w.condition(nova, ready, "True/Ready/", "customServiceConfig is valid, and conductor:1 has its options")
		w.quiet()
	})

	It("are not known of an image that cannot print them, and all else works", func() {
		w, _ := printing("go.mod")
		w.condition(cell(w, "cell1"), novav1.OptionsKnownCondition, "False/OptionsNotPrinted/Error", "printed no options")
		w.ready(cell(w, "cell1"))
		own := MakeCompute("a", w.ns, "cell1")
		own.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = maybe\n"
		w.make(own, w.role("r").Cell("cell1").Obj(), MakeNode("a", w.ns).Role("r").Obj())
		w.computesReady("a")
		w.condition(w.compute("a"), condition.ServiceConfigReadyCondition, "True/Ready/", "are not known: values are checked where they are used")
	})
})
