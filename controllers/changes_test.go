package controllers_test

import (
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

func (w *world) setSecret(name, key, value string) {
	GinkgoHelper()
	change(MakeSecret(name, w.ns, "", ""), func(s *corev1.Secret) { s.Data = map[string][]byte{key: []byte(value)} })
}

func (w *world) setConfigMap(name, key, value string) {
	GinkgoHelper()
	change(MakeConfigMap(name, w.ns, "", ""), func(c *corev1.ConfigMap) { c.Data = map[string]string{key: value} })
}

var _ = Describe("The annotation for the key of a host", func() {
	const first = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	const second = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcNHqIYJrB8OtlhnG2w1bDeHDgPDVgPPIoqxDyRIKy8"

	It("keeps the key that was first met until a user confirms another one", func() {
		w := newCloud()
		w.hosts.Show("n", first)
		w.make(w.role("plain").Obj(), MakeNode("n", w.ns).Role("plain").Cell("cell1").Host("10.0.0.7").Obj())
		w.computesReady("n")
		Expect(get(Default, w.node("n")).Status.HostKey).To(Equal(first))
		Expect(get(Default, w.compute("n")).Status.HostKey).To(Equal(first), "the compute knows the host from its node")

		w.hosts.Show("n", second)
		annotate(w.node("n"), common.RerunAnnotation, "again")
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.HostUnreachableReason, "no route to host")
		annotate(w.node("n"), common.HostKeyAnnotation, second+" root@n")
		w.nodesReady("n")
		w.computesReady("n")
		Eventually(func(g Gomega) {
			g.Expect(get(g, w.node("n")).Status.HostKey).To(Equal(second))
			g.Expect(get(g, w.compute("n")).Status.HostKey).To(Equal(second))
		}).Should(Succeed())
	})

	It("rejects a value that is no key", func() {
		w := newCloud()
		node := MakeNode("n", w.ns).Role("plain").Obj()
		node.Annotations = map[string]string{common.HostKeyAnnotation: "SHA256:abc"}
		w.make(w.role("plain").Obj(), node)
		w.halted(w.node("n"), condition.InputReadyCondition, dataplanev1.InvalidSpecReason, "edpm.openstack.org/host-key", "ssh_host_ed25519_key.pub")
	})
})

