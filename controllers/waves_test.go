package controllers_test

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	k8scorev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

// setImage sets the image of the computes of a cell.
func setImage(cell *novav1.NovaCell, image string) {
	GinkgoHelper()
	change(cell, func(c *novav1.NovaCell) { c.Spec.NovaComputeContainerImage = image })
}

// counts waits until a cell counts its computes so.
func counts(cell *novav1.NovaCell, want novav1.ComputesStatus) {
	GinkgoHelper()
	Eventually(func(g Gomega) { g.Expect(get(g, cell).Status.Computes).To(HaveValue(Equal(want))) }).Should(Succeed())
}

// deployedImages are the images of the runs of step nova on a host, in their order.
func (w *world) deployedImages(host string) []any {
	var images []any
	for _, e := range w.did(host, novav1.NovaStep) {
		images = append(images, e.Vars["edpm_nova_compute_image"])
	}
	return images
}

var _ = Describe("Another image for the computes of a cell", func() {
	var w *world
	var cell *novav1.NovaCell
	hosts := []string{"n000", "n001", "n002"}

	BeforeEach(func() {
		w = newCloud()
		cell = MakeCell("cell1", w.ns).Obj()
		w.make(w.role("compute").Cell("cell1").Obj())
		w.makeNodes(len(hosts), "compute")
		w.computesReady(hosts...)
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
	})

	It("is brought to one first, and to the others one at a time once it works", func() {
		sick := w.sick(map[string]fakekube.Outcome{"n000/nova": fakekube.Failed})
		setImage(cell, "compute:2")
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		counts(cell, novav1.ComputesStatus{Total: 3, Outdated: 3, Failed: 1})
		Expect(get(Default, cell).Status.ComputeUpdate).To(HaveValue(Equal(novav1.ComputeUpdate{Image: "compute:2", First: "n000"})))
		Consistently(func(g Gomega) {
			for _, name := range hosts[1:] {
				compute := get(g, w.compute(name))
				isReady(g, compute)
				g.Expect(compute.Status.Images).To(HaveKeyWithValue(novav1.ComputeComponent, "compute:1"))
			}
		}).Should(Succeed())

		By("repairing it")
		release := w.hosts.Hold()
		sick.heal("n000/nova")
		Eventually(func(g Gomega) {
			g.Expect(get(g, w.compute("n000")).Status.Conditions.Get(condition.DeploymentReadyCondition).Reason).To(Equal(condition.Reason(edpm.Running)))
		}).Should(Succeed())
		release()
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		w.computesReady(hosts...)
		Expect(get(Default, cell).Status.ComputeUpdate).To(HaveValue(Equal(novav1.ComputeUpdate{Image: "compute:2", Verified: true})))
		for _, name := range hosts[1:] {
			Expect(w.deployedImages(name)).To(Equal([]any{"compute:1", "compute:2"}), "of %s", name)
			Expect(w.times(name, "libvirt")).To(Equal(1), "the image of nova-compute concerns no guest")
			Expect(get(Default, w.compute(name)).Spec.NovaComputeContainerImage).To(Equal("compute:2"))
		}
		first, second := w.did("n001", "nova")[1], w.did("n002", "nova")[1]
		Expect(first.Job).NotTo(Equal(second.Job), "one of them is unavailable at a time")
		w.calm()
		w.quiet()
	})

	It("is pulled by all hosts before any is restarted, which one that cannot do so prevents", func() {
		sick := w.sick(map[string]fakekube.Outcome{"n001/pull-images": fakekube.Failed})
		setImage(cell, "compute:2")
		w.halted(w.compute("n001"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed), "pull-images")
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.RolloutHeld), "n001")
		counts(cell, novav1.ComputesStatus{Total: 3, Outdated: 3, Failed: 1})
		Consistently(func(g Gomega) {
			for _, name := range hosts {
				g.Expect(w.deployedImages(name)).To(Equal([]any{"compute:1"}), "of %s", name)
			}
		}).Should(Succeed())
		Expect(get(Default, w.compute("n001")).Spec.NovaComputeContainerImage).To(BeEmpty(), "its spec is as it was")

		By("repairing it")
		sick.heal("n001/pull-images")
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		w.computesReady(hosts...)
		for _, name := range hosts {
			steps := w.steps(name)
			Expect(slices.Index(steps, "pull-images")).To(And(BeNumerically(">", 0), BeNumerically("<", len(steps)-1)), "of %s: %v", name, steps)
			Expect(w.did(name, "pull-images")[0].Vars).To(And(HaveKeyWithValue("edpm_images", []any{"compute:2"}), HaveKeyWithValue("edpm_images_prune", false)))
			Expect(get(Default, w.compute(name)).Status.PulledImage).To(BeEmpty())
		}
		w.calm()
		w.quiet()
	})

	It("is not brought to one whose image was chosen, which is named", func() {
		change(w.compute("n000"), func(c *novav1.NovaExternalCompute) { c.Spec.NovaComputeContainerImage = "mine:1" })
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 2, Pinned: 1, PinnedNames: []string{"n000"}})
		setImage(cell, "compute:2")
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 2, Pinned: 1, PinnedNames: []string{"n000"}})
		w.computesReady(hosts...)
		Expect(w.deployedImages("n000")).To(Equal([]any{"compute:1", "mine:1"}))

		By("giving it back")
		Expect(api.Patch(ctx, w.compute("n000"), jsonPatch(`{"spec":{"novaComputeContainerImage":null}}`))).To(Succeed())
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		Expect(w.deployedImages("n000")).To(Equal([]any{"compute:1", "mine:1", "compute:2"}))
	})

	It("is not brought to those for which templates of the cell name one, until they do not", func() {
		images := func(t ...novav1.NovaComputeTemplate) {
			GinkgoHelper()
			w.layer(func(s *novav1.NovaCellSpec) { s.ComputeTemplates = t })
		}
		w.make(w.role("gpu").Cell("cell1").Obj(), MakeNode("gpu", w.ns).Role("gpu").Obj(), MakeNode("own", w.ns).Role("gpu").Obj())
		w.computesReady("gpu", "own")
		change(w.compute("own"), func(c *novav1.NovaExternalCompute) {
			c.Spec.NovaComputeContainerImage, c.Spec.NovaLibvirtContainerImage = "mine:1", "mine-libvirt:1"
		})
		counts(cell, novav1.ComputesStatus{Total: 5, Current: 4, Pinned: 1, PinnedNames: []string{"own"}})
		named := novav1.NovaComputeTemplate{Roles: []string{"gpu"}, Images: novav1.NovaComputeImages{Compute: "gpu:1", Libvirt: "libvirt:gpu"}}
		images(novav1.NovaComputeTemplate{Roles: []string{"gpu"}, Images: novav1.NovaComputeImages{Compute: "gpu:0"}}, named)
		pinned := novav1.ComputesStatus{Total: 5, Current: 3, Pinned: 2, PinnedNames: []string{"gpu", "own"}}
		counts(cell, pinned)
		setImage(cell, "compute:2")
		Eventually(func(g Gomega) {
			g.Expect(get(g, cell).Status.ComputeUpdate).To(HaveValue(Equal(novav1.ComputeUpdate{Image: "compute:2", Verified: true})))
		}).Should(Succeed())
		counts(cell, pinned)
		w.computesReady(append(hosts, "gpu", "own")...)
		Expect(w.deployedImages("gpu")).To(Equal([]any{"compute:1", "gpu:1"}))
		Expect(w.deployedImages("own")).To(Equal([]any{"compute:1", "mine:1"}), "what a person wrote into its spec comes before templates")
		of := func(host string) any {
			runs := w.did(host, "libvirt")
			return runs[len(runs)-1].Vars["edpm_libvirt_image"]
		}
		Expect([]any{of("gpu"), of("own"), of("n000")}).To(Equal([]any{"libvirt:gpu", "mine-libvirt:1", w.did("n000", "libvirt")[0].Vars["edpm_libvirt_image"]}))

		By("an entry that no longer names one of nova-compute")
		named.Images.Compute = ""
		images(named)
		counts(cell, novav1.ComputesStatus{Total: 5, Current: 4, Pinned: 1, PinnedNames: []string{"own"}})
		Expect(w.deployedImages("gpu")).To(Equal([]any{"compute:1", "gpu:1", "compute:2"}))
		Expect(of("gpu")).To(Equal("libvirt:gpu"))
		w.calm()
		w.quiet()
	})

	It("is brought to computes that an earlier version left behind only with the next one", func() {
		w.running.end()
		change(cell, func(c *novav1.NovaCell) { c.Spec.NovaComputeContainerImage = "compute:2" })
		Expect(api.Get(ctx, metaKey(cell), cell)).To(Succeed())
		cell.Status.Images[novav1.ComputeComponent] = "compute:2"
		Expect(api.Status().Update(ctx, cell)).To(Succeed())
		w.running = startManager(w.ns, w.opts)
		counts(cell, novav1.ComputesStatus{Total: 3, Outdated: 3})
		w.calm()
		for _, name := range hosts {
			Expect(w.deployedImages(name)).To(Equal([]any{"compute:1"}))
		}
		setImage(cell, "compute:3")
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		for _, name := range hosts {
			Expect(w.deployedImages(name)).To(Equal([]any{"compute:1", "compute:3"}))
		}
	})

	It("continues where it was when the manager is restarted", func() {
		w.sick(map[string]fakekube.Outcome{"n000/nova": fakekube.Failed})
		setImage(cell, "compute:2")
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		w.running.end()
		w.hosts.Decide(func(string, string) fakekube.Outcome { return fakekube.OK })
		w.running = startManager(w.ns, w.opts)
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		Expect(w.deployedImages("n002")).To(Equal([]any{"compute:1", "compute:2"}))
	})
})

