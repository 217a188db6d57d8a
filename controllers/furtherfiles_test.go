package controllers_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

var _ = Describe("The further files of computes", func() {
	const (
		rules, rulesOfOne, rulesOfHost = "a: one\n", "a: two\n", "a: three\n"
		resources                      = "meta: {schema_version: '1.0'}\n"
	)
	fromConfigMap := common.ConfigFile{Name: "policy.yaml", ConfigMap: &common.FileSource{Name: "policies"}}

	// twoRoles makes a compute of each of two roles, and returns how often step nova ran on both.
	twoRoles := func() (w *world, times func(a, b int)) {
		w = newCloud()
		w.make(w.role("small").Cell("cell1").Obj(), w.role("large").Cell("cell1").Obj(), MakeNode("a", w.ns).Role("small").Obj(), MakeNode("b", w.ns).Role("large").Obj())
		w.computesReady("a", "b")
		return w, func(a, b int) {
			GinkgoHelper()
			both := func() []int { return []int{w.times("a", "nova"), w.times("b", "nova")} }
			Eventually(both).Should(Equal([]int{a, b}))
			w.computesReady("a", "b")
			w.quiet()
			Expect(both()).To(Equal([]int{a, b}))
			Expect([]int{w.times("a", "libvirt"), w.times("b", "libvirt")}).To(Equal([]int{1, 1}), "libvirt reads none of them")
		}
	}

	It("come from templates and from the compute itself, and are brought once to the computes that read them", func() {
		w, times := twoRoles()
		times(1, 1)
		By("a ConfigMap for all, and a text for one role")
		w.make(MakeConfigMap("policies", w.ns, "policy.yaml", rules))
		w.layer(func(s *novav1.NovaCellSpec) {
			s.ComputeTemplates = []novav1.NovaComputeTemplate{
				{FurtherFiles: novav1.FurtherFiles{ConfigFiles: []common.ConfigFile{fromConfigMap}}},
				{Roles: []string{"large"}, FurtherFiles: novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"provider.yaml": resources}}},
			}
		})
		times(2, 2)
		Expect(w.filesOf("a")).To(Equal(map[string]string{"02-nova-override.conf": "", "policy.yaml": rules}))
		Expect(w.filesOf("b")).To(Equal(map[string]string{"02-nova-override.conf": "", "policy.yaml": rules, "provider.yaml": resources}))
		w.condition(MakeCell("cell1", w.ns).Obj(), novav1.ConfigRolledOutCondition, "True/Ready/", "2 pods and computes")

		By("a file of the compute's own, from a Secret")
		w.make(MakeSecret("mine", w.ns, "rules", rulesOfHost))
		change(w.compute("b"), func(c *novav1.NovaExternalCompute) {
			c.Spec.ConfigFiles = []common.ConfigFile{{Name: "policy.yaml", Secret: &common.FileSource{Name: "mine", Key: "rules"}}}
		})
		times(2, 3)
		Expect(w.filesOf("b")).To(HaveKeyWithValue("policy.yaml", rulesOfHost))
		Eventually(func(g Gomega) int32 { return get(g, MakeCell("cell1", w.ns).Obj()).Status.Computes.OwnConfig }).Should(BeEquivalentTo(1))

		By("the content of the ConfigMap, which another file replaces on one of them")
		w.setConfigMap("policies", "policy.yaml", rulesOfOne)
		times(3, 3)
		Expect(w.filesOf("a")).To(HaveKeyWithValue("policy.yaml", rulesOfOne))
		Eventually(func(g Gomega) string { return shown(g, MakeCell("cell1", w.ns).Obj(), novav1.ConfigRolledOutCondition) }).Should(HavePrefix("True"))

		By("a restart of the manager, and the content of the Secret")
		w.restart()
		w.setSecret("mine", "rules", rules)
		times(3, 4)

		By("none, as at the beginning")
		w.layer(func(s *novav1.NovaCellSpec) { s.ComputeTemplates = nil })
		change(w.compute("b"), func(c *novav1.NovaExternalCompute) { c.Spec.ConfigFiles = nil })
		Eventually(func() string { runs := w.did("b", "nova"); return runs[len(runs)-1].Hash }).Should(Equal(w.did("b", "nova")[0].Hash))
		Eventually(func() string { runs := w.did("a", "nova"); return runs[len(runs)-1].Hash }).Should(Equal(w.did("a", "nova")[0].Hash))
		w.computesReady("a", "b")
		Expect(w.filesOf("a")).To(Equal(map[string]string{"02-nova-override.conf": ""}))
	})

	It("are refused with object, key and line, where admission did not see them, until they are corrected", func() {
		w, times := twoRoles()
		cell := "NovaCell cell1: spec.computeTemplates[0].configFiles"
		w.layer(func(s *novav1.NovaCellSpec) {
			s.ComputeTemplates = []novav1.NovaComputeTemplate{{Roles: []string{"large"}, FurtherFiles: novav1.FurtherFiles{ConfigFiles: []common.ConfigFile{
				fromConfigMap, {Name: "vendor_data.json", Secret: &common.FileSource{Name: "vendor"}},
			}}}}
		})
		ready := condition.ServiceConfigReadyCondition
		w.halted(w.compute("b"), ready, common.ConfigMapMissingReason, cell+`[policy.yaml]: ConfigMap "policies", key "policy.yaml": ConfigMap "policies" does not exist: create it`)
		w.make(MakeConfigMap("policies", w.ns, "policy.yaml", "a: b\nc: [\n"))
		w.halted(w.compute("b"), ready, novav1.InvalidConfigReason, cell+`[policy.yaml]: ConfigMap "policies", key "policy.yaml": line 2: did not find expected`)
		w.setConfigMap("policies", "policy.yaml", rules)
		w.halted(w.compute("b"), ready, common.SecretMissingReason, cell+`[vendor_data.json]: Secret "vendor", key "vendor_data.json": Secret "vendor" does not exist`)
		w.make(MakeSecret("vendor", w.ns, "vendor_data.json", "{\n\"password\": hunter2\n}"))
		w.halted(w.compute("b"), ready, novav1.InvalidConfigReason, cell+`[vendor_data.json]: Secret "vendor", key "vendor_data.json": line 2: is not valid JSON: correct it`)
		w.setSecret("vendor", "vendor_data.json", `"`+strings.Repeat("x", 256<<10)+`"`)
		w.halted(w.compute("b"), ready, novav1.InvalidConfigReason, "with it the files have 262153 bytes, and the maximum is 262144")
		w.setSecret("vendor", "vendor_data.json", `{"password": "hunter2"}`)
		times(1, 2)
		Expect(w.filesOf("b")).To(Equal(map[string]string{"02-nova-override.conf": "", "policy.yaml": rules, "vendor_data.json": `{"password": "hunter2"}`}))
		for kind, text := range everything(w.ns) {
			Expect(text).NotTo(ContainSubstring("hunter2"), kind)
		}
	})
})
