package podified_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	k8scorev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

// sets are the images of all StatefulSets, by name.
func (w world) sets(g Gomega) map[string]string {
	list := &appsv1.StatefulSetList{}
	g.Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	images := map[string]string{}
	for _, set := range list.Items {
		images[set.Name] = set.Spec.Template.Spec.Containers[0].Image
	}
	return images
}

// named leaves a message in pods whose name has a part.
func named(part, message string) func(*k8scorev1.Pod) string {
	return func(pod *k8scorev1.Pod) string {
		if strings.Contains(pod.Name, part) {
			return message
		}
		return ""
	}
}

var _ = Describe("An update of a Nova", func() {
	var w world
	nova := func() *novav1.Nova { return &novav1.Nova{ObjectMeta: w.meta("nova")} }
	services := []string{"nova-api", "nova-scheduler", "nova-cell0-conductor", "nova-cell1-conductor", "nova-cell1-metadata"}
	release := func(conductors, scheduler, metadata, api string) map[string]string {
		return map[string]string{
			"nova-cell0-conductor": "conductor:" + conductors, "nova-cell1-conductor": "conductor:" + conductors,
			"nova-scheduler": "scheduler:" + scheduler, "nova-cell1-metadata": "api:" + metadata, "nova-api": "api:" + api,
		}
	}

	// choose names the images of a release, none for an empty one.
	choose := func(release string) {
		GinkgoHelper()
		image := func(of string) string {
			if release == "" {
				return ""
			}
			return of + ":" + release
		}
		change(nova(), func(n *novav1.Nova) {
			n.Spec.APIServiceTemplate.ContainerImage, n.Spec.SchedulerServiceTemplate.ContainerImage = image("api"), image("scheduler")
			for name, t := range n.Spec.CellTemplates {
				t.ConductorServiceTemplate.ContainerImage, t.MetadataServiceTemplate.ContainerImage = image("conductor"), image("api")
				n.Spec.CellTemplates[name] = t
			}
		})
	}
	check := novav1.UpgradeCheckReadyCondition

	BeforeEach(func() {
		w = newWorld()
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"NovaPassword": "p", "NovaCellDatabasePassword": "d", "NovaAPIDatabasePassword": "a", "MetadataSecret": "m"}}`)
		w.apply(w.secret("bus", "transport_url", "rabbit://bus/"))
		w.apply(`apiVersion: nova.openstack.org/v1beta1
kind: Nova
metadata: {name: nova}
spec:
  secret: osp-secret
  keystoneAuthURL: http://keystone.example:5000
  apiServiceTemplate: {replicas: 2}
  cellTemplates:
    cell0: {cellMessageBusSecretName: bus, hasAPIAccess: true, conductorServiceTemplate: {replicas: 2}}
    cell1: {cellMessageBusSecretName: bus, metadataServiceTemplate: {replicas: 1}}`)
		ready(nova())
		Expect(w.sets(Default)).To(Equal(release("1", "1", "1", "1")))
	})

	It("goes step by step in the order of nova, and changes nothing behind a step that fails", func() {
		By("failing the schema of the API database")
		cluster.failJobs(named("api-db-sync", "DatabaseUnreachable"))
		mark := wire.Mark()
		choose("2")
		shows(nova(), condition.DBSyncReadyCondition, "False/DatabaseUnreachable/Warning", "nova-api-db-sync")
		shows(nova(), novav1.UpdateReadyCondition, "False/Updating/Info", "the schema of the API database")
		Consistently(w.sets).Should(Equal(release("1", "1", "1", "1")))

		By("crashing new conductors")
		cluster.crash(func(p *k8scorev1.Pod) string {
			if p.Spec.Containers[0].Image == "conductor:2" {
				return "crashed"
			}
			return ""
		})
		cluster.failJobs(nil)
		Eventually(w.sets).Should(Equal(release("2", "1", "1", "1")))
		shows(nova(), novav1.UpdateReadyCondition, "False/Updating/Info", "StatefulSet nova-cell0-conductor", "conductor:2")
		Consistently(w.sets).Should(Equal(release("2", "1", "1", "1")))
		Expect(w.ran(mark)).To(ConsistOf("nova-upgrade-check", "nova-api-db-sync", "nova-cell0-db-sync", "nova-cell1-db-sync"), "data is migrated at the end")

		By("repairing them")
		before := wire.Mark()
		cluster.crash(nil)
		Eventually(w.sets).Should(Equal(release("2", "2", "2", "2")))
		Eventually(func() []string { return w.ran(mark) }).Should(ContainElements("nova-cell0-online-migrations", "nova-cell1-online-migrations"))
		ready(nova())
		Expect(get(Default, nova()).Status.Conditions.Get(novav1.UpdateReadyCondition)).To(BeNil())
		Expect(get(Default, nova()).Status.Deployed).To(BeNil())
		Expect(order(wire.Since(before, "statefulsets"), services)).To(HaveExactElements("nova-scheduler", "nova-cell1-metadata", "nova-api"))
		quiet()
	})

	It("brings computes in pods their image once the control plane has its own, one after the other", func() {
		server := fakenova.Start("p")
		DeferCleanup(server.Close)
		change(nova(), func(n *novav1.Nova) { n.Spec.KeystoneAuthURL = server.URL })
		names := []string{"ironic-a", "ironic-b", "ironic-chosen"}
		for _, name := range names {
			server.Register(name+"-0", name+"-1")
			w.apply("apiVersion: nova.openstack.org/v1beta1\nkind: NovaCompute\nmetadata: {name: " + name + "}\nspec: {cellName: nova-cell1, replicas: 2}")
		}
		compute := func(name string) *novav1.NovaCompute { return &novav1.NovaCompute{ObjectMeta: w.meta(name)} }
		change(compute("ironic-chosen"), func(c *novav1.NovaCompute) { c.Spec.ContainerImage = "mine:1" })
		images := func(g Gomega) []string {
			sets := w.sets(g)
			return []string{sets["ironic-a"], sets["ironic-b"], sets["ironic-chosen"]}
		}
		Eventually(images).Should(Equal([]string{"compute:1", "compute:1", "mine:1"}))
		server.DiscoverByService() // as the Job would, which has no program here
		for _, name := range names {
			ready(compute(name))
		}
		ready(nova())
		crashed := ""
		crash := func(image string) {
			crashed = image
			cluster.crash(func(p *k8scorev1.Pod) string {
				if p.Spec.Containers[0].Image == crashed {
					return "crashed"
				}
				return ""
			})
		}
		mark := wire.Mark()
		crash("api:2")
		choose("2")
		change(nova(), func(n *novav1.Nova) {
			t := n.Spec.CellTemplates["cell1"]
			t.NovaComputeContainerImage = "compute:2"
			n.Spec.CellTemplates["cell1"] = t
		})
		Eventually(w.sets).Should(HaveKeyWithValue("nova-cell1-metadata", "api:2"))
		Consistently(images).Should(Equal([]string{"compute:1", "compute:1", "mine:1"}))

		By("the first of them not starting")
		crash("compute:2")
		Eventually(images).Should(Equal([]string{"compute:2", "compute:1", "mine:1"}))
		shows(nova(), novav1.UpdateReadyCondition, "False/Updating/Info", "all pods of NovaCompute ironic-a run image compute:2")
		Consistently(images).Should(Equal([]string{"compute:2", "compute:1", "mine:1"}))
		Expect(get(Default, compute("ironic-b")).Status.Conditions.Get(common.UpdateAvailableCondition)).To(BeNil(), "it follows without being asked")
		Expect(w.pod("ironic-a-0").Spec.Containers[0].Image).To(Equal("compute:1"), "one pod is replaced at a time")
		Expect(w.ran(mark)).NotTo(ContainElement("nova-cell1-online-migrations"))

		By("it starting")
		crash("")
		Eventually(images).Should(Equal([]string{"compute:2", "compute:2", "mine:1"}))
		ready(nova())
		Expect(w.ran(mark)).To(ContainElement("nova-cell1-online-migrations"))
		quiet()
	})

	It("changes nothing that the check of the new image refuses, and is taken back in one write", func() {
		before, mark, births := get(Default, nova()).Status.DeepCopy(), wire.Mark(), w.births()
		cluster.failJobs(named("upgrade-check", "UpgradeCheckFailed\nPlacement API: No credentials specified for placement`"))
		choose("2")
		shows(nova(), check, "False/UpgradeCheckFailed/Warning", "nova-upgrade-check-", "Placement API: No credentials specified for placement. Correct that, or set the images back")
		shows(nova(), novav1.UpdateReadyCondition, "False/Updating/Info", "UpgradeCheckReady")
		Expect(w.jobImage("nova-upgrade-check")).To(Equal("api:2"))
		Consistently(w.sets).Should(Equal(release("1", "1", "1", "1")))
		Expect(w.ran(mark)).To(HaveEach("nova-upgrade-check"))

		By("looking after what is deployed meanwhile")
		change(nova(), func(n *novav1.Nova) {
			n.Spec.SchedulerServiceTemplate.CustomServiceConfig = "[DEFAULT]\ndebug = true\n"
		})
		Eventually(func() string { return w.config("nova-scheduler", "02-nova-override.conf") }).Should(ContainSubstring("debug"))
		change(nova(), func(n *novav1.Nova) { n.Spec.SchedulerServiceTemplate.CustomServiceConfig = "" })

		By("taking it back")
		choose("")
		ready(nova())
		Eventually(func(g Gomega) {
			after := get(g, nova()).Status
			g.Expect(after.Images).To(Equal(before.Images))
			g.Expect(after.Jobs).To(Equal(before.Jobs))
			g.Expect(after.Deployed).To(BeNil())
			g.Expect(after.Conditions.Get(check)).To(BeNil())
			g.Expect(w.jobs()).NotTo(HaveKey("nova-upgrade-check"))
		}).Should(Succeed())
		for name, birth := range w.births() {
			if !strings.HasPrefix(name, "nova-scheduler") {
				Expect(births).To(HaveKeyWithValue(name, birth))
			}
		}
		Expect(w.ran(mark)).To(HaveEach("nova-upgrade-check"))
		quiet()
	})

	It("refuses computes that the new release does not support, and names what to do", func() {
		cluster.failJobs(named("upgrade-check", "ComputesTooOld\n2 computes are older than nova 33.0.0 supports, which is Epoxy with service version 68: host-1, host-2"))
		mark := wire.Mark()
		choose("2")
		shows(nova(), check, "False/ComputesTooOld/Warning", "service version 68: host-1, host-2", "Set an image of a release between theirs and this one first, or delete their services")
		Consistently(w.sets).Should(Equal(release("1", "1", "1", "1")))
		Expect(w.ran(mark)).To(HaveEach("nova-upgrade-check"))

		By("services of an earlier release, which are not those that are deployed")
		Expect(w.config("nova-upgrade-check", "deployed.json")).To(MatchJSON(`{"conductor": "nova-cell0-conductor", "cells": ["cell0", "cell1"], "computes": []}`))
		cluster.failJobs(named("upgrade-check", "ServicesOlder\n1 services are older than the release that is deployed, which has service version 68: nova-conductor on controller-1 (66)"))
		shows(nova(), check, "False/ServicesOlder/Warning", "nova-conductor on controller-1 (66). Restart them with the images that are deployed", "openstack compute service delete")
		choose("")
		ready(nova())
	})

	It("begins once the data of the release that is deployed is migrated", func() {
		cluster.failJobs(named("cell1-online-migrations", "DatabaseUnreachable"))
		change(nova(), func(n *novav1.Nova) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, common.RerunAnnotation, "restored") })
		shows(nova(), novav1.OnlineMigrationsReadyCondition, "False/DatabaseUnreachable/Warning", "nova-cell1-online-migrations")
		mark := wire.Mark()
		choose("2")
		shows(nova(), check, "False/DataNotMigrated/Warning", "nova-cell1-online-migrations", "until condition OnlineMigrationsReady is True")
		shows(nova(), novav1.OnlineMigrationsReadyCondition, "False/DatabaseUnreachable/Warning")
		Expect(w.jobImage("nova-cell1-online-migrations")).To(Equal("api:1"))
		Consistently(w.sets).Should(Equal(release("1", "1", "1", "1")))
		Expect(w.ran(mark)).NotTo(ContainElement("nova-upgrade-check"))
		cluster.failJobs(nil)
		Eventually(w.sets).Should(Equal(release("2", "2", "2", "2")))
		ready(nova())
		quiet()
	})

	It("refuses an image that is older than the schema, also while an update is in progress, which continues", func() {
		By("putting a third release in while conductors of the second crash")
		cluster.crash(func(p *k8scorev1.Pod) string {
			if p.Spec.Containers[0].Image == "conductor:2" {
				return "crashed"
			}
			return ""
		})
		choose("2")
		Eventually(w.sets).Should(Equal(release("2", "1", "1", "1")))
		cluster.failJobs(named("upgrade-check", "ImageTooOld\nthe image has nova 31.0.0, which does not know revision abc of the schema of cell1"))
		mark := wire.Mark()
		choose("0")
		shows(nova(), check, "False/ImageTooOld/Warning", "nova 31.0.0", "revision abc of the schema of cell1", "Set an image of the release of api:1")
		Expect(w.jobImage("nova-upgrade-check")).To(Equal("api:0"))
		Consistently(w.sets).Should(Equal(release("2", "1", "1", "1")))

		By("repairing conductors")
		cluster.crash(nil)
		Eventually(w.sets).Should(Equal(release("2", "2", "2", "2")))
		shows(nova(), novav1.UpdateReadyCondition, "False/Updating/Info", "images that were chosen since")
		Expect(w.ran(mark)).To(ConsistOf("nova-upgrade-check", "nova-cell0-online-migrations", "nova-cell1-online-migrations"))
		choose("2")
		ready(nova())
		Expect(get(Default, nova()).Status.UpgradeCheck).To(BeNil())
	})

	It("is complete once data is migrated, which waits for computes of the old release, and does so again the next time", func() {
		cluster.failJobs(named("cell1-online-migrations", "ComputesOlder\n1 computes are older than nova 33.0.0: host-1"))
		mark := wire.Mark()
		choose("2")
		shows(nova(), novav1.OnlineMigrationsReadyCondition, "False/ComputesOlder/Warning", "1 computes are older than nova 33.0.0: host-1. Update them")
		shows(nova(), novav1.UpdateReadyCondition, "False/Updating/Info", "OnlineMigrationsReady")
		Expect(w.sets(Default)).To(Equal(release("2", "2", "2", "2")))
		Expect(w.jobImage("nova-cell1-online-migrations")).To(Equal("api:2"))
		Expect(get(Default, nova()).Status.Deployed).NotTo(BeNil())
		Expect(w.ran(mark)).NotTo(ContainElement("nova-cell1-mapping"), "API and scheduler are restarted for it")
		cluster.failJobs(nil)
		ready(nova())
		quiet()
		mark = wire.Mark()
		choose("3")
		Eventually(func() []string { return w.ran(mark) }).Should(ContainElements("nova-cell0-online-migrations", "nova-cell1-online-migrations"))
		ready(nova())
	})

	It("continues with warnings of the check, and shows them", func() {
		cluster.leave(named("upgrade-check", "UpgradeWarnings\nhw_machine_type unset: Instances found without hw_machine_type set"))
		cluster.failJobs(named("api-db-sync", "DatabaseUnreachable"))
		choose("2")
		shows(nova(), condition.DBSyncReadyCondition, "False/DatabaseUnreachable/Warning")
		shows(nova(), check, "True/Ready/", "Warnings: hw_machine_type unset: Instances found without hw_machine_type set")
		cluster.failJobs(nil)
		ready(nova())
		Expect(w.sets(Default)).To(Equal(release("2", "2", "2", "2")))
	})
})

// jobImage is the image of the Job of a name without its hash.
func (w world) jobImage(name string) string {
	GinkgoHelper()
	jobs := &batchv1.JobList{}
	Expect(api.List(ctx, jobs, client.InNamespace(string(w)))).To(Succeed())
	for _, job := range jobs.Items {
		if strings.HasPrefix(job.Name, name+"-") {
			return job.Spec.Template.Spec.Containers[0].Image
		}
	}
	return ""
}

// order are the names in the order in which writes mention them first.
func order(writes, names []string) []string {
	var seen []string
	for _, write := range writes {
		for _, name := range names {
			if strings.HasSuffix(strings.Fields(write)[1], "/"+name) && !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
	}
	return seen
}
