package webhooks_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeimage"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

var _ = Describe("The webhook for container images", func() {
	var w world
	BeforeEach(func() { w = newWorld() })

	images := func(c *novav1.NovaExternalCompute) []string {
		return []string{c.Spec.NovaComputeContainerImage, c.Spec.NovaLibvirtContainerImage, c.Spec.AnsibleEEContainerImage}
	}
	// apply writes as the controller that creates computes does: it knows
	// nothing of images.
	apply := func(inventory string) *novav1.NovaExternalCompute {
		GinkgoHelper()
		compute := w.newCompute("n", "cell1")
		text := fmt.Sprintf(`{"apiVersion":"nova.openstack.org/v1beta1","kind":"NovaExternalCompute","metadata":{"name":"n"},`+
			`"spec":{"dataplaneNodeName":"n","cellName":"cell1","inventoryConfigMapName":%q}}`, inventory)
		Expect(api.Patch(ctx, compute, client.RawPatch(types.ApplyYAMLPatchType, []byte(text)), client.FieldOwner("nova-node"), client.ForceOwnership)).To(Succeed())
		return compute
	}

	It("takes those of a compute from the operator's environment", func() {
		compute := w.newCompute("n", "cell1")
		create(compute)
		Expect(images(compute)).To(Equal([]string{computeImage, libvirtImage, novaEEImage}))
	})
	It("of a compute are of the release of its cell", func() {
		cell := MakeCell("cell1", string(w)).Obj()
		create(cell)
		cell.Status.Images = map[string]string{novav1.ComputeComponent: "older"}
		Expect(api.Status().Update(ctx, cell)).To(Succeed())
		compute := w.newCompute("n", "cell1")
		create(compute)
		Expect(images(compute)).To(Equal([]string{"older", libvirtImage, novaEEImage}))
	})
	It("keeps those that a compute names, and fills only the rest", func() {
		compute := w.newCompute("n", "cell1")
		compute.Spec.NovaLibvirtContainerImage = "mine"
		create(compute)
		Expect(images(compute)).To(Equal([]string{computeImage, "mine", novaEEImage}))
	})
	It("keeps those of a compute when a controller applies it again", func() {
		Expect(images(apply("first"))).To(Equal([]string{computeImage, libvirtImage, novaEEImage}))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"novaComputeContainerImage":"mine"}}`))
		Expect(api.Patch(ctx, w.newCompute("n", ""), patch)).To(Succeed())
		again := apply("second")
		Expect(again.Spec.InventoryConfigMapName).To(Equal("second"))
		Expect(images(again)).To(Equal([]string{"mine", libvirtImage, novaEEImage}), "a person can change an image for good")
	})
	It("counts as no one's choice, as long as no one changes what it has set", func() {
		compute := apply("first")
		chosenBy := func() string { return computeimage.ChosenBy(compute.ManagedFields, novav1.ComputeComponent) }
		patch := func(text string) {
			GinkgoHelper()
			Expect(api.Patch(ctx, compute, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner("kubectl-patch"))).To(Succeed())
		}
		Expect(chosenBy()).To(BeEmpty())
		patch(`{"spec":{"customServiceConfig":"[DEFAULT]\ndebug = true\n"}}`)
		Expect(chosenBy()).To(BeEmpty())
		patch(`{"spec":{"novaComputeContainerImage":"mine"}}`)
		Expect(chosenBy()).To(Equal("kubectl-patch"))
		compute = apply("second")
		Expect(chosenBy()).To(Equal("kubectl-patch"))
		patch(`{"spec":{"novaComputeContainerImage":null}}`)
		Expect(chosenBy()).To(BeEmpty())
		Expect(images(compute)).To(Equal([]string{computeImage, libvirtImage, novaEEImage}))
	})
	It("fills those of a compute again when they are emptied", func() {
		compute := w.newCompute("n", "cell1")
		create(compute)
		compute.Spec.NovaComputeContainerImage = ""
		Expect(api.Update(ctx, compute)).To(Succeed())
		Expect(images(compute)).To(Equal([]string{computeImage, libvirtImage, novaEEImage}))
	})
	It("takes those of services of OVN from the operator's environment unless they name one", func() {
		controller, agent := MakeOVNController("n", string(w), "ovn"), MakeOVNMetadataAgent("n", string(w), "ovn")
		create(controller)
		create(agent)
		Expect([]string{controller.Spec.ContainerImage, agent.Spec.ContainerImage}).To(Equal([]string{"ovn", "metadata"}))
		other := MakeOVNMetadataAgent("other", string(w), "ovn")
		other.Spec.ContainerImage = "mine"
		create(other)
		Expect(other.Spec.ContainerImage).To(Equal("mine"))
	})
	It("takes that of a run from the operator's environment unless it names one", func() {
		run := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: w.meta("run", "-")}
		create(run)
		Expect(run.Spec.Image).To(Equal(aeeImage))
		other := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: w.meta("other", "-"), Spec: ansibleeev1.OpenStackAnsibleEESpec{Image: "mine"}}
		create(other)
		Expect(other.Spec.Image).To(Equal("mine"))
	})
})
