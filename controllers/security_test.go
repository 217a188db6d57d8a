package controllers_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// What a user of a namespace may try, see docs/security.md. No webhook is there:
// this is what the controllers themselves do not let through.

var _ = DescribeTable("The manager follows nothing that leads out of the namespace or is too large, also without webhooks:",
	func(p plight) {
		w := newCloud()
		role, node := w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj()
		p.wrong(w, role, node)
		w.make(role, node)
		w.halted(w.node("n"), p.shows, p.reason, p.says...)
		w.calm()
		p.fix(w)
		w.computesReady("n")
		w.exactlyOnce()
	},
	Entry("a key of another namespace", plight{
		wrong: func(_ *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "default/ssh-key"
		},
		shows: condition.InputReadyCondition, reason: common.SecretMissingReason, says: []string{`Secret "default/ssh-key" does not exist`, "same namespace"},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) {
				r.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "ssh-key"
			})
		},
	}),
	Entry("a mounted Secret of another namespace", plight{
		wrong: func(_ *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.ExtraMounts = []ansibleeev1.ExtraMount{{Volumes: []ansibleeev1.ExtraVolume{{Name: "v", Secret: &corev1.SecretVolumeSource{SecretName: "../default/ssh-key"}}}}}
		},
		shows: condition.InputReadyCondition, reason: common.SecretMissingReason, says: []string{`Secret "../default/ssh-key" does not exist`},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.NodeTemplate.ExtraMounts = nil })
		},
	}),
	Entry("a Topology of another namespace", plight{
		wrong: func(_ *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.TopologyRef = &topologyv1.TopologyRef{Name: "zone", Namespace: "default"}
		},
		shows: condition.TopologyReadyCondition, reason: topologyv1.TopologyMissingReason, says: []string{"zone"},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.TopologyRef = nil })
		},
	}),
	Entry("a variable by which ssh would trust any host", plight{
		wrong: func(_ *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.AnsibleVars = JSON(`{"ansible_ssh_args": "-o Strict{{''}}HostKeyChecking=no"}`)
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.InvalidVarsReason, says: []string{"ansibleVars[ansible_ssh_args]", "annotation edpm.openstack.org/host-key"},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.NodeTemplate.AnsibleVars = nil })
		},
	}),
	Entry("another program in place of ssh", plight{
		wrong: func(_ *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.Env = []corev1.EnvVar{{Name: "ANSIBLE_SSH_EXECUTABLE", Value: "/mnt/ssh"}}
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.InvalidVarsReason, says: []string{"env[0].value", "ANSIBLE_SSH_EXECUTABLE"},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.Env = nil })
		},
	}),
	Entry("variables of 900 KB", plight{
		wrong: func(_ *world, _ *dataplanev1.OpenStackDataPlaneRole, n *dataplanev1.OpenStackDataPlaneNode) {
			n.Spec.Node.AnsibleVars = JSON(`"a: ` + strings.Repeat("é", 550<<10) + `"`)
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.InvalidSpecReason, says: []string{"the inventory has", "a ConfigMap holds", "shorten ansibleVars"},
		fix: func(w *world) {
			w.changeNode(func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = nil })
		},
	}),
	Entry("files of a service that do not fit into a run", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			own := MakeService("own", w.ns)
			own.Spec.ConfigMaps = []string{"one", "two"}
			w.make(own, MakeConfigMap("one", w.ns, "one.conf", strings.Repeat("x", 600<<10)), MakeConfigMap("two", w.ns, "two.conf", strings.Repeat("y", 601<<10)))
			r.Spec.Services = []string{"own"}
		},
		shows: condition.DeploymentReadyCondition, reason: "InputsTooLarge", says: []string{"the largest is file two.conf", "shorten it"},
		fix: func(w *world) {
			change(MakeConfigMap("two", w.ns, "", ""), func(c *corev1.ConfigMap) { c.Data["two.conf"] = "short" })
		},
	}),
)

