package controllers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	testenv "github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/fakemetal"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// newMetal makes a world with a key, a role that is provisioned from bare metal,
// and machines that the test double of baremetal-operator looks after.
func newMetal(machines ...string) (*world, *fakemetal.Operator) {
	GinkgoHelper()
	w := newWorld()
	key, err := metal.NewHostKey()
	Expect(err).NotTo(HaveOccurred())
	w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", key.Private))
	operator := fakemetal.Start(GinkgoT(), api, w.ns)
	for i, name := range machines {
		w.machine(operator, name, i)
	}
	w.make(w.metalRole("compute"))
	return w, operator
}

// machine registers a machine and waits until it is available.
func (w *world) machine(operator *fakemetal.Operator, name string, n int) {
	GinkgoHelper()
	w.machineWith(operator, name, fakemetal.Hardware(n))
}

func (w *world) machineWith(operator *fakemetal.Operator, name string, hardware metal3v1.HardwareDetails) {
	GinkgoHelper()
	operator.Register(name, hardware)
	Eventually(func(g Gomega) {
		g.Expect(w.bmh(g, name).Status.Provisioning.State).To(Equal(metal3v1.StateAvailable))
	}).Should(Succeed())
}

func (w *world) metalRole(name string) *dataplanev1.OpenStackDataPlaneRole {
	role := w.role(name).Obj()
	role.Spec.PreProvisioned = ptr.To(false)
	role.Spec.NodeTemplate.AnsibleUser = "cloud-admin"
	role.Spec.BaremetalSetTemplate = &dataplanev1.BaremetalSetTemplate{
		Image: &metal3v1.Image{URL: "http://images.example/edpm.qcow2", Checksum: "abc"}, CtlplaneInterface: "eno1", CtlplaneGateway: "192.168.200.1",
	}
	return role
}

func (w *world) bmh(g Gomega, name string) *metal3v1.BareMetalHost {
	return get(g, &metal3v1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}})
}

// host is the BareMetalHost as it is.
func (w *world) host(name string) *metal3v1.BareMetalHost {
	GinkgoHelper()
	return w.bmh(Default, name)
}

// provisioned waits until the node is Ready on a machine, and returns which.
func (w *world) provisioned(node string) *metal3v1.BareMetalHost {
	GinkgoHelper()
	w.nodesReady(node)
	n := get(Default, w.node(node))
	Expect(n.Status.BareMetalHost).NotTo(BeNil(), "the status is %s", asText(n))
	host := w.host(n.Status.BareMetalHost.Name)
	Expect(metal.ClaimedBy(host, w.ns, node)).To(BeTrue(), "%s should be claimed by %s: %+v", host.Name, node, host.Spec.ConsumerRef)
	return host
}

// claims are the machines that have a consumer, with its name.
func (w *world) claims() map[string]string {
	GinkgoHelper()
	list := &metal3v1.BareMetalHostList{}
	Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	claims := map[string]string{}
	for i := range list.Items {
		if ref := list.Items[i].Spec.ConsumerRef; ref != nil {
			claims[list.Items[i].Name] = ref.Name
		}
	}
	return claims
}

