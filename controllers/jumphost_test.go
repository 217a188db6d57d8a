package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// jumpsOf are the addresses of the jump hosts of the runs of a step on a host, in their order.
func (w *world) jumpsOf(host, step string) []string {
	GinkgoHelper()
	var jumps []string
	for _, e := range w.did(host, step) {
		run := &ansibleeev1.OpenStackAnsibleEE{}
		Expect(api.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: e.Job}, run)).To(Succeed())
		if run.Spec.JumpHost == nil {
			jumps = append(jumps, "directly")
			continue
		}
		jumps = append(jumps, run.Spec.JumpHost.Address)
	}
	return jumps
}

var _ = Describe("A jump host", func() {
	var w *world

	BeforeEach(func() {
		w = newCloud()
		w.make(MakeSecret("jump-key", w.ns, "ssh-privatekey", "jump-1"),
			w.role("compute").Cell("cell1").JumpHost(MakeJumpHost("bastion.example.com", "jump-key")).Obj(), w.role("near").Cell("cell1").Obj())
	})

	It("is that of the role in every run on its hosts, unless the node has another", func() {
		w.make(MakeNode("a", w.ns).Role("compute").Obj(), MakeNode("b", w.ns).Role("compute").JumpHost(MakeJumpHost("192.0.2.9", "jump-key")).Obj(),
			MakeNode("c", w.ns).Role("near").Obj())
		w.computesReady("a", "b", "c")
		for _, step := range []string{"install-os", "libvirt", "nova"} {
			Expect(w.jumpsOf("a", step)).To(Equal([]string{"bastion.example.com"}), step)
			Expect(w.jumpsOf("b", step)).To(Equal([]string{"192.0.2.9"}), step)
			Expect(w.jumpsOf("c", step)).To(Equal([]string{"directly"}), step)
		}
		Expect(get(Default, w.compute("c")).Spec.JumpHost).To(BeNil())

		By("removing a service from its host")
		remove(w.node("a"))
		gone(w.node("a"))
		Expect(w.jumpsOf("a", cleanup)).To(Equal([]string{"bastion.example.com"}))
	})

	It("has its key mounted from its Secret", func() {
		w.make(MakeNode("a", w.ns).Role("compute").Obj())
		w.computesReady("a")
		job := &batchv1.Job{}
		Expect(api.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: w.did("a", "nova")[0].Job}, job)).To(Succeed())
		pod := job.Spec.Template.Spec
		Expect(pod.Volumes).To(ContainElement(And(HaveField("Name", "jump-key"), HaveField("Secret.SecretName", "jump-key"))))
		Expect(pod.Containers[0].VolumeMounts).To(ContainElement(And(HaveField("Name", "jump-key"), HaveField("MountPath", "/runner/jump"), HaveField("ReadOnly", true))))
		Expect(pod.Containers[0].Env).To(ContainElement(And(HaveField("Name", "EDPM_JUMP_HOST"), HaveField("Value", MatchJSON(
			`{"address":"bastion.example.com","port":22,"user":"jump","sshPrivateKeySecret":"jump-key",`+
				`"hostKey":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPiG1dsVVVsPIMPZ9JmPQVAwFbXzXjqMZUaxPSBEqRIN"}`)))))
	})

	It("causes no run on a host that has converged, when it is added, changed or removed", func() {
		w.make(MakeNode("a", w.ns).Role("near").Obj())
		w.computesReady("a")
		hash, inventory := get(Default, w.node("a")).Status.Hash, get(Default, MakeConfigMap("dataplanenode-a", w.ns, "", "")).Data
		before := w.book()
		for _, jump := range []*common.JumpHost{MakeJumpHost("192.0.2.1", "jump-key"), MakeJumpHost("192.0.2.2", "jump-key"), nil} {
			change(MakeRole("near", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.NodeTemplate.JumpHost = jump })
			Eventually(func(g Gomega) *common.JumpHost { return get(g, w.compute("a")).Spec.JumpHost }).Should(Equal(jump))
			w.computesReady("a")
		}
		w.setSecret("jump-key", "ssh-privatekey", "jump-2")
		w.nothingRuns()
		Expect(w.book()).To(Equal(before))
		Expect(get(Default, w.node("a")).Status.Hash).To(Equal(hash))
		Expect(get(Default, MakeConfigMap("dataplanenode-a", w.ns, "", "")).Data).To(Equal(inventory))
	})

	It("has a host that failed tried again when it or its key changes", func() {
		ill := w.sick(map[string]fakekube.Outcome{"a": fakekube.Unreachable})
		w.make(MakeNode("a", w.ns).Role("compute").Obj())
		w.halted(w.node("a"), dataplanev1.ProvisionReadyCondition, dataplanev1.HostUnreachableReason)
		ill.heal("a")
		w.setSecret("jump-key", "ssh-privatekey", "jump-2")
		w.computesReady("a")
	})
})
