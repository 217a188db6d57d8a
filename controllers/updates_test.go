package controllers_test

import (
	"regexp"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

// bring has the operators bring images of a release of nova.
func (w *world) bring(release string) {
	i := &w.opts.Images
	i.NovaAPI, i.NovaConductor, i.NovaScheduler, i.NovaCompute, i.OVNController = "api:"+release, "conductor:"+release, "scheduler:"+release, "compute:"+release, "ovn:"+release
}

// images are those of all StatefulSets, and of all Jobs there have ever been, by name.
func (w *world) images(g Gomega) map[string]string {
	images := map[string]string{}
	sets, jobs := &appsv1.StatefulSetList{}, &batchv1.JobList{}
	g.Expect(api.List(ctx, sets, client.InNamespace(w.ns))).To(Succeed())
	g.Expect(api.List(ctx, jobs, client.InNamespace(w.ns))).To(Succeed())
	for _, set := range sets.Items {
		images[set.Name] = set.Spec.Template.Spec.Containers[0].Image
	}
	for _, job := range jobs.Items {
		images[job.Name] = job.Spec.Template.Spec.Containers[0].Image
	}
	return images
}

// deployed waits until all services of a Nova are of a release, and returns what images does.
func (w *world) deployed(release string) map[string]string {
	GinkgoHelper()
	var images map[string]string
	Eventually(func(g Gomega) {
		images = w.images(g)
		for name, image := range map[string]string{"nova-api": "api:", "nova-scheduler": "scheduler:", "nova-cell0-conductor": "conductor:", "nova-cell1-conductor": "conductor:"} {
			g.Expect(images).To(HaveKeyWithValue(name, image+release))
		}
	}).Should(Succeed())
	return images
}

// offered is the identifier of the update that a Nova shows.
func (w *world) offered(nova *novav1.Nova, changes ...string) string {
	GinkgoHelper()
	id := ""
	Eventually(func(g Gomega) {
		c := get(g, nova).Status.Conditions.Get(common.UpdateAvailableCondition)
		g.Expect(c).NotTo(BeNil())
		for _, change := range changes {
			g.Expect(c.Message).To(ContainSubstring(change))
		}
		found := regexp.MustCompile("set annotation " + common.UpdateAnnotation + " to ([0-9a-f]+)").FindStringSubmatch(c.Message)
		g.Expect(found).To(HaveLen(2))
		id = found[1]
	}).Should(Succeed())
	return id
}

var _ = Describe("A manager that brings other images", func() {
	It("changes nothing that runs until a person accepts them", func() {
		w, server := newOpenStack()
		nova := MakeNova("nova", w.ns, "", "")
		w.makeNodes(1, "compute")
		up(server, "n000")
		w.computesReady("n000")
		w.deployed("1")
		w.calm()
		before := w.images(Default)

		By("bringing another release")
		w.bring("2")
		w.restart()
		id := w.offered(nova, "api from api:1 to api:2", "conductor from conductor:1 to conductor:2", "compute from compute:1 to compute:2")
		w.calm()
		Expect(w.images(Default)).To(Equal(before))
		Expect(get(Default, MakeCell("nova-cell1", w.ns).Obj()).Status.Conditions.Get(common.UpdateAvailableCondition)).To(BeNil(), "its Nova decides")

		By("adding a compute, which is of the release of its cell")
		w.make(MakeNode("n001", w.ns).Role("compute").Obj())
		up(server, "n000", "n001")
		w.computesReady("n001")
		Expect(get(Default, w.compute("n001")).Status.Images).To(HaveKeyWithValue(novav1.ComputeComponent, "compute:1"))
		before = w.deployed("1")

		By("accepting what it does not bring")
		annotate(nova, common.UpdateAnnotation, "another")
		w.calm()
		Expect(w.images(Default)).To(Equal(before))

		By("accepting it")
		annotate(nova, common.UpdateAnnotation, id)
		Eventually(w.images).Should(And(HaveKeyWithValue("nova-cell0-conductor", "conductor:2"), HaveKeyWithValue("nova-cell1-conductor", "conductor:2")))
		w.condition(nova, novav1.UpdateReadyCondition, "False/Updating/Info", "StatefulSet nova-cell0-conductor") // no pods run here
		w.calm()
		after := w.images(Default)
		Expect(after).To(And(HaveKeyWithValue("nova-scheduler", "scheduler:1"), HaveKeyWithValue("nova-api", "api:1")))
		Expect(get(Default, nova).Status.Conditions.Get(common.UpdateAvailableCondition)).To(BeNil())

		By("bringing a third one")
		w.bring("3")
		w.restart()
		third := w.offered(nova, "api from api:2 to api:3")
		Expect(third).NotTo(Equal(id))
		w.calm()
		Expect(w.images(Default)).To(Equal(after))

		By("accepting it while a compute is down, and taking it back")
		server.Stop("n001")
		w.halted(w.compute("n001"), novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason)
		annotate(nova, common.UpdateAnnotation, third)
		w.condition(nova, novav1.UpgradeCheckReadyCondition, "False/ComputesDown/Warning")
		change(nova, func(n *novav1.Nova) { delete(n.Annotations, common.UpdateAnnotation) })
		w.condition(nova, novav1.UpgradeCheckReadyCondition, "True/Ready/")
		Expect(get(Default, nova).Status.Images).To(HaveKeyWithValue("api", "api:2"))
		server.Run("n001")
		w.computesReady("n001")
		w.calm()
		Expect(w.images(Default)).To(Equal(after))
	})

	It("updates images that have a tag and a digest, of which only the digest is another one", func() {
		digests := func(o *controllers.Options, digit string) {
			for name, image := range map[string]*string{"api": &o.Images.NovaAPI, "conductor": &o.Images.NovaConductor, "scheduler": &o.Images.NovaScheduler, "compute": &o.Images.NovaCompute} {
				*image = "registry.example:5000/nova/" + name + ":2026.1@sha256:" + strings.Repeat(digit, 64)
			}
			o.Images.NovaConductor = strings.Replace(o.Images.NovaConductor, ":2026.1", "", 1) // a digest alone
		}
		read := &atomic.Int32{}
		w, server := openStackIn(newWorld(observing, func(o *controllers.Options) { digests(o, "a") }, prints(generatedOptions, read)), func(_ *fakenova.Server, job *batchv1.Job) { leavePod(job) })
		startSets(w.ns)
		nova, compute := MakeNova("nova", w.ns, "", ""), func() string { return w.opts.Images.NovaCompute }
		w.makeNodes(1, "compute")
		up(server, "n000")
		w.computesReady("n000")
		w.condition(nova, novav1.OptionsKnownCondition, "True/Ready/")
		before := w.opts.Images
		w.running.end()
		digests(&w.opts, "b")
		w.running = startManager(w.ns, w.opts)
		i := w.opts.Images
		annotate(nova, common.UpdateAnnotation, w.offered(nova, "api from "+before.NovaAPI+" to "+i.NovaAPI, "compute from "+before.NovaCompute+" to "+compute()))
		Eventually(func(g Gomega) {
			status := get(g, nova).Status
			g.Expect(status.Deployed).To(BeNil())
			g.Expect(status.Update).To(BeNil())
			g.Expect(status.Images).To(HaveKeyWithValue("api", i.NovaAPI))
		}).Should(Succeed())
		Expect(w.images(Default)).To(And(
			HaveKeyWithValue("nova-api", i.NovaAPI), HaveKeyWithValue("nova-scheduler", i.NovaScheduler),
			HaveKeyWithValue("nova-cell0-conductor", i.NovaConductor), HaveKeyWithValue("nova-cell1-conductor", i.NovaConductor)))
		w.computesReady("n000")
		Expect(w.deployedImages("n000")).To(Equal([]any{before.NovaCompute, compute()}))
		Eventually(func(g Gomega) {
			list := &corev1.ConfigMapList{}
			g.Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
			var known []string
			for _, cm := range list.Items {
				if options.IsOptions(&cm) && cm.BinaryData["options"] != nil {
					known = append(known, cm.Data["image"])
				}
			}
			g.Expect(known).To(ConsistOf(i.NovaAPI, i.NovaScheduler, i.NovaConductor, compute()))
		}).Should(Succeed())
		w.calm()
		Expect(w.databases.times()).To(HaveEach(1))
	})

	It("updates nothing while computes are down or services of other hosts are left, and continues", func() {
		w, server := newOpenStack()
		nova, check := MakeNova("nova", w.ns, "", ""), novav1.UpgradeCheckReadyCondition
		w.makeNodes(3, "compute")
		up(server, "n000", "n001", "n002", "former")
		server.Stop("former")
		w.computesReady("n000", "n001", "n002")
		w.deployed("1")
		w.calm()
		before := w.images(Default)
		annotate(w.node("n002"), common.DisableAnnotation, "repair")
		w.halted(w.compute("n002"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason)
		server.Stop("n001", "n002")
		w.halted(w.compute("n001"), novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason)
		w.halted(w.compute("n002"), novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason)
		w.bring("2")
		w.restart()
		annotate(nova, common.UpdateAnnotation, w.offered(nova))
		w.condition(nova, check, "False/ComputesDown/Warning", "on 1 hosts", "old release: n001.", "edpm.openstack.org/disable")
		w.calm()
		Expect(w.images(Default)).To(Equal(before))

		By("taking it back")
		change(nova, func(n *novav1.Nova) { delete(n.Annotations, common.UpdateAnnotation) })
		id := w.offered(nova, "api from api:1 to api:2")
		Expect(get(Default, nova).Status.Deployed).To(BeNil())
		Expect(nova.Status.Conditions.Get(check)).To(BeNil())
		annotate(nova, common.UpdateAnnotation, id)
		w.condition(nova, check, "False/ComputesDown/Warning")

		By("repairing the compute")
		server.Run("n001")
		w.condition(nova, check, "False/ComputeServicesLeft/Warning", "of 1 hosts", "down: former.", "openstack compute service delete")
		w.calm()
		Expect(w.images(Default)).To(Equal(before))
		server.Delete("former")
		Eventually(w.images).Should(HaveKeyWithValue("nova-cell1-conductor", "conductor:2"))
	})

	It("updates nothing while nova cannot be asked for computes, unless no API is ready that could be", func() {
		w, server := newOpenStack()
		nova, check := MakeNova("nova", w.ns, "", ""), novav1.UpgradeCheckReadyCondition
		w.makeNodes(1, "compute")
		up(server, "n000")
		w.computesReady("n000")
		w.deployed("1")
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "nova-api"}}
		setReady := func(ready int32) {
			GinkgoHelper()
			get(Default, set)
			set.Status.Replicas, set.Status.ReadyReplicas = 1, ready
			Expect(api.Status().Update(ctx, set)).To(Succeed())
		}
		setReady(1)
		server.Break(fakenova.NovaDown)
		w.condition(nova, novav1.NovaComputeServicesReadyCondition, "False/NovaAPIUnreachable/Warning")
		w.bring("2")
		w.restart()
		annotate(nova, common.UpdateAnnotation, w.offered(nova))
		w.condition(nova, check, "False/NovaAPIUnreachable/Warning", "answers 503", "not known which computes are up")
		w.calm()
		w.deployed("1")
		setReady(0)
		w.condition(nova, check, "True/Ready/", "Warnings: computes were not looked at, as no pod of the API is ready")
		Eventually(w.images).Should(HaveKeyWithValue("nova-cell1-conductor", "conductor:2"))
	})

	It("keeps what the pods of an earlier version run, which recorded nothing", func() {
		w, _ := newOpenStack()
		nova, cell := MakeNova("nova", w.ns, "", ""), MakeCell("nova-cell1", w.ns).Obj()
		w.makeNodes(1, "compute")
		Eventually(func(g Gomega) {
			c := get(g, w.compute("n000"))
			c.Spec.NovaComputeContainerImage = "compute:0"
			g.Expect(api.Update(ctx, c)).To(Succeed())
		}).Should(Succeed())
		w.deployed("1")
		w.calm()
		before := w.images(Default)
		w.running.end()
		forget(nova, &nova.Status.Release)
		forget(cell, &cell.Status.Release)
		change(cell, func(c *novav1.NovaCell) { c.Spec.ConductorServiceTemplate.ContainerImage = "" })
		w.bring("2")
		w.running = startManager(w.ns, w.opts)
		w.offered(nova, "api from api:1 to api:2", "conductor from conductor:1 to conductor:2", "compute from compute:0 to compute:2")
		w.calm()
		Expect(w.images(Default)).To(Equal(before))
	})
})