var _ = Describe("A role from bare metal", func() {
	It("brings nodes from free machines to Ready, each on its own, trusted from the first connection", func() {
		w, operator := newMetal("m0", "m1", "m2")
		w.make(MakeNode("n1", w.ns).Role("compute").Obj(), MakeNode("n2", w.ns).Role("compute").Obj())
		first, second := w.provisioned("n1"), w.provisioned("n2")
		Expect(first.Name).NotTo(Equal(second.Name))
		Expect(w.claims()).To(HaveLen(2))
		Expect(operator.Provisioned()).To(HaveLen(2), "each machine should be provisioned once: %v", operator.Provisioned())
		for node, host := range map[string]*metal3v1.BareMetalHost{"n1": first, "n2": second} {
			n := get(Default, w.node(node))
			Expect(n.Status.BareMetalHost.Address).To(Equal(host.Status.Hardware.NICs[0].IP))
			secret := get(Default, MakeSecret(metal.SecretName(node), w.ns, "", ""))
			Expect(n.Status.HostKey).To(Equal(string(secret.Data[metal.PublicHostKeyKey])), "the generated key should be the one that is trusted")
			Expect(string(secret.Data[metal.UserDataKey])).To(ContainSubstring("hostname: " + node))
			Expect(metav1.IsControlledBy(secret, n)).To(BeTrue())
			Expect(host.Spec.UserData).To(Equal(&corev1.SecretReference{Name: secret.Name, Namespace: w.ns}))
			cm := get(Default, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "dataplanenode-" + node}})
			Expect(cm.Data["inventory"]).To(ContainSubstring("ansible_host: " + host.Status.Hardware.NICs[0].IP))
		}
		w.exactlyOnce()
	})

	It("sets a static address before the machine is provisioned, and reports its progress", func() {
		w, operator := newMetal("m0")
		operator.Pause(metal3v1.StateProvisioning)
		w.make(MakeNode("n", w.ns).Role("compute").Host("192.168.200.100").Obj())
		w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "False/BareMetalHostProvisioning/Info", "BareMetalHost m0 is being provisioned")
		w.nothingRuns()
		secret := get(Default, MakeSecret(metal.SecretName("n"), w.ns, "", ""))
		Expect(string(secret.Data[metal.NetworkDataKey])).To(And(ContainSubstring(`"ip_address": "192.168.200.100"`), ContainSubstring(fakemetal.Hardware(0).NICs[0].MAC)))
		operator.Fail("m0", "provisioning error", "no disk of that size")
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalErrorReason, "provisioning error: no disk of that size")
		operator.Recover("m0")
		operator.Pause("")
		w.provisioned("n")
	})

	It("claims nothing while a Secret of another owner has the name of the one that it boots with", func() {
		w, _ := newMetal("m0")
		theirs := MakeSecret(metal.SecretName("n"), w.ns, metal.HostKeyKey, "a key that another user knows")
		w.make(theirs, MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, common.ConflictReason, theirs.Name)
		w.quiet()
		Expect(w.claims()).To(BeEmpty())
		Expect(get(Default, w.node("n")).Status.HostKey).To(BeEmpty())
		remove(theirs)
		w.provisioned("n")
		Expect(string(get(Default, theirs).Data[metal.HostKeyKey])).To(HavePrefix("-----BEGIN OPENSSH PRIVATE KEY"))
	})

	It("says since when it waits once that is longer than usual", func() {
		w, operator := newMetal("m0")
		operator.Pause(metal3v1.StateProvisioning)
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "False/BareMetalHostProvisioning/Info", "is being provisioned")
		w.running.end()
		node := get(Default, w.node("n"))
		Expect(node.Status.BareMetalHost.Waiting).To(Equal("BareMetalHostProvisioning"))
		node.Status.BareMetalHost.Since = ptr.To(metav1.NewTime(time.Now().Add(-2 * time.Hour)))
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		w.running = startManager(w.ns, w.opts)
		w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "False/BareMetalHostProvisioning/Warning", "It has been so since "+node.Status.BareMetalHost.Since.UTC().Format(time.RFC3339), "EDPMProvisioningStuck")
		operator.Pause("")
		w.provisioned("n")
		Expect(get(Default, w.node("n")).Status.BareMetalHost.Since).To(BeNil())
	})

	It("claims only a machine whose disk fits, and gives it its networks and hints", func() {
		w, operator := newMetal()
		small := fakemetal.Hardware(0)
		small.Storage[0].SizeBytes = 100_000_000_000
		w.machineWith(operator, "m0", small)
		w.machineWith(operator, "m1", fakemetal.Hardware(1))
		change(w.host("m1"), func(h *metal3v1.BareMetalHost) {
			h.Spec.RootDeviceHints = &metal3v1.RootDeviceHints{DeviceName: "/dev/sdx"}
		})
		w.changeMetal(func(t *dataplanev1.BaremetalSetTemplate) {
			t.RootDeviceHints = &metal3v1.RootDeviceHints{MinSizeGigabytes: 200}
			t.CtlplaneInterface, t.CtlplaneBond = "", &dataplanev1.Bond{Interfaces: []string{"eno1", "eno2"}}
			t.BootNetworks = []dataplanev1.BootNetwork{{Network: "storage", VLAN: 21}}
		})
		node := MakeNode("n", w.ns).Role("compute").Host("192.168.200.100").Obj()
		node.Spec.Node.Networks = []dataplanev1.NetworkSection{{Network: "Storage", FixedIP: "172.18.0.5"}}
		w.make(node)
		host := w.provisioned("n")
		Expect(host.Name).To(Equal("m1"))
		Expect(host.Spec.RootDeviceHints).To(Equal(&metal3v1.RootDeviceHints{MinSizeGigabytes: 200}))
		secret := get(Default, MakeSecret(metal.SecretName("n"), w.ns, "", ""))
		Expect(string(secret.Data[metal.NetworkDataKey])).To(And(ContainSubstring(`"bond_mode": "active-backup"`), ContainSubstring(`"ip_address": "172.18.0.5"`), ContainSubstring(`"vlan_id": 21`)))
	})

	It("says what is missing, and takes a machine that is registered later", func() {
		w, operator := newMetal("m0")
		role := w.metalRole("large")
		role.Spec.BaremetalSetTemplate.HardwareReqs = &dataplanev1.HardwareReqs{MemReqs: dataplanev1.MemReqs{GbReq: dataplanev1.MemGbReq{Gb: 512}}}
		w.make(role, MakeNode("n", w.ns).Role("large").Obj())
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalNoneFreeReason, "1 of 1 BareMetalHosts are free, and none fits: m0 does not have >= 512 GiB of memory")
		large := fakemetal.Hardware(1)
		large.RAMMebibytes = 512 << 10
		operator.Register("m1", large)
		Expect(w.provisioned("n").Name).To(Equal("m1"))
	})

	It("does not take a machine that is marked as not to be used", func() {
		w, _ := newMetal("m0", "m1")
		change(w.host("m0"), func(h *metal3v1.BareMetalHost) { h.Annotations = map[string]string{metal3v1.UnhealthyAnnotation: ""} })
		change(w.host("m1"), func(h *metal3v1.BareMetalHost) {
			h.Annotations = map[string]string{metal3v1.HeldOffAnnotation + "fence": ""}
		})
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalNoneFreeReason, "m0 is marked as unhealthy", "m1 is kept powered off")
		change(w.host("m1"), func(h *metal3v1.BareMetalHost) { h.Annotations = nil })
		Expect(w.provisioned("n").Name).To(Equal("m1"))
	})

	It("leaves a machine to the node that has its address", func() {
		w, _ := newMetal("m0", "m1")
		w.make(w.role("by-address").Obj(), MakeNode("here", w.ns).Role("by-address").Host(fakemetal.Hardware(0).NICs[0].IP).Obj())
		w.nodesReady("here")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Expect(w.provisioned("n").Name).To(Equal("m1"))
	})

	It("leaves a node alone on which something was run before its role asked for bare metal", func() {
		w, _ := newMetal("m0")
		w.make(w.role("old").Obj(), MakeNode("n", w.ns).Role("old").Host("10.0.0.9").Obj())
		w.nodesReady("n")
		change(MakeRole("old", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Spec.BaremetalSetTemplate, r.Spec.NodeTemplate.AnsibleUser = w.metalRole("x").Spec.BaremetalSetTemplate, "cloud-admin"
		})
		w.nodesReady("n")
		w.quiet()
		Expect(w.claims()).To(BeEmpty())
	})
})

