package podified_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/podsecurity"
)

// See docs/security.md.
var _ = Describe("Pods of services", func() {
	It("fit the Pod Security Standard restricted, and get no token", func() {
		w := newWorld()
		w.apply(cellSecrets)
		w.apply(cell(database))
		w.apply(`{apiVersion: nova.openstack.org/v1beta1, kind: NovaCompute, metadata: {name: nova-cell1-fake}, spec: {cellName: nova-cell1, computeDriver: fake.FakeDriver}}`)
		w.apply(glance(" {glanceAPIs: {default: {type: single, storage: {storageRequest: 1G}}}}"))
		for _, name := range []string{"nova-cell1-conductor", "nova-cell1-fake", "glance-default-single"} {
			set := w.set(name)
			Eventually(func(g Gomega) { get(g, set) }).Should(Succeed(), name)
			level, forbidden := podsecurity.Level(set.Spec.Template)
			Expect(level).To(Equal("restricted"), "%s: %v", name, forbidden)
			Expect(set.Spec.Template.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()), name)
		}
		jobs := &batchv1.JobList{}
		Expect(api.List(ctx, jobs, client.InNamespace(string(w)))).To(Succeed())
		Expect(jobs.Items).To(HaveLen(1))
		level, forbidden := podsecurity.Level(jobs.Items[0].Spec.Template)
		Expect(level).To(Equal("restricted"), "%v", forbidden)
		Expect(jobs.Items[0].Spec.Template.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
	})

	It("read a custom configuration as it was written, templates and all", func() {
		w := newWorld()
		w.apply(cellSecrets)
		custom := "[DEFAULT]\ninstance_name_template = {{ 7 * 7 }} {% raw %} $(id) `id` $HOME !unsafe\n"
		w.apply(cell(database + "\n  conductorServiceTemplate: {customServiceConfig: \"" + `[DEFAULT]\ninstance_name_template = {{ 7 * 7 }} {% raw %} $(id) ` + "`id`" + ` $HOME !unsafe\n` + "\"}"))
		Eventually(func(g Gomega) { get(g, w.set("nova-cell1-conductor")) }).Should(Succeed())
		Expect(w.config("nova-cell1-conductor", "02-nova-override.conf")).To(Equal(custom))
	})
})
