package webhooks_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
)

var _ = Describe("The layout of a glance API", func() {
	var w world
	BeforeEach(func() {
		w = newWorld()
		warnings.take()
	})
	const swift = `customServiceConfig: "[DEFAULT]\nenabled_backends = a:swift\n"`

	It("follows the backend when the API is created", func() {
		g := with(w, "Glance", `{`+swift+`, glanceAPIs: {a: {}, b: {customServiceConfig: "[DEFAULT]\nenabled_backends = f:file\n"}, c: {type: edge}}}`).(*glancev1.Glance)
		create(g)
		Expect(g.Spec.GlanceAPIs["a"].Type).To(Equal(glancev1.LayoutSplit))
		Expect(g.Spec.GlanceAPIs["b"].Type).To(Equal(glancev1.LayoutSingle))
		Expect(g.Spec.GlanceAPIs["c"].Type).To(Equal(glancev1.LayoutEdge))
	})
	It("follows the backend in a control plane too", func() {
		p := with(w, "OpenStackControlPlane", `glance: {template: {glanceAPIs: {a: {}}}}`).(*openstackv1.OpenStackControlPlane)
		create(p)
		Expect(p.Spec.Glance.Template.GlanceAPIs["a"].Type).To(Equal(glancev1.LayoutSingle))
	})
	It("stays when the backend changes", func() {
		g := with(w, "Glance", `glanceAPIs: {a: {}}`).(*glancev1.Glance)
		create(g)
		g.Spec.CustomServiceConfig = "[DEFAULT]\nenabled_backends = a:swift\n"
		Expect(api.Update(ctx, g)).To(Succeed())
		Expect(g.Spec.GlanceAPIs["a"].Type).To(Equal(glancev1.LayoutSingle))
	})
	DescribeTable("stays as it is in an update",
		func(kind, spec string, patch string) {
			obj := with(w, kind, spec)
			create(obj)
			err := api.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch)))
			refused(err, "The GlanceAPI layout (type) cannot be modified", "add a new API with the desired layout and then decommission the previous API")
		},
		Entry("of a Glance", "Glance", `glanceAPIs: {a: {type: single}}`, `{"spec": {"glanceAPIs": {"a": {"type": "edge"}}}}`),
		Entry("of a control plane", "OpenStackControlPlane", `glance: {template: {glanceAPIs: {a: {type: single}}}}`,
			`{"spec": {"glance": {"template": {"glanceAPIs": {"a": {"type": "edge"}}}}}}`),
	)
	It("may differ from that of a removed API", func() {
		g := with(w, "Glance", `glanceAPIs: {a: {type: single}}`).(*glancev1.Glance)
		create(g)
		g.Spec.GlanceAPIs = map[string]glancev1.GlanceAPITemplate{"b": {Type: glancev1.LayoutEdge}}
		Expect(api.Update(ctx, g)).To(Succeed())
	})
	It("may be split with files if there are no pods", func() {
		create(with(w, "Glance", `glanceAPIs: {a: {type: split, replicas: 0}}`))
	})
	It("causes a warning when no service could use the API", func() {
		create(with(w, "Glance", `glanceAPIs: {a: {}}`))
		Expect(warnings.take()).To(ConsistOf(ContainSubstring("spec.keystoneAuthURL is empty")))
	})
})

var _ = Describe("The Secret of nova", func() {
	const nova = `nova: {template: {keystoneAuthURL: "http://keystone.example:5000"}}`
	It("may be that of the control plane", func() {
		create(with(newWorld(), "OpenStackControlPlane", `{secret: osp-secret, `+nova+`}`))
	})
	It("must be named somewhere", func() {
		refused(api.Create(ctx, with(newWorld(), "OpenStackControlPlane", `{`+nova+`}`)), "spec.nova.template.secret: Required", "or set spec.secret for all services")
	})
	It("must be named by a Nova", func() {
		refused(api.Create(ctx, with(newWorld(), "Nova", `{secret: ""}`)), "secret is required: set it to the Secret")
	})
})

var _ = Describe("A second control plane", func() {
	It("fails in the same namespace only", func() {
		w := newWorld()
		create(with(w, "OpenStackControlPlane", `{}`))
		other := with(w, "OpenStackControlPlane", `{}`)
		other.SetName("other")
		refused(api.Create(ctx, other), "OpenStackControlPlane openstack already", "use another namespace")
		create(with(newWorld(), "OpenStackControlPlane", `{}`))
	})
})