var _ = Describe("The machine of a node", func() {
	It("stays provisioned after a restart, a deleted role, other settings or a lost status, and shows the change", func() {
		w, operator := newMetal("m0", "m1")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		host := w.provisioned("n")
		w.restart()
		w.changeMetal(func(t *dataplanev1.BaremetalSetTemplate) { t.Image.URL = "http://images.example/other.qcow2" })
		w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "True/Ready/", "have changed since BareMetalHost "+host.Name+" was provisioned", common.ReplaceHostAnnotation)
		node := get(Default, w.node("n"))
		node.Status = dataplanev1.OpenStackDataPlaneNodeStatus{}
		w.running.end()
		Expect(api.Status().Update(ctx, node)).To(Succeed()) // as a backup restores it
		w.running = startManager(w.ns, w.opts)
		Eventually(func(g Gomega) {
			n := get(g, w.node("n"))
			g.Expect(n.Status.BareMetalHost).NotTo(BeNil())
			g.Expect(n.Status.BareMetalHost.Name).To(Equal(host.Name))
			g.Expect(n.Status.HostKey).NotTo(BeEmpty())
		}).Should(Succeed())
		remove(MakeRole("compute", w.ns).Obj())
		w.halted(w.node("n"), "InputReady", dataplanev1.RoleMissingReason)
		w.quiet()
		Expect(w.host(host.Name).Spec.Image).To(Equal(host.Spec.Image))
		Expect(operator.Provisioned()).To(Equal([]string{host.Name}))
	})

	It("stays the one of the node when a backup has the node and not its claim", func() {
		w, _ := newMetal("m0", "m1")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		host := w.provisioned("n")
		w.running.end()
		node := get(Default, w.node("n"))
		node.Status = dataplanev1.OpenStackDataPlaneNodeStatus{}
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		change(host, func(h *metal3v1.BareMetalHost) { h.Spec.ConsumerRef = nil })
		w.running = startManager(w.ns, w.opts)
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalHostLostReason, "BareMetalHost of this node no longer exists")
		w.quiet()
		Expect(w.claims()).To(BeEmpty())
		change(host, func(h *metal3v1.BareMetalHost) {
			h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "dataplane.openstack.org/v1beta1", Kind: "OpenStackDataPlaneNode", Name: "n", Namespace: w.ns}
		})
		w.nodesReady("n")
	})

	It("counts as lost when another owner takes it, and the node claims no other one", func() {
		w, _ := newMetal("m0", "m1")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		host := w.provisioned("n")
		change(host, func(h *metal3v1.BareMetalHost) {
			h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "x", Namespace: w.ns}
		})
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalHostLostReason, "restore the object or the field")
		w.quiet()
		Expect(w.claims()).To(Equal(map[string]string{host.Name: "x"}))
	})

	DescribeTable("follows its reclaim policy once the services are removed from it",
		func(policy string, check func(g Gomega, host *metal3v1.BareMetalHost)) {
			w, operator := newMetal("m0")
			w.changeMetal(func(t *dataplanev1.BaremetalSetTemplate) { t.ReclaimPolicy = policy })
			w.make(MakeNode("n", w.ns).Role("compute").Obj())
			w.provisioned("n")
			operator.Pause(metal3v1.StateDeprovisioning)
			remove(w.node("n"))
			if policy == "" {
				w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "False/BareMetalHostDeprovisioning/Info", "waiting until BareMetalHost m0 is deprovisioned")
				Expect(w.claims()).To(HaveLen(1), "a machine that is not clean should stay claimed")
				operator.Pause("")
			}
			gone(w.node("n"))
			Eventually(func(g Gomega) { check(g, w.bmh(g, "m0")) }).Should(Succeed())
		},
		Entry("Deprovision, the default: it is clean and free", "", func(g Gomega, h *metal3v1.BareMetalHost) {
			g.Expect(h.Spec.ConsumerRef).To(BeNil())
			g.Expect(h.Spec.Image).To(BeNil())
			g.Expect(h.Status.Provisioning.State).To(Equal(metal3v1.StateAvailable))
		}),
		Entry("Detach: it runs on, and no node claims it", dataplanev1.ReclaimDetach, func(g Gomega, h *metal3v1.BareMetalHost) {
			g.Expect(h.Spec.ConsumerRef).To(BeNil())
			g.Expect(h.Spec.Image).NotTo(BeNil())
			g.Expect(h.Annotations).To(HaveKey(metal3v1.DetachedAnnotation))
		}),
		Entry("Retain: nothing is written", dataplanev1.ReclaimRetain, func(g Gomega, h *metal3v1.BareMetalHost) {
			g.Expect(h.Spec.ConsumerRef).NotTo(BeNil())
			g.Expect(h.Spec.Image).NotTo(BeNil())
			g.Expect(h.Annotations).NotTo(HaveKey(metal3v1.DetachedAnnotation))
		}),
	)

	It("is given back as it was, and a change that a person made stays", func() {
		w, operator := newMetal("m0")
		change(w.host("m0"), func(h *metal3v1.BareMetalHost) {
			h.Spec.NetworkData, h.Spec.UserData = &corev1.SecretReference{Name: "admin-net"}, &corev1.SecretReference{Name: "admin-user"}
			h.Spec.RootDeviceHints, h.Spec.AutomatedCleaningMode = &metal3v1.RootDeviceHints{DeviceName: "/dev/sda"}, "metadata"
			h.Spec.Online = false
		})
		own := w.host("m0").Spec
		w.changeMetal(func(t *dataplanev1.BaremetalSetTemplate) {
			t.RootDeviceHints, t.AutomatedCleaningMode = &metal3v1.RootDeviceHints{MinSizeGigabytes: 200}, "disabled"
		})
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		claimed := w.provisioned("n")
		Expect(claimed.Spec.RootDeviceHints).To(Equal(&metal3v1.RootDeviceHints{MinSizeGigabytes: 200}))
		Expect(claimed.Annotations).To(HaveKey(common.BeforeClaimAnnotation))
		operator.Pause(metal3v1.StateDeprovisioning)
		remove(w.node("n"))
		Eventually(func(g Gomega) {
			g.Expect(w.bmh(g, "m0").Status.Provisioning.State).To(Equal(metal3v1.StateDeprovisioning))
		}).Should(Succeed())
		Expect(w.host("m0").Spec.AutomatedCleaningMode).To(Equal("disabled"), "the role should say how its disks are cleaned")
		operator.Pause("")
		gone(w.node("n"))
		released := w.host("m0")
		Expect(released.Spec).To(Equal(own))
		Expect(released.Annotations).NotTo(HaveKey(common.BeforeClaimAnnotation))

		w.make(MakeNode("n2", w.ns).Role("compute").Obj())
		change(w.provisioned("n2"), func(h *metal3v1.BareMetalHost) { h.Spec.NetworkData = &corev1.SecretReference{Name: "new-net"} })
		remove(w.node("n2"))
		gone(w.node("n2"))
		own.NetworkData.Name = "new-net"
		Expect(w.host("m0").Spec).To(Equal(own))
	})

	It("stays claimed while a service is added to its node at the last moment", func() {
		w, operator := newMetal("m0")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.provisioned("n")
		dropsFinalizer := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/openstackdataplanenodes/n") }
		release := w.wire.hold(dropsFinalizer)
		DeferCleanup(release)
		remove(w.node("n"))
		Eventually(w.wire.waiting).Should(BeTrue())
		node := get(Default, w.node("n"))
		node.Status.Services = []dataplanev1.NodeServiceStatus{{Name: "late", Kind: "Late", ObjectName: "late-n"}}
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		release()
		w.condition(w.node("n"), condition.DeploymentReadyCondition, "False/ServicesRemaining/Info", "late")
		w.quiet()
		Expect(w.claims()).To(Equal(map[string]string{"m0": "n"}))
		Expect(operator.Deprovisioned()).To(BeEmpty())
		node = get(Default, w.node("n"))
		node.Status.Services = nil
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		gone(w.node("n"))
		Expect(w.claims()).To(BeEmpty())
	})

	It("stays claimed when it is retained: another node says whose it is, and a new one of the name asks for its host key", func() {
		w, _ := newMetal("m0")
		w.changeMetal(func(t *dataplanev1.BaremetalSetTemplate) { t.ReclaimPolicy = dataplanev1.ReclaimRetain })
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.provisioned("n")
		remove(w.node("n"))
		gone(w.node("n"))
		w.make(MakeNode("other", w.ns).Role("compute").Obj())
		w.halted(w.node("other"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalNoneFreeReason, "m0 is claimed by OpenStackDataPlaneNode n, which does not exist")
		remove(MakeSecret(metal.SecretName("n"), w.ns, "", "")) // nothing collects garbage here
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalHostKeyUnknownReason, common.HostKeyAnnotation)
	})
})

