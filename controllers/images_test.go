package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

var _ = Describe("A manager without an image for the execution environment", func() {
	withoutRunner := func(o *controllers.Options) { o.Images.AnsibleEE, o.Images.NovaAnsibleEE = "", "" }

	It("says so on node and compute, runs nothing, and runs what names its own", func() {
		w := newCloud(withoutRunner)
		own := MakeService("own", w.ns)
		w.make(own, w.role("compute").Services("own").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), condition.InputReadyCondition, common.RunnerImageMissingReason, "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT", "OpenStackDataPlaneService own")
		w.calm()
		change(own, func(s *dataplanev1.OpenStackDataPlaneService) { s.Spec.OpenStackAnsibleEERunnerImage = "mine:1" })
		w.nodesReady("n")
		w.halted(w.compute("n"), condition.InputReadyCondition, common.RunnerImageMissingReason, "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT", "spec.ansibleEEContainerImage")
		w.calm()
		change(w.compute("n"), func(c *novav1.NovaExternalCompute) { c.Spec.AnsibleEEContainerImage = "mine:1" })
		w.computesReady("n")
	})

	It("says so on a run that a user creates, and starts it once it names one", func() {
		w := newCloud(withoutRunner)
		run := MakeRun("r", w.ns)
		run.Spec.Image = ""
		w.make(run)
		w.halted(run, condition.InputReadyCondition, common.RunnerImageMissingReason, "RUNNER_IMG", "spec.image")
		w.nothingRuns()
		change(run, func(r *ansibleeev1.OpenStackAnsibleEE) { r.Spec.Image = "mine:1" })
		w.ready(run)
	})

	It("leaves a run alone whose Job was created before", func() {
		w := newCloud()
		run := MakeRun("r", w.ns)
		run.Spec.Image = ""
		w.make(run)
		w.ready(run)
		withoutRunner(&w.opts)
		w.restart()
		w.calm()
		w.ready(run)
	})
})

var _ = Describe("A manager without images of OpenStack", func() {
	It("says which variable lacks on a compute, runs nothing, and runs what names its own", func() {
		w := newCloud(func(o *controllers.Options) { o.Images.NovaLibvirt = "" })
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.nodesReady("n")
		w.halted(w.compute("n"), condition.InputReadyCondition, common.ImageMissingReason, "libvirt", "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT")
		w.calm()
		change(w.compute("n"), func(c *novav1.NovaExternalCompute) { c.Spec.NovaLibvirtContainerImage = "mine:1" })
		w.computesReady("n")
	})

	It("says so on a cell and on a Nova, each of which continues when it names one", func() {
		w := newWorld()
		startDatabases(w.ns)
		nova, cell := w.makeNovaWithDatabases(), MakeCell("nova-cell1", w.ns).Obj()
		w.condition(cell, novav1.NovaConductorReadyCondition, "False/ImageMissing/Error", "nova-conductor", "RELATED_IMAGE_NOVA_CONDUCTOR_IMAGE_URL_DEFAULT")
		w.condition(nova, novav1.NovaAPIReadyCondition, "False/ImageMissing/Error", "nova-api-os-compute", "RELATED_IMAGE_NOVA_API_IMAGE_URL_DEFAULT")
		w.calm()
		change(nova, func(n *novav1.Nova) {
			n.Spec.APIServiceTemplate.ContainerImage = "api:1"
			for name, t := range n.Spec.CellTemplates {
				t.ConductorServiceTemplate.ContainerImage = "conductor:1"
				n.Spec.CellTemplates[name] = t
			}
		})
		w.condition(nova, condition.DeploymentReadyCondition, "False/ImageMissing/Error", "nova-scheduler", "RELATED_IMAGE_NOVA_SCHEDULER_IMAGE_URL_DEFAULT")
		Eventually(w.images).Should(And(HaveKeyWithValue("nova-api", "api:1"), HaveKeyWithValue("nova-cell1-conductor", "conductor:1"), Not(HaveKey("nova-scheduler"))))
		change(nova, func(n *novav1.Nova) { n.Spec.SchedulerServiceTemplate.ContainerImage = "scheduler:1" })
		Eventually(w.images).Should(HaveKeyWithValue("nova-scheduler", "scheduler:1"))
	})
})
