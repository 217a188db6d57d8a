package controllers_test

import (
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/rights"
)

var _ = AfterEach(func() { env.Requests.Report() })

var _ = ReportAfterSuite("Rights", func(report Report) {
	Expect(rights.Unused(rights.Controllers, report)).To(BeEmpty(), "no story of this suite needs these rights: remove their markers, or add the story")
})

// finalizers are the rights on finalizers that the manager has.
func finalizers() []schema.GroupResource {
	GinkgoHelper()
	text, err := os.ReadFile(envtest.File("config", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var found []schema.GroupResource
	for _, doc := range strings.Split(string(text), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		Expect(yaml.Unmarshal([]byte(doc), role)).To(Succeed())
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if kind, ok := strings.CutSuffix(resource, "/finalizers"); ok {
					found = append(found, schema.GroupResource{Group: rule.APIGroups[0], Resource: kind})
				}
			}
		}
	}
	return found
}

var _ = Describe("The permission to update finalizers", func() {
	It("lets a child name its owner, which the API server refuses without it", func() {
		ns := newPlaceName()
		other := "without-finalizers"
		Expect(api.Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: other}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}},
		})).To(Succeed())
		Expect(api.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: other}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: other},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: other}},
		})).To(Succeed())
		config := rest.CopyConfig(env.Config)
		config.Impersonate.UserName = other
		without, err := client.New(config, client.Options{Scheme: env.Scheme})
		Expect(err).NotTo(HaveOccurred())
		with, err := client.New(managerConfig, client.Options{Scheme: env.Scheme})
		Expect(err).NotTo(HaveOccurred())

		kinds := finalizers()
		Expect(len(kinds)).To(BeNumerically(">", 5))
		for i, resource := range kinds {
			kind, err := api.RESTMapper().KindFor(resource.WithVersion(""))
			Expect(err).NotTo(HaveOccurred())
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("child-", i), OwnerReferences: []metav1.OwnerReference{{
				APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: "owner", UID: "1", BlockOwnerDeletion: ptr.To(true),
			}}}}
			Eventually(func(g Gomega) { // the API server reads roles from a cache of its own
				err := without.Create(ctx, child.DeepCopy(), client.DryRunAll)
				g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s without the right: %v", resource, err)
				g.Expect(err).To(MatchError(ContainSubstring("blockOwnerDeletion")))
			}).Should(Succeed())
			Expect(with.Create(ctx, child, client.DryRunAll)).To(Succeed(), resource.String())
		}
	})
})

// newPlaceName makes a namespace without a manager.
func newPlaceName() string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	return ns.Name
}