var _ = Describe("A manager that dies at any write", func() {
	for _, answered := range []bool{true, false} {
		for n := 1; n <= 9; n++ {
			It(fmt.Sprintf("claims and releases one machine for one node (write %d, answered %v)", n, answered), func() {
				w, operator := newMetal("m0", "m1", "m2")
				cut := w.wire.cutAfter(n, answered)
				w.make(MakeNode("n", w.ns).Role("compute").Obj())
				Eventually(cut).WithTimeout(soon).Should(BeClosed())
				w.restart()
				host := w.provisioned("n")
				Expect(w.claims()).To(Equal(map[string]string{host.Name: "n"}))
				Expect(operator.Provisioned()).To(Equal([]string{host.Name}))
				w.exactlyOnce()

				cut = w.wire.cutAfter((n+1)/2, answered)
				remove(w.node("n"))
				Eventually(cut).WithTimeout(soon).Should(BeClosed())
				w.restart()
				gone(w.node("n"))
				Eventually(func() map[string]string { return w.claims() }).Should(BeEmpty())
				Expect(operator.Deprovisioned()).To(Equal([]string{host.Name}))
			})
		}
	}
})

var _ = Describe("A node that is created before its role", func() {
	for n := 1; n <= 2; n++ {
		It(fmt.Sprintf("claims a machine, even if the manager dies at write %d", n), func() {
			w, _ := newMetal("m0")
			role := w.metalRole("later")
			w.quiet()
			cut := w.wire.cutAfter(n, false)
			w.make(MakeNode("n", w.ns).Role("later").Obj())
			if n > 1 {
				w.halted(w.node("n"), condition.InputReadyCondition, dataplanev1.RoleMissingReason)
				w.make(role)
			}
			Eventually(cut).WithTimeout(soon).Should(BeClosed())
			w.restart()
			if n == 1 {
				w.make(role)
			}
			Expect(w.provisioned("n").Name).To(Equal("m0"))
			w.exactlyOnce()
		})
	}
})