var _ = Describe("A Nova that was restored from a backup without its status", func() {
	name := func(n *novav1.Nova) {
		n.Spec.APIServiceTemplate.ContainerImage, n.Spec.SchedulerServiceTemplate.ContainerImage = "api:2", "scheduler:2"
		for cell, t := range n.Spec.CellTemplates {
			t.ConductorServiceTemplate.ContainerImage, t.NovaComputeContainerImage = "conductor:2", "compute:2"
			n.Spec.CellTemplates[cell] = t
		}
	}
	for what, choose := range map[string]func(w *world, nova *novav1.Nova){
		"that its spec names": func(_ *world, nova *novav1.Nova) { change(nova, name) },
		"that were accepted before": func(w *world, nova *novav1.Nova) {
			w.bring("2")
			w.running = startManager(w.ns, w.opts)
			id := w.offered(nova)
			w.running.end()
			annotate(nova, common.UpdateAnnotation, id)
		},
	} {
		It("updates what runs to images "+what+" in the order of nova, once they have been checked", func() {
			w, server := newOpenStack()
			nova := MakeNova("nova", w.ns, "", "")
			w.makeNodes(1, "compute")
			up(server, "n000")
			w.computesReady("n000")
			w.deployed("1")
			w.calm()
			w.running.end()
			choose(w, nova)
			for _, obj := range []client.Object{nova, MakeCell("nova-cell0", w.ns).Obj(), MakeCell("nova-cell1", w.ns).Obj()} {
				loseStatus(obj)
			}
			w.running = startManager(w.ns, w.opts)
			Eventually(w.images).Should(And(HaveKeyWithValue("nova-cell0-conductor", "conductor:2"), HaveKeyWithValue("nova-cell1-conductor", "conductor:2")))
			w.condition(nova, novav1.UpdateReadyCondition, "False/Updating/Info", "StatefulSet nova-cell0-conductor") // no pods run here
			w.calm()
			Expect(w.images(Default)).To(And(HaveKeyWithValue("nova-scheduler", "scheduler:1"), HaveKeyWithValue("nova-api", "api:1")))
			Expect(w.jobsThatRan("nova-upgrade-check")).NotTo(BeEmpty())
			Expect(get(Default, w.compute("n000")).Status.Images).To(HaveKeyWithValue(novav1.ComputeComponent, "compute:1"))
			Expect(get(Default, MakeCell("nova-cell1", w.ns).Obj()).Status.Images).To(HaveKeyWithValue(novav1.ComputeComponent, "compute:1"))
		})
	}
})

// loseStatus removes the status of an object, which backups do not have.
func loseStatus(obj client.Object) {
	GinkgoHelper()
	Expect(api.Status().Patch(ctx, obj, jsonPatch(`{"status": null}`))).To(Succeed())
}

// forget has an object record no images, as those of earlier versions.
func forget(obj client.Object, release *common.Release) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	Expect(release.Images).NotTo(BeEmpty())
	release.Images = nil
	Expect(api.Status().Update(ctx, obj)).To(Succeed())
}