var _ = Describe("An update of a Nova", func() {
	It("is complete when its computes have followed", func() {
		w := newWorld()
		nova := MakeNova("nova", w.ns, "osp-secret", "cell1")
		w.make(MakeSecret("osp-secret", w.ns, "NovaPassword", "p"), MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"), nova, w.role("compute").Cell("nova-cell1").Obj())
		for _, c := range []string{"cell0", "cell1"} {
			w.make(MakeSecret("rabbitmq-transport-url-nova-"+c+"-transport", w.ns, "transport_url", "rabbit://"+c))
		}
		w.makeNodes(2, "compute")
		w.computesReady(nodeNames(2)...)
		cell := MakeCell("nova-cell1", w.ns).Obj()
		counts(cell, novav1.ComputesStatus{Total: 2, Current: 2})

		By("failing the second compute")
		sick := w.sick(map[string]fakekube.Outcome{"n001/nova": fakekube.Failed})
		change(nova, func(n *novav1.Nova) {
			t := n.Spec.CellTemplates["cell1"]
			t.NovaComputeContainerImage = "compute:2"
			n.Spec.CellTemplates["cell1"] = t
		})
		counts(cell, novav1.ComputesStatus{Total: 2, Current: 1, Outdated: 1, Failed: 1})
		w.condition(nova, novav1.UpdateReadyCondition, "False/Updating/Info", "no compute of NovaCell nova-cell1 is outdated")

		By("repairing it")
		sick.heal("n001/nova")
		counts(cell, novav1.ComputesStatus{Total: 2, Current: 2})
		Eventually(func(g Gomega) {
			g.Expect(get(g, nova).Status.Conditions.Get(novav1.UpdateReadyCondition)).To(BeNil())
			g.Expect(get(g, nova).Status.Deployed).To(BeNil())
		}).Should(Succeed())
		w.quiet()
	})
})

var _ = Describe("A restart of nova-compute", func() {
	const another = "[DEFAULT]\ndebug = true\n"
	var w *world
	var server *fakenova.Server
	deploy := func(hosts ...string) {
		w, server = newOpenStack()
		w.makeNodes(len(hosts), "compute")
		up(server, hosts...)
		w.computesReady(hosts...)
	}
	configure := func(host string) {
		change(w.compute(host), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = another })
	}

	It("waits for what nova does on the host, and others do not wait for it", func() {
		deploy("n000", "n001")
		complete := server.Move("n000")
		configure("n000")
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.HostBusy), "is being moved (running)")
		configure("n001")
		w.computesReady("n001")
		Expect(w.times("n001", novav1.NovaStep)).To(Equal(2))

		By("a build, a resize and a snapshot")
		server.Boot("n000", 1)
		for _, task := range []string{"spawning", "resize_migrating", "image_uploading"} {
			server.Alter("guest-0", func(g *fakenova.Guest) { g.Task = task })
			complete()
			w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.HostBusy), "has the task "+task)
		}
		Expect(w.times("n000", novav1.NovaStep)).To(Equal(1))
		w.restart()
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.HostBusy), "has the task image_uploading")

		By("nothing being done any more")
		server.Alter("guest-0", func(g *fakenova.Guest) { g.Task = "" })
		w.computesReady("n000")
		Expect(w.times("n000", novav1.NovaStep)).To(Equal(2))
		w.exactlyOnce()
	})

	It("waits before a manager that was just started has listed the services of computes", func() {
		deploy("n000")
		server.Boot("n000", 1)
		server.Alter("guest-0", func(g *fakenova.Guest) { g.Task = "spawning" })
		w.opts.Services.Interval, w.opts.Services.Soon = time.Hour, time.Hour
		w.restart()
		configure("n000")
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.HostBusy), "has the task spawning")
		Expect(w.times("n000", novav1.NovaStep)).To(Equal(1))

		By("nothing being done any more")
		server.Alter("guest-0", func(g *fakenova.Guest) { g.Task = "" })
		Eventually(func() int { return w.times("n000", novav1.NovaStep) }).Should(Equal(2))
	})

	It("waits, as one of libvirt does, for a resize on both of its hosts", func() {
		deploy("n000", "n001")
		complete := server.Resize("n000", "n001")
		for _, host := range []string{"n000", "n001"} {
			change(w.compute(host), func(c *novav1.NovaExternalCompute) { c.Spec.NovaLibvirtContainerImage = "libvirt:2" })
			w.halted(w.compute(host), condition.DeploymentReadyCondition, condition.Reason(edpm.HostBusy), "is being moved (migrating)")
		}
		Expect(w.times("n000", "libvirt") + w.times("n001", "libvirt")).To(Equal(2))
		complete()
		w.computesReady("n000", "n001")
		first, second := w.did("n000", "libvirt"), w.did("n001", "libvirt")
		Expect(first).To(HaveLen(2))
		Expect(second).To(HaveLen(2))
		Expect(first[1].Job).NotTo(Equal(second[1].Job), "one of them is unavailable at a time")
	})

	It("continues if a person asks for it, and while nova does not answer", func() {
		deploy("n000")
		server.Move("n000")
		configure("n000")
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.HostBusy))
		annotate(w.compute("n000"), common.IgnoreBusyAnnotation, "true")
		Eventually(func() int { return w.times("n000", novav1.NovaStep) }).Should(Equal(2))
		w.computesReady("n000")
		change(w.compute("n000"), func(c *novav1.NovaExternalCompute) { delete(c.Annotations, common.IgnoreBusyAnnotation) })
		server.Break(fakenova.NovaDown)
		change(w.compute("n000"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "" })
		Eventually(func() int { return w.times("n000", novav1.NovaStep) }).Should(Equal(3))
	})

	It("makes the compute Ready again once nova-compute has reported since", func() {
		deploy("n000")
		server.DownAfter(time.Hour)
		server.Stop("n000")
		configure("n000")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceNotReportedReason, "since step nova ended")
		Expect(get(Default, w.compute("n000")).Status.ComputeService.Up).To(BeTrue(), "nova has not noticed")
		server.Run("n000")
		w.computesReady("n000")
	})
})