var _ = Describe("Two nodes with one free machine", func() {
	It("cannot share it, even if both claim it at the same moment", func() {
		w, operator := newMetal("m0")
		isClaim := func(r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/baremetalhosts/") && !r.URL.Query().Has("dryRun")
		}
		release := w.wire.hold(isClaim)
		DeferCleanup(release)
		w.make(MakeNode("a", w.ns).Role("compute").Obj(), MakeNode("b", w.ns).Role("compute").Obj())
		Eventually(func(g Gomega) {
			for _, n := range []string{"a", "b"} {
				g.Expect(get(g, w.node(n)).Status.BareMetalHost).NotTo(BeNil(), "%s should have chosen", n)
			}
		}).Should(Succeed())
		release()
		Eventually(w.claims).Should(HaveLen(1))
		winner, loser := "a", "b"
		if w.claims()["m0"] == "b" {
			winner, loser = loser, winner
		}
		w.provisioned(winner)
		w.halted(w.node(loser), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalNoneFreeReason, "m0 is claimed by OpenStackDataPlaneNode "+winner)
		Expect(operator.Provisioned()).To(Equal([]string{"m0"}))
		remove(w.node(winner))
		gone(w.node(winner))
		w.provisioned(loser)
	})
})

// withoutKind removes the resource definition of BareMetalHost, and returns what
// installs it again.
func withoutKind() (reinstall func()) {
	GinkgoHelper()
	text, err := os.ReadFile(testenv.BareMetalHostCRD())
	Expect(err).NotTo(HaveOccurred())
	definition := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.Unmarshal(text, definition)).To(Succeed())
	Expect(envtest.UninstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition.DeepCopy()}})).To(Succeed())
	served := func() error { return api.List(ctx, &metal3v1.BareMetalHostList{}) }
	Eventually(served).ShouldNot(Succeed())
	api = story.Connect(env) // whose mapper does not have the kind
	reinstall = sync.OnceFunc(func() {
		_, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}})
		Expect(err).NotTo(HaveOccurred())
		Eventually(served).Should(Succeed())
	})
	DeferCleanup(func() { reinstall() })
	return reinstall
}

