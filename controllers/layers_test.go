package controllers_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// template of computes of the roles.
func template(text string, roles ...string) novav1.NovaComputeTemplate {
	return novav1.NovaComputeTemplate{Roles: roles, CustomServiceConfig: text}
}

// layer changes the templates of cell1.
func (w *world) layer(f func(*novav1.NovaCellSpec)) {
	GinkgoHelper()
	change(MakeCell("cell1", w.ns).Obj(), func(c *novav1.NovaCell) { f(&c.Spec) })
}

// filesOf are the files that the last run of nova brought to a host, without the generated one.
func (w *world) filesOf(host string) map[string]string {
	GinkgoHelper()
	runs := w.did(host, "nova")
	Expect(runs).NotTo(BeEmpty())
	files := map[string]string{}
	for name, text := range runs[len(runs)-1].Files {
		if name != novav1.GeneratedConfigKey {
			files[name] = text
		}
	}
	return files
}

var _ = Describe("The templates of a cell", func() {
	const common1, large = "[DEFAULT]\nreserved_host_memory_mb = 4096\n", "[DEFAULT]\nreserved_host_memory_mb = 16384\n"

	It("are what new computes get, in their order and by role, and a compute's own text comes last", func() {
		w := newCloud()
		w.make(MakeSecret("audit", w.ns, "b", "[audit_middleware_notifications]\ntransport_url = rabbit://hunter2@audit/\n"))
		w.layer(func(s *novav1.NovaCellSpec) {
			s.ComputeTemplates = []novav1.NovaComputeTemplate{template(common1), template(large, "large"), {CustomServiceConfigSecrets: []string{"audit"}}}
		})
		own := MakeCompute("b", w.ns, "cell1")
		own.Spec.CustomServiceConfig, own.Spec.CustomServiceConfigSecrets = "[DEFAULT]\nreserved_host_memory_mb = 1\n", []string{"mine"}
		w.make(MakeSecret("mine", w.ns, "a", "[vendordata_dynamic_auth]\npassword = hunter2\n"), own,
			w.role("small").Cell("cell1").Obj(), w.role("large").Cell("cell1").Obj(), MakeNode("a", w.ns).Role("small").Obj(), MakeNode("b", w.ns).Role("large").Obj())
		w.computesReady("a", "b")
		const audit = "[audit_middleware_notifications]\ntransport_url = rabbit://hunter2@audit/\n\n"
		Expect(w.filesOf("a")).To(Equal(map[string]string{
			"01-template-01-config.conf": common1, "01-template-02-secrets.conf": audit, "02-nova-override.conf": "",
		}))
		Expect(w.filesOf("b")).To(Equal(map[string]string{
			"01-template-01-config.conf": common1, "01-template-02-config.conf": large, "01-template-03-secrets.conf": audit,
			"02-nova-override.conf": "[DEFAULT]\nreserved_host_memory_mb = 1\n", "03-nova-secrets.conf": "[vendordata_dynamic_auth]\npassword = hunter2\n\n",
		}))
		Eventually(func(g Gomega) int32 { return get(g, MakeCell("cell1", w.ns).Obj()).Status.Computes.OwnConfig }).Should(BeEquivalentTo(1))

		By("a node that comes later, and a restart of the manager")
		w.make(MakeNode("c", w.ns).Role("large").Obj())
		w.computesReady("c")
		Expect(w.filesOf("c")).To(HaveLen(4))
		w.resync()
		w.exactlyOnce()
		Expect(w.book()).To(And(HaveKeyWithValue("a/nova", 1), HaveKeyWithValue("b/nova", 1), HaveKeyWithValue("c/nova", 1)))

		By("the own text and Secrets of the compute that are removed")
		change(w.compute("b"), func(c *novav1.NovaExternalCompute) {
			c.Spec.CustomServiceConfig, c.Spec.CustomServiceConfigSecrets = "", nil
		})
		Eventually(func(g Gomega) int32 { return get(g, MakeCell("cell1", w.ns).Obj()).Status.Computes.OwnConfig }).Should(BeZero())
		Eventually(w.times).WithArguments("b", "nova").Should(Equal(2))
		Expect(w.filesOf("b")).To(HaveLen(4))
	})

	It("run again exactly on the computes that read something else", func() {
		w := newCloud()
		w.make(w.role("small").Cell("cell1").Obj(), w.role("large").Cell("cell1").Obj(), MakeNode("a", w.ns).Role("small").Obj(), MakeNode("b", w.ns).Role("large").Obj())
		w.computesReady("a", "b")
		times := func(a, b int) {
			GinkgoHelper()
			both := func() []int { return []int{w.times("a", "nova"), w.times("b", "nova")} }
			Eventually(both).Should(Equal([]int{a, b}))
			w.computesReady("a", "b")
			w.quiet()
			Expect(both()).To(Equal([]int{a, b}))
		}
		times(1, 1)
		By("a template of one role")
		before := get(Default, w.compute("a")).ResourceVersion
		w.layer(func(s *novav1.NovaCellSpec) {
			s.ComputeTemplates = []novav1.NovaComputeTemplate{template(large, "large")}
		})
		times(1, 2)
		Expect(get(Default, w.compute("a")).ResourceVersion).To(Equal(before), "nothing is written about a compute that it does not concern")
		By("one of another role before it, and one that says nothing")
		w.layer(func(s *novav1.NovaCellSpec) {
			s.ComputeTemplates = []novav1.NovaComputeTemplate{{}, template(common1, "small"), template(large, "large")}
		})
		times(2, 2)
		By("a role that reads the same as before, from a template for all")
		w.layer(func(s *novav1.NovaCellSpec) {
			s.ComputeTemplates = []novav1.NovaComputeTemplate{template(common1, "small"), template(large, "large", "none")}
		})
		times(2, 2)
		By("the content of a Secret of a template")
		w.make(MakeSecret("more", w.ns, "a", common1))
		w.layer(func(s *novav1.NovaCellSpec) { s.ComputeTemplates[0].CustomServiceConfigSecrets = []string{"more"} })
		times(3, 2)
		w.setSecret("more", "a", large)
		times(4, 2)
		By("no templates, as at the beginning")
		w.layer(func(s *novav1.NovaCellSpec) { s.ComputeTemplates = nil })
		times(5, 3)
		Expect(w.did("a", "nova")[4].Hash).To(Equal(w.did("a", "nova")[0].Hash), "a compute without templates is what it was")
		Expect(w.did("b", "nova")[2].Hash).To(Equal(w.did("b", "nova")[0].Hash))
	})

	It("reach computes as their role allows: one that fails holds the others", func() {
		w := newCloud()
		w.makeTogether(w.role("compute").Cell("cell1").MaxUnavailable(1).Obj(), 3)
		w.computesReady(nodeNames(3)...)
		w.hosts.Decide(func(_, step string) fakekube.Outcome {
			if step == "nova" {
				return fakekube.Failed
			}
			return fakekube.OK
		})
		w.layer(func(s *novav1.NovaCellSpec) { s.ComputeTemplates = []novav1.NovaComputeTemplate{template(common1)} })
		Eventually(func(g Gomega) {
			held := 0
			for _, n := range nodeNames(3) {
				if c := get(g, w.compute(n)).Status.Conditions.Get(condition.DeploymentReadyCondition); c != nil && c.Reason == condition.Reason(edpm.RolloutHeld) {
					held++
				}
			}
			g.Expect(held).To(Equal(2))
		}).Should(Succeed())
		changed := func() (hosts int) {
			for _, n := range nodeNames(3) {
				if w.times(n, "nova") > 1 {
					hosts++
				}
			}
			return hosts
		}
		Eventually(changed).Should(Equal(1))
		Consistently(changed).Should(Equal(1))
	})

	It("are refused on the computes that have them, and on no other, until they are corrected", func() {
		w := newCloud()
		w.layer(func(s *novav1.NovaCellSpec) {
			s.ComputeTemplates = []novav1.NovaComputeTemplate{template(common1), {Roles: []string{"large"}, CustomServiceConfigSecrets: []string{"missing"}}}
		})
		w.make(w.role("small").Cell("cell1").Obj(), w.role("large").Cell("cell1").Obj(), MakeNode("a", w.ns).Role("small").Obj(), MakeNode("b", w.ns).Role("large").Obj())
		w.computesReady("a")
		w.halted(w.compute("b"), condition.ServiceConfigReadyCondition, common.SecretMissingReason,
			`NovaCell cell1: spec.computeTemplates[1].customServiceConfigSecrets: Secret "missing" does not exist: create it`)
		w.make(MakeSecret("missing", w.ns, "a", "[DEFAULT]\ndebug = true\nhost = hunter2\n"))
		w.halted(w.compute("b"), condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason,
			`NovaCell cell1: spec.computeTemplates[1].customServiceConfigSecrets: Secret "missing", key "a": line 3: [DEFAULT] host registers the host as another compute`, "edpm_nova_host")
		w.setSecret("missing", "a", "[DEFAULT]\nhunter2\n")
		w.halted(w.compute("b"), condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason, `key "a": line 2 is neither`)
		c := get(Default, w.compute("b")).Status.Conditions.Get(condition.ServiceConfigReadyCondition)
		Expect(c.Message).NotTo(ContainSubstring("hunter2"))
		Expect(w.times("b", "nova")).To(BeZero())
		w.layer(func(s *novav1.NovaCellSpec) {
			s.ComputeTemplates = []novav1.NovaComputeTemplate{template(strings.ReplaceAll(common1, "=", "")), template(common1, "large")}
		})
		w.halted(w.compute("a"), condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason, "NovaCell cell1: spec.computeTemplates[0].customServiceConfig: line 2")
		w.layer(func(s *novav1.NovaCellSpec) { s.ComputeTemplates = s.ComputeTemplates[1:] })
		w.computesReady("a", "b")
		w.exactlyOnce()
	})

	It("come from the Nova that the cell belongs to, or from the cell itself", func() {
		w := newWorld()
		nova := MakeNova("nova", w.ns, "passwords", "cell1", "cell2")
		t := nova.Spec.CellTemplates["cell1"]
		t.ComputeTemplates = []novav1.NovaComputeTemplate{template(common1)}
		nova.Spec.CellTemplates["cell1"] = t
		w.make(MakeSecret("passwords", w.ns, "NovaPassword", "p"), nova)
		templates := func(cell string) func(Gomega) []novav1.NovaComputeTemplate {
			return func(g Gomega) []novav1.NovaComputeTemplate {
				return get(g, MakeCell(cell, w.ns).Obj()).Spec.ComputeTemplates
			}
		}
		Eventually(templates("nova-cell1")).Should(HaveLen(1))
		Eventually(templates("nova-cell2")).Should(BeEmpty())
		change(MakeCell("nova-cell2", w.ns).Obj(), func(c *novav1.NovaCell) {
			c.Spec.ComputeTemplates = []novav1.NovaComputeTemplate{template(large)}
		})
		w.resync()
		Expect(templates("nova-cell2")(Default)).To(HaveLen(1), "the Nova has none to put in their place")
		change(MakeNova("nova", w.ns, ""), func(n *novav1.Nova) {
			t := n.Spec.CellTemplates["cell1"]
			t.ComputeTemplates = nil
			n.Spec.CellTemplates["cell1"] = t
		})
		Eventually(templates("nova-cell1")).Should(BeEmpty())
	})
})
