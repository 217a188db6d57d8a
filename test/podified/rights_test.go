package podified_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/rights"
)

var _ = AfterEach(func() { env.Requests.Report() })

var _ = ReportAfterSuite("Rights", func(report Report) {
	Expect(rights.Unused(rights.Podified, report)).To(BeEmpty(), "no story of this suite needs these rights: remove their markers, or add the story")
})

var _ = Describe("A control plane", func() {
	It("deletes the services that it made when they are disabled", func() {
		w := newWorld()
		w.apply(`apiVersion: core.openstack.org/v1beta1
kind: OpenStackControlPlane
metadata: {name: openstack}
spec:
  glance: {template: {glanceAPIs: {a: {}}}}
  nova: {template: {keystoneAuthURL: "http://keystone.example:5000", secret: osp-secret, cellTemplates: {}}}`)
		services := []client.Object{w.glance(), &novav1.Nova{ObjectMeta: w.meta("nova")}}
		for _, s := range services {
			Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(s), s) }).Should(Succeed())
		}
		change(&openstackv1.OpenStackControlPlane{ObjectMeta: w.meta("openstack")}, func(p *openstackv1.OpenStackControlPlane) {
			p.Spec.Glance.Enabled, p.Spec.Nova.Enabled = ptr.To(false), ptr.To(false)
		})
		for _, s := range services {
			Eventually(func() bool { return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(s), s)) }).Should(BeTrue(), "%T should go", s)
		}
	})
})