var _ = Describe("A change of", Ordered, func() {
	// One cloud for all entries: a and b in cell1, c in cell2, d no compute.
	var w *world
	hosts := []string{"a", "b", "c", "d"}
	steps := []string{"own", "install-os", "libvirt", "nova"}

	// The world outlives its entries, so it is made by hand.
	BeforeAll(func() {
		w = newCloud()
		w.makeCell("cell2")
		own := MakeService("own", w.ns)
		own.Spec.Secrets, own.Spec.ConfigMaps = []string{"service-secret"}, []string{"service-config"}
		mounting := w.role("mounting").Services("install-os").Mount("mounted").Obj()
		mounting.Spec.Env = []corev1.EnvVar{
			envFromSecret("TOKEN", "env-secret", "token"), envFromConfigMap("PROXY", "env-config", "proxy"),
		}
		mounting.Spec.Env[1].ValueFrom.ConfigMapKeyRef.Optional = ptr.To(true)
		w.make(MakeSecret("env-secret", w.ns, "token", "1"), own, MakeSecret("service-secret", w.ns, "k", "1"), MakeConfigMap("service-config", w.ns, "c", "1"), MakeSecret("mounted", w.ns, "m", "1"),
			MakeSecret("unrelated", w.ns, "u", "1"),
			w.role("plain").Services("own", "install-os").Obj(), mounting,
			MakeNode("a", w.ns).Role("plain").Cell("cell1").Obj(), MakeNode("b", w.ns).Role("plain").Cell("cell1").Obj(),
			MakeNode("c", w.ns).Role("plain").Cell("cell2").Obj(), MakeNode("d", w.ns).Role("mounting").Obj())
		w.computesReady("a", "b", "c")
		w.nodesReady(hosts...)
	})

	DescribeTable("re-runs exactly what it concerns:",
		func(act func(), want ...string) {
			before := w.book()
			act()
			rerun := func() []string {
				var out []string
				for key, n := range w.book() {
					for range n - before[key] {
						out = append(out, key)
					}
				}
				slices.Sort(out)
				return out
			}
			slices.Sort(want)
			if len(want) == 0 {
				want = nil
			}
			Eventually(rerun).Should(Equal(want))
			w.nodesReady(hosts...)
			w.computesReady("a", "b", "c")
			Consistently(rerun).Should(Equal(want))
			w.exactlyOnce()
		},
		Entry("the content of a Secret of a service", func() { w.setSecret("service-secret", "k", "2") }, "a/own", "b/own", "c/own"),
		Entry("a new key of a ConfigMap of a service", func() { w.setConfigMap("service-config", "d", "2") }, "a/own", "b/own", "c/own"),
		Entry("the content of a mounted Secret", func() { w.setSecret("mounted", "m", "2") }, "d/install-os"),
		Entry("the value that the environment takes from a Secret", func() { w.setSecret("env-secret", "token", "2") }, "d/install-os"),
		Entry("another key of that Secret", func() {
			change(MakeSecret("env-secret", w.ns, "", ""), func(s *corev1.Secret) { s.Data["other"] = []byte("2") })
		}),
		Entry("a ConfigMap that the environment may take a value from", func() { w.make(MakeConfigMap("env-config", w.ns, "proxy", "http://one")) }, "d/install-os"),
		Entry("the value that the environment takes from a ConfigMap", func() { w.setConfigMap("env-config", "proxy", "http://two") }, "d/install-os"),
		Entry("the environment of all runs of the namespace", func() { w.make(MakeConfigMap("openstack-aee-default-env", w.ns, "ANSIBLE_X", "1")) },
			"a/own", "a/install-os", "a/libvirt", "a/nova", "b/own", "b/install-os", "b/libvirt", "b/nova", "c/own", "c/install-os", "c/libvirt", "c/nova", "d/install-os"),
		Entry("the content of a Secret that no object uses", func() { w.setSecret("unrelated", "u", "2") }),
		Entry("the ssh key", func() { w.setSecret("ssh-key", "ssh-privatekey", "key-2") }),
		Entry("the message bus of a cell", func() { w.setSecret("cell1-bus", "transport_url", "rabbit://elsewhere/") }, "a/nova", "b/nova"),
		Entry("the password of a cell", func() { w.setSecret("cell2-password", "ServicePassword", "password-2") }, "c/nova"),
		Entry("the console of a cell", func() {
			change(MakeCell("cell2", w.ns).Obj(), func(c *novav1.NovaCell) { c.Spec.NoVNCProxyBaseURL = "http://console.example/" })
		}, "c/nova"),
		Entry("the image of one nova-compute", func() {
			change(w.compute("a"), func(c *novav1.NovaExternalCompute) { c.Spec.NovaComputeContainerImage = "compute:2" })
		}, "a/nova"),
		Entry("the image of one libvirt", func() {
			change(w.compute("b"), func(c *novav1.NovaExternalCompute) { c.Spec.NovaLibvirtContainerImage = "libvirt:2" })
		}, "b/libvirt"),
		Entry("the execution environment of one compute", func() {
			change(w.compute("b"), func(c *novav1.NovaExternalCompute) { c.Spec.AnsibleEEContainerImage = "ee:2" })
		}, "b/libvirt", "b/nova"),
		Entry("customServiceConfig of one compute", func() {
			change(w.compute("c"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		}, "c/nova"),
		Entry("a variable of one node", func() {
			change(w.node("a"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = JSON(`{"x": 1}`) })
		}, "a/own", "a/install-os", "a/libvirt", "a/nova"),
		Entry("a variable of a role", func() {
			change(MakeRole("mounting", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.NodeTemplate.AnsibleVars = JSON(`"y: 1"`) })
		}, "d/install-os"),
		Entry("the address of one node", func() {
			change(w.node("d"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.AnsibleHost = "10.9.9.9" })
		}, "d/install-os"),
		Entry("the user that logs in", func() {
			change(w.node("a"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleUser = "stack" })
		}),
		Entry("the batch size", func() {
			change(MakeRole("plain", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) {
				r.Spec.DeployStrategy.BatchSize = new(int32)
				*r.Spec.DeployStrategy.BatchSize = 2
			})
		}),
		Entry("labels and annotations of a node", func() { annotate(w.node("a"), "any", "thing") }),
		Entry("the services of a role", func() {
			change(MakeRole("mounting", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.Services = []string{"install-os", "run-os"} })
		}, "d/run-os"),
		Entry("the playbook of a service", func() {
			change(MakeService("own", w.ns), func(s *dataplanev1.OpenStackDataPlaneService) { s.Spec.Playbook = "example.services.other" })
		}, "a/own", "b/own", "c/own"),
	)

	It("leaves every host as its ledger says", func() {
		w.consistent(hosts...)
		Expect(slices.Sorted(maps.Keys(w.book()))).To(HaveLen(3*len(steps)+2), "nothing failed")
	})
})