var _ = Describe("A manager without the kind BareMetalHost", Serial, func() {
	It("says what to install on a node that asks for one, runs the others, and continues when the kind exists", func() {
		reinstall := withoutKind()
		w, operator := newMetal()
		w.make(w.role("by-address").Obj(), MakeNode("n", w.ns).Role("compute").Obj(), MakeNode("here", w.ns).Role("by-address").Host("10.0.0.1").Obj())
		w.nodesReady("here")
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalKindMissingReason, "baremetalhosts.metal3.io", "install baremetal-operator", "preProvisioned: true")
		remove(w.node("here"))
		gone(w.node("here"))
		reinstall()
		w.machine(operator, "m0", 0)
		Expect(w.provisioned("n").Name).To(Equal("m0"))
	})

	It("reports a node that has a machine, and gives it the same one again when definition and object are restored", func() {
		w, operator := newMetal("m0", "m1")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		backup := w.provisioned("n")
		reinstall := withoutKind()
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Labels = map[string]string{"looked": "at"} })
		w.restart()
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalKindMissingReason, "install baremetal-operator")
		reinstall()
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalHostLostReason, "BareMetalHost m0 no longer exists", "The machine is left alone")
		w.machine(operator, "m1", 1)
		w.quiet()
		Expect(w.claims()).To(BeEmpty())
		restored := backup.DeepCopy()
		restored.ResourceVersion, restored.UID = "", ""
		restored.Annotations = map[string]string{metal3v1.PausedAnnotation: ""} // as long as it has no status
		Expect(api.Create(ctx, restored)).To(Succeed())
		status, err := json.Marshal(map[string]any{"status": map[string]any{
			"errorCount": 0, "errorMessage": "", "operationalStatus": "OK", "poweredOn": true,
			"hardware": backup.Status.Hardware, "provisioning": map[string]any{"ID": "x", "state": metal3v1.StateProvisioned},
		}})
		Expect(err).NotTo(HaveOccurred())
		Expect(api.Status().Patch(ctx, restored, client.RawPatch(types.MergePatchType, status))).To(Succeed())
		change(w.host("m0"), func(h *metal3v1.BareMetalHost) { h.Annotations = nil })
		w.nodesReady("n")
		Expect(w.claims()).To(Equal(map[string]string{"m0": "n"}))
		Expect(operator.Deprovisioned()).To(BeEmpty())
		w.exactlyOnce()
	})
})

// changeMetal changes the template of the role.
func (w *world) changeMetal(f func(*dataplanev1.BaremetalSetTemplate)) {
	GinkgoHelper()
	change(MakeRole("compute", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) { f(r.Spec.BaremetalSetTemplate) })
}
