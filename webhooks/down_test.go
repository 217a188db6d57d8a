package webhooks_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// The deployed configuration is installed a second time, pointing to a port
// that no one listens on: what it lets through never asks a webhook.
var _ = Describe("While the webhook is down the API server", Ordered, func() {
	var w world
	var node *dataplanev1.OpenStackDataPlaneNode
	var role *dataplanev1.OpenStackDataPlaneRole

	BeforeAll(func() {
		w = newWorld()
		w.role("one", "cell1")
		w.role("none", "-")
		w.node("n", "one", "-")
		w.node("free", "", "-")
		w.compute("n", "cell1")
		probe := func() error { return api.Create(ctx, w.newRole("probe", "cell1"), client.DryRunAll) }
		DeferCleanup(func() { Eventually(probe).WithTimeout(timeout).Should(Succeed()) })
		for _, obj := range deadWebhooks() {
			create(obj)
			DeferCleanup(func() { w.delete(obj) })
		}
		Eventually(probe).WithTimeout(timeout).Should(MatchError(ContainSubstring("failed calling webhook")))
	})
	BeforeEach(func() {
		node, role = w.newNode("n", "", "-"), w.newRole("one", "-")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(node), node)).To(Succeed())
		Expect(api.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
	})

	It("accepts labels, other annotations, finalizers and the spec of a node", func() {
		node.Labels = map[string]string{"a": "b"}
		node.Annotations = map[string]string{"edpm.openstack.org/rerun": "1"}
		controllerutil.AddFinalizer(node, dataplanev1.NodeFinalizer)
		Expect(api.Update(ctx, node)).To(Succeed())
		node.Spec.HostName, node.Spec.Node.AnsibleUser = "n.example.com", "cloud-admin"
		node.Spec.DeployStrategy.Deploy = ptr.To(false)
		Expect(api.Update(ctx, node)).To(Succeed())
		controllerutil.RemoveFinalizer(node, dataplanev1.NodeFinalizer)
		Expect(api.Update(ctx, node)).To(Succeed())
	})
	It("accepts labels, other annotations and the spec of a role", func() {
		role.Labels = map[string]string{"a": "b"}
		role.Annotations["note"] = "kept next to the cell"
		role.Spec.NodeTemplate.AnsibleUser = "cloud-admin"
		Expect(api.Update(ctx, role)).To(Succeed())
	})
	It("accepts status", func() {
		node.Status.InventoryConfigMapName = "dataplanenode-n"
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		role.Status.Nodes = 1
		Expect(api.Status().Update(ctx, role)).To(Succeed())
	})
	It("accepts server-side apply of an unchanged node and role", func() {
		for _, obj := range []client.Object{node, role} {
			patch := client.RawPatch(types.ApplyYAMLPatchType, asApplied(obj))
			Expect(api.Patch(ctx, obj, patch, client.FieldOwner("gitops"), client.ForceOwnership)).To(Succeed())
		}
	})
	It("accepts new objects that concern no cell", func() {
		w.role("plain", "-")
		w.node("plain", "", "-")
	})
	It("accepts metadata and finalizers of computes", func() {
		compute := w.newCompute("n", "")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(compute), compute)).To(Succeed())
		controllerutil.AddFinalizer(compute, novav1.NovaExternalComputeFinalizer)
		Expect(api.Update(ctx, compute)).To(Succeed())
		controllerutil.RemoveFinalizer(compute, novav1.NovaExternalComputeFinalizer)
		Expect(api.Update(ctx, compute)).To(Succeed())
	})

	DescribeTable("refuses what decides a cell",
		func(write func() error) {
			// Both configurations are asked at once, and a write that the one that is
			// served refuses too is answered with what came first.
			Eventually(func(g Gomega) {
				err := write()
				Expect(err).To(HaveOccurred())
				g.Expect(err).To(MatchError(ContainSubstring("failed calling webhook")))
				g.Expect(apierrors.IsInternalError(err)).To(BeTrue(), err.Error())
			}).WithTimeout(timeout).Should(Succeed())
		},
		Entry("the annotation of a node added", func() error { return w.annotateNode("n", "cell2") }),
		Entry("an empty annotation of a node added", func() error { return w.annotateNode("n", "") }),
		Entry("the first annotation of a node added", func() error { return w.annotateNode("free", "cell2") }),
		Entry("the role of a node changed", func() error { return w.moveNode("n", "none") }),
		Entry("the role of a node removed", func() error { return w.moveNode("n", "") }),
		Entry("the annotation of a role added", func() error { return w.annotateRole("none", "cell1") }),
		Entry("the annotation of a role changed", func() error { return w.annotateRole("one", "cell2") }),
		Entry("the annotation of a role removed", func() error { return w.annotateRole("one", "-") }),
		Entry("a node with a role created", func() error { return api.Create(ctx, w.newNode("new", "one", "-")) }),
		Entry("a node with an annotation created", func() error { return api.Create(ctx, w.newNode("new", "", "cell1")) }),
		Entry("a role with an annotation created", func() error { return api.Create(ctx, w.newRole("new", "cell1")) }),
	)

	It("deletes everything", func() {
		w.delete(node)
		w.delete(role)
		w.delete(w.newCompute("n", ""))
	})
})

// deadWebhooks returns what is deployed, with a URL that no one serves.
func deadWebhooks() []client.Object {
	manifest, err := os.ReadFile(envtest.File("config", "webhook", "manifests.yaml"))
	Expect(err).NotTo(HaveOccurred())
	docs := splitYAML(manifest)
	Expect(docs).To(HaveLen(2))

	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	Expect(yaml.UnmarshalStrict(docs[0], mutating)).To(Succeed())
	Expect(yaml.UnmarshalStrict(docs[1], validating)).To(Succeed())
	dead := admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/nobody")}
	mutating.Name, validating.Name = "dead-mutating", "dead-validating"
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig = dead
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig = dead
	}
	return []client.Object{mutating, validating}
}

// asApplied is the object as a user who applies all of it would write it.
func asApplied(obj client.Object) []byte {
	GinkgoHelper()
	gvk, err := api.GroupVersionKindFor(obj)
	Expect(err).NotTo(HaveOccurred())
	applied := obj.DeepCopyObject().(client.Object)
	applied.GetObjectKind().SetGroupVersionKind(gvk)
	applied.SetManagedFields(nil)
	applied.SetResourceVersion("")
	applied.SetUID("")
	text, err := yaml.Marshal(applied)
	Expect(err).NotTo(HaveOccurred())
	return text
}

var _ = Describe("The deployed configuration", func() {
	It("calls no webhook for status, and none for every write", func() {
		config := &admissionv1.ValidatingWebhookConfiguration{}
		Expect(api.Get(ctx, client.ObjectKey{Name: "validating-webhook-configuration"}, config)).To(Succeed())
		Expect(config.Webhooks).To(HaveLen(19))
		for _, hook := range config.Webhooks {
			for _, rule := range hook.Rules {
				Expect(rule.Resources).NotTo(ContainElement(ContainSubstring("/")), hook.Name)
				Expect(rule.Operations).NotTo(ContainElement(admissionv1.Delete), hook.Name)
			}
			Expect(hook.MatchConditions).NotTo(BeEmpty(), hook.Name)
		}
	})
})