var _ = Describe("A run of a user", func() {
	It("keeps a Secret that has its name when it is deleted", func() {
		w := newCloud()
		run := MakeRun("ssh-key", w.ns)
		run.Spec.InputsSecretName = "ssh-key"
		w.make(run)
		w.ready(run)
		w.calm()
		Expect(get(Default, MakeSecret("ssh-key", w.ns, "", "")).OwnerReferences).To(BeEmpty())
	})

	It("ignores the result of a Pod that is not its own", func() {
		w := newCloud()
		release := w.hosts.Hold()
		DeferCleanup(release)
		run := MakeRun("r", w.ns)
		w.make(run)
		Eventually(w.hosts.Pods).Should(Equal(1))
		forged := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "forged", Namespace: w.ns, Labels: map[string]string{batchv1.JobNameLabel: "r"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}
		w.make(forged)
		forged.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"v":1,"hosts":{"forged":[9,0,0,0,0]}}`}},
		}}}
		Expect(api.Status().Update(ctx, forged)).To(Succeed())
		release()
		w.ready(run)
		Expect(get(Default, run).Status.Hosts).NotTo(ContainElement(HaveField("Name", "forged")))
	})

	It("refuses variables that change how hosts are reached", func() {
		w := newCloud()
		run := MakeRun("r", w.ns)
		run.Spec.Inventory = "h1 ansible_host=10.0.0.1 ansible_ssh_common_args='-F /mnt/config'\n"
		w.make(run)
		w.halted(run, condition.InputReadyCondition, ansibleeev1.InvalidSpecReason, "spec.inventory", "ansible_ssh_common_args", "annotation edpm.openstack.org/host-key")
		w.nothingRuns()
		change(run, func(r *ansibleeev1.OpenStackAnsibleEE) { r.Spec.Inventory = "h1 ansible_host=10.0.0.1\n" })
		w.ready(run)
	})

	It("leaves the permissions of its Pod as the manager sets them", func() {
		w := newCloud()
		run := MakeRun("r", w.ns)
		run.Spec.ServiceAccountName, run.Spec.UID = "privileged", ptr.To[int64](1)
		w.make(run)
		w.ready(run)
		pod := get(Default, &batchv1.Job{ObjectMeta: run.ObjectMeta}).Spec.Template.Spec
		Expect(pod.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		Expect(pod.HostNetwork || pod.HostPID || pod.HostIPC).To(BeFalse())
		Expect(pod.Containers[0].SecurityContext.Privileged).To(BeNil())
		Expect(pod.Containers[0].SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
	})
})

var _ = Describe("A role whose inventory does not fit into one ConfigMap", func() {
	It("publishes it in parts, and its nodes are deployed", func() {
		w := newCloud()
		w.make(w.role("compute").Obj())
		for _, name := range nodeNames(5) {
			node := MakeNode(name, w.ns).Role("compute").Obj()
			node.Spec.Node.AnsibleVars = JSON(`{"a": "` + strings.Repeat("x", 240<<10) + `"}`)
			w.make(node)
		}
		w.nodesReady(nodeNames(5)...)
		w.ready(MakeRole("compute", w.ns).Obj())
		Eventually(func(g Gomega) {
			g.Expect(get(g, MakeRole("compute", w.ns).Obj()).Status.InventoryParts).To(BeEquivalentTo(5))
			g.Expect(get(g, MakeConfigMap("dataplanerole5-compute", w.ns, "", "")).Data).To(HaveKey("inventory"))
		}).Should(Succeed())
		w.calm()
	})
})

var _ = Describe("A rerun token of 200 KB", func() {
	It("causes one run like any other", func() {
		w := newCloud()
		w.make(w.role("compute").Obj())
		names := w.makeNodes(3, "compute")
		w.nodesReady(names...)
		annotate(MakeRole("compute", w.ns).Obj(), common.RerunAnnotation, strings.Repeat("x", 200<<10))
		for _, name := range names {
			Eventually(func() int { return w.times(name, "install-os") }).Should(Equal(2))
		}
		w.nodesReady(names...)
		w.calm()
	})
})