// withConductor makes a cell without a Nova that has a conductor and an API database, and two computes.
func withConductor() (*world, *novav1.NovaCell) {
	GinkgoHelper()
	w := newWorld(func(o *controllers.Options) { o.Images.NovaConductor = "conductor:1" })
	w.databases = startDatabases(w.ns)
	password, cell := MakeSecret("cell1-password", w.ns, "ServicePassword", "p"), MakeCell("cell1", w.ns).Obj()
	password.Data[novav1.CellDatabasePasswordKey], password.Data[novav1.APIDatabasePasswordKey] = []byte("d"), []byte("a")
	cell.Spec.CellDatabaseHostname, cell.Spec.APIDatabaseHostname = "database.example", "database.example"
	w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"), password, MakeSecret("cell1-bus", w.ns, "transport_url", "rabbit://cell1"), cell, w.role("compute").Cell("cell1").Obj())
	w.makeNodes(2, "compute")
	w.computesReady(nodeNames(2)...)
	return w, cell
}

var _ = Describe("The services of a cell in pods", func() {
	It("restart once when all of its computes have followed", func() {
		w, cell := withConductor()
		template := func(g Gomega) k8scorev1.PodTemplateSpec {
			return get(g, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "cell1-conductor"}}).Spec.Template
		}
		Eventually(func(g Gomega) { template(g) }).Should(Succeed())
		w.calm()
		before := template(Default)

		sick := w.sick(map[string]fakekube.Outcome{"n001/nova": fakekube.Failed})
		setImage(cell, "compute:2")
		w.calm()
		counts(cell, novav1.ComputesStatus{Total: 2, Outdated: 2})

		By("the conductor being ready, which comes before computes")
		startSets(w.ns)
		w.halted(w.compute("n001"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		counts(cell, novav1.ComputesStatus{Total: 2, Current: 1, Outdated: 1, Failed: 1})
		Expect(template(Default)).To(Equal(before))

		sick.heal("n001/nova")
		Eventually(template).ShouldNot(Equal(before))
		after := template(Default)
		Expect(after.Spec.Containers[0].Image).To(Equal("conductor:1"))
		w.computesReady(nodeNames(2)...)

		By("starting the manager again")
		w.restart()
		w.calm()
		Expect(template(Default)).To(Equal(after))
	})
	It("have their data migrated by the release of an update once they and all computes run it", func() {
		w, cell := withConductor()
		migrations := func() []string { return w.jobsThatRan("cell1-online-migrations") }
		w.condition(cell, novav1.OnlineMigrationsReadyCondition, "False/Updating/Info", "Waiting until all pods of the services are ready")
		Expect(migrations()).To(BeEmpty())
		startSets(w.ns)
		w.condition(cell, novav1.OnlineMigrationsReadyCondition, "True/Ready/", "nova_cell1")
		Expect(migrations()).To(HaveLen(1))

		By("updating the conductor and the computes, of which one fails")
		sick := w.sick(map[string]fakekube.Outcome{"n001/nova": fakekube.Failed})
		change(cell, func(c *novav1.NovaCell) {
			c.Spec.ConductorServiceTemplate.ContainerImage, c.Spec.NovaComputeContainerImage = "conductor:2", "compute:2"
		})
		w.halted(w.compute("n001"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		w.condition(cell, novav1.OnlineMigrationsReadyCondition, "False/Updating/Info", "no compute of NovaCell cell1 is outdated: see its status.computes")
		w.restart()
		w.halted(w.compute("n001"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		Expect(w.jobsThatRan("cell1-db-sync")).To(HaveLen(2))
		Consistently(migrations).Should(HaveLen(1))

		By("repairing it")
		sick.heal("n001/nova")
		w.condition(cell, novav1.OnlineMigrationsReadyCondition, "True/Ready/")
		counts(cell, novav1.ComputesStatus{Total: 2, Current: 2})
		w.restart()
		w.calm()
		Expect(migrations()).To(HaveLen(2))
		Expect(w.databases.times()).To(HaveEach(1))
	})

	It("have their data migrated by one alone that is responsible, which is their Nova if they have one", func() {
		w, _ := newOpenStack()
		w.deployed("1")
		Eventually(func() []string { return w.jobsThatRan("nova-cell1-online-migrations") }).Should(HaveLen(1))
		w.calm()
		Expect(get(Default, MakeCell("nova-cell1", w.ns).Obj()).Status.Conditions.Get(novav1.OnlineMigrationsReadyCondition)).To(BeNil())
	})
})

// jobsThatRan are the names of the Jobs that have succeeded, of a name without its hash.
func (w *world) jobsThatRan(name string) []string {
	var ran []string
	for job := range w.databases.times() {
		if strings.HasPrefix(job, name+"-") {
			ran = append(ran, job)
		}
	}
	return ran
}
