package webhooks_test

import (
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// storeOptions stores those of the image of computes.
func (w world) storeOptions() {
	GinkgoHelper()
	file, err := os.Open(envtest.File("internal/catalogue/testdata/generated.json"))
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	known, err := catalogue.Parse(file)
	Expect(err).NotTo(HaveOccurred())
	data, err := known.Encode()
	Expect(err).NotTo(HaveOccurred())
	create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: string(w), Name: options.Name(computeImage)}, BinaryData: map[string][]byte{"options": data}})
}

var _ = Describe("The webhooks of nova, once the options of an image are known,", func() {
	It("refuse what it cannot read in computes and templates of cells", func() {
		w := newWorld()
		cell := MakeCell("cell1", string(w)).Obj()
		create(cell)
		cell.Status.Images = map[string]string{novav1.ComputeComponent: computeImage}
		Expect(api.Status().Update(ctx, cell)).To(Succeed())
		const wrong = "[libvirt]\ncpu_mode = host-passthru\n"
		Expect(api.Create(ctx, w.newCompute("before", "cell1"))).To(Succeed())
		w.storeOptions()

		Eventually(func() error {
			compute := w.newCompute("n", "cell1")
			compute.Spec.CustomServiceConfig = wrong
			return api.Create(ctx, compute)
		}, timeout).Should(MatchError(ContainSubstring(`spec.customServiceConfig: Forbidden: line 2: [libvirt] cpu_mode is "host-passthru", but should be one of`)))
		cell.Spec.ComputeTemplates = []novav1.NovaComputeTemplate{{CustomServiceConfig: wrong}}
		Expect(api.Update(ctx, cell)).To(MatchError(ContainSubstring("spec.computeTemplates[0].customServiceConfig: Forbidden: line 2")))
		service := "containerImage: " + computeImage + "\ncustomServiceConfig: \"[libvirt]\\ncpu_mode = host-passthru\\n\""
		for kind, paths := range map[string][]string{
			"Nova": {"apiServiceTemplate", "schedulerServiceTemplate", "cellTemplates.cell1.conductorServiceTemplate", "cellTemplates.cell1.metadataServiceTemplate",
				"cellTemplates.cell1.noVNCProxyServiceTemplate"},
			"NovaCell":    {"conductorServiceTemplate", "metadataServiceTemplate", "noVNCProxyServiceTemplate"},
			"NovaCompute": {""},
		} {
			for _, path := range paths {
				refused(api.Create(ctx, with(w, kind, nested(path, service))), "customServiceConfig: Forbidden: line 2: [libvirt] cpu_mode")
			}
		}
		const templates = `{cellTemplates: {cell1: {novaComputeContainerImage: "` + computeImage + `", computeTemplates: [{customServiceConfig: "[libvirt]\ncpu_mode = host-passthru\n"}]}}}`
		refused(api.Create(ctx, with(w, "Nova", templates)), "spec.cellTemplates[cell1].computeTemplates[0].customServiceConfig: Forbidden: line 2: [libvirt] cpu_mode")
		odd := w.newCompute("odd", "cell1")
		odd.Spec.CustomServiceConfig = "[libvirt]\ncpu_mdoe = none\n"
		Expect(api.Create(ctx, odd)).To(Succeed())
		Expect(warnings.take()).To(ContainElement(ContainSubstring("line 2: the image does not know [libvirt] cpu_mdoe and ignores it: do you mean [libvirt] cpu_mode?")))
	})
})

var _ = Describe("A control plane, once the options of an image are known,", func() {
	It("is refused for what its Nova would be refused for", func() {
		w := newWorld()
		w.storeOptions()
		nova := with(w, "Nova", `{}`).(*novav1.Nova)
		nova.Name = openstackv1.NovaName
		create(nova)
		nova.Status.Images = map[string]string{novav1.APIComponent: computeImage, novav1.ComputeComponent: computeImage}
		Expect(api.Status().Update(ctx, nova)).To(Succeed())

		const wrong = `customServiceConfig: "[libvirt]\ncpu_mode = host-passthru\n"`
		plane := func(template string) client.Object {
			return with(w, "OpenStackControlPlane", `{secret: s, nova: {template: {keystoneAuthURL: "http://keystone.example:5000", `+template+`}}}`)
		}
		Eventually(func() error { return api.Create(ctx, plane(`apiServiceTemplate: {`+wrong+`}`), client.DryRunAll) }, timeout).
			Should(MatchError(ContainSubstring("spec.nova.template.apiServiceTemplate.customServiceConfig: Forbidden: line 2: [libvirt] cpu_mode")))
		const cells = `cellTemplates: {cell1: {computeTemplates: [{` + wrong + `}]}}`
		refused(api.Create(ctx, plane(cells)), "spec.nova.template.cellTemplates[cell1].computeTemplates[0].customServiceConfig: Forbidden: line 2")

		present := plane(`schedulerServiceTemplate: {customServiceConfig: "[libvirt]\ncpu_mode = none\n"}`).(*openstackv1.OpenStackControlPlane)
		create(present)
		present.Spec.Nova.Template.APIServiceTemplate.CustomServiceConfig = "[libvirt]\ncpu_mode = host-passthru\n"
		refused(api.Update(ctx, present), "spec.nova.template.apiServiceTemplate.customServiceConfig: Forbidden: line 2")
	})
})

// nested is YAML below the names of a path.
func nested(path, text string) string {
	for _, name := range slices.Backward(strings.FieldsFunc(path, func(r rune) bool { return r == '.' })) {
		text = name + ":\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	return text
}
