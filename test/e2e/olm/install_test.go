package olm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A Subscription", Ordered, func() {
	It("installs the operators from their catalog", func(ctx SpecContext) {
		Expect(cluster.Apply(ctx, subscription())).To(Succeed())
		Eventually(status(ctx, "Subscription", systemNS, "edpm-operators", "installedCSV")).Should(Equal(oldOne))
		Eventually(csvPhase(ctx, oldOne)).Should(Equal("Succeeded"))
		Eventually(managers).WithContext(ctx).Should(HaveLen(1))

		Eventually(planPhases).WithContext(ctx).Should(Equal([]string{"Complete"}))
	}, SpecTimeout(5*time.Minute))

	It("gives the manager the permissions of the bundle, and what OLM adds for every operator", func(ctx SpecContext) {
		granted, elsewhere := clusterRules(ctx)
		// An operator for all namespaces gets the rights for its own namespace in all
		// of them, and sees which there are.
		Expect(granted).To(ConsistOf(append(bundledRules(ctx), rbacv1.PolicyRule{
			Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"},
		})))
		Expect(elsewhere).To(ConsistOf("system:auth-delegator")) // as if it served an aggregated API
		Eventually(roles).WithContext(ctx).Should(ConsistOf(
			HavePrefix(oldOne+"-"),
			Equal(oldOne),                    // its OperatorCondition
			Equal(container+"-service-cert"), // the certificate of its webhooks
			Equal("kube-system/extension-apiserver-authentication-reader"),
		))
	}, SpecTimeout(time.Minute))

	It("calls the webhooks through the Service and with the certificates of OLM", func(ctx SpecContext) {
		mutating, validating := &admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{}
		Expect(k8s.List(ctx, mutating, client.MatchingLabels{"olm.owner": oldOne})).To(Succeed())
		Expect(k8s.List(ctx, validating, client.MatchingLabels{"olm.owner": oldOne})).To(Succeed())
		Expect(mutating.Items).NotTo(BeEmpty())
		Expect(validating.Items).NotTo(BeEmpty())

		needPod()
		Eventually(func() error { return k8s.Create(ctx, spread("good", "zone"), client.DryRunAll) }).Should(Succeed())
		Expect(k8s.Create(ctx, spread("bad", "no label!"), client.DryRunAll)).To(MatchError(ContainSubstring("vtopology.kb.io")))
	}, SpecTimeout(3*time.Minute))

	It("reconciles objects with these permissions", func(ctx SpecContext) {
		needPod()
		Expect(k8s.Create(ctx, spread("kept", "zone"))).To(Succeed())
		Eventually(func() (int64, error) {
			topology := spread("kept", "")
			err := k8s.Get(ctx, client.ObjectKeyFromObject(topology), topology)
			return topology.Status.ObservedGeneration, err
		}).Should(BeEquivalentTo(1))
		Expect(cluster.Kubectl(ctx, "logs", "-n", systemNS, "deployment/"+container)).NotTo(ContainSubstring("is forbidden"))
	}, SpecTimeout(3*time.Minute))

	It("brings the samples to Ready, on nodes as they ask for", samplesBecomeReady, SpecTimeout(5*time.Minute))

	It("upgrades when the catalog has a next version", func(ctx SpecContext) {
		before := definitions(ctx)
		serveCatalog(ctx, []string{"0.1.0", "0.2.0"})
		askCatalogAgain(ctx)
		Eventually(csvPhase(ctx, newOne)).Should(Equal("Succeeded"))
		Eventually(func() error {
			old := object("ClusterServiceVersion", systemNS, oldOne)
			return k8s.Get(ctx, client.ObjectKeyFromObject(old), old)
		}).Should(MatchError(apierrors.IsNotFound, "gone"))
		Eventually(managers).WithContext(ctx).Should(HaveLen(1))
		Expect(definitions(ctx)).To(Equal(before), "an upgrade makes no kind again")
		if !pretend() {
			kept := spread("kept", "")
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(kept), kept)).To(Succeed())
			Eventually(func() error { return k8s.Create(ctx, spread("next", "zone"), client.DryRunAll) }).Should(Succeed())
		}
	}, SpecTimeout(8*time.Minute))

	It("leaves kinds and objects where they are when it is removed", func(ctx SpecContext) {
		before := definitions(ctx)
		Expect(k8s.Delete(ctx, object("Subscription", systemNS, "edpm-operators"))).To(Succeed())
		Expect(k8s.Delete(ctx, object("ClusterServiceVersion", systemNS, newOne))).To(Succeed())
		Eventually(func() error {
			d := deployment()
			return k8s.Get(ctx, client.ObjectKeyFromObject(d), d)
		}).Should(MatchError(apierrors.IsNotFound, "gone"))
		Eventually(func() (int, error) {
			validating := &admissionv1.ValidatingWebhookConfigurationList{}
			err := k8s.List(ctx, validating, client.MatchingLabels{"olm.managed": "true"})
			return len(validating.Items), err
		}).Should(BeZero(), "no one would answer")
		Expect(definitions(ctx)).To(Equal(before))
		if !pretend() {
			kept := spread("kept", "")
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(kept), kept)).To(Succeed())
		}
	}, SpecTimeout(5*time.Minute))

	It("installs some operators, with those that they need", func(ctx SpecContext) {
		makeBundle(ctx, "glance", "OPERATORS=glance", "VERSION=0.2.0")
		makeBundle(ctx, "topology", "OPERATORS=topology", "VERSION=0.2.0")
		serveCatalog(ctx, []string{"glance"}, []string{"topology"})
		askCatalogAgain(ctx)
		Expect(cluster.Apply(ctx, subscriptionTo("edpm-operators-glance"))).To(Succeed())
		Eventually(csvPhase(ctx, "edpm-operators-glance.v0.2.0")).Should(Equal("Succeeded"))
		Eventually(csvPhase(ctx, "edpm-operators-topology.v0.2.0")).Should(Equal("Succeeded"))
		Eventually(managers).WithContext(ctx).Should(HaveLen(2))

		validating := &admissionv1.ValidatingWebhookConfigurationList{}
		Expect(k8s.List(ctx, validating, client.MatchingLabels{"olm.managed": "true"})).To(Succeed())
		var services []string
		for _, config := range validating.Items {
			services = append(services, config.Webhooks[0].Name+" "+config.Webhooks[0].ClientConfig.Service.Name)
		}
		Expect(services).To(ConsistOf(
			"vglance.kb.io edpm-operators-glance-manager-service",
			"vglanceapi.kb.io edpm-operators-glance-manager-service",
			"vtopology.kb.io edpm-operators-topology-manager-service",
		))

		needPod()
		Eventually(func() error { return k8s.Create(ctx, spread("part", "zone"), client.DryRunAll) }).Should(Succeed())
		for _, lease := range []string{"edpm-operators-glance", "edpm-operators-topology"} {
			Eventually(func() error {
				return k8s.Get(ctx, client.ObjectKey{Namespace: systemNS, Name: lease}, &coordinationv1.Lease{})
			}).Should(Succeed(), lease)
		}
	}, SpecTimeout(8*time.Minute))
})

// planPhases returns how far each InstallPlan is.
func planPhases(ctx context.Context) ([]string, error) {
	plans := &unstructured.UnstructuredList{}
	plans.SetGroupVersionKind(olmVersion.WithKind("InstallPlanList"))
	err := k8s.List(ctx, plans, client.InNamespace(systemNS))
	var phases []string
	for _, plan := range plans.Items {
		phase, _, _ := unstructured.NestedString(plan.Object, "status", "phase") // none at first
		phases = append(phases, phase)
	}
	return phases, err
}

// askCatalogAgain has OLM connect to the catalog again, as it does by itself after
// some minutes.
func askCatalogAgain(ctx context.Context) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"spec": {"displayName": "as of %s"}}`, time.Now().Format(time.RFC3339Nano))
	Expect(k8s.Patch(ctx, object("CatalogSource", olmNS, "edpm-operators"), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// definitions returns the identities of the resource definitions of the suite.
func definitions(ctx context.Context) map[string]types.UID {
	GinkgoHelper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	Expect(k8s.List(ctx, list, client.MatchingLabels{"app.kubernetes.io/part-of": "edpm-operators"})).To(Succeed())
	found := map[string]types.UID{}
	for _, crd := range list.Items {
		found[crd.Name] = crd.UID
	}
	files, err := filepath.Glob(filepath.Join(cluster.Root, "bundle", "manifests", "*.openstack.org_*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(HaveLen(len(files)), "%v", slices.Sorted(maps.Keys(found)))
	return found
}

// bundledRules returns the rights that the bundle asks for.
func bundledRules(ctx context.Context) []rbacv1.PolicyRule {
	GinkgoHelper()
	csv := object("ClusterServiceVersion", systemNS, oldOne)
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(csv), csv)).To(Succeed())
	install, _, err := unstructured.NestedMap(csv.Object, "spec", "install", "spec")
	Expect(err).NotTo(HaveOccurred())
	rights := struct {
		Permissions        []rbacv1.Role `json:"permissions"`
		ClusterPermissions []rbacv1.Role `json:"clusterPermissions"`
	}{} // of a Role they have the rules
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(install, &rights)).To(Succeed())
	Expect(rights.Permissions).To(HaveLen(1))
	Expect(rights.ClusterPermissions).To(HaveLen(1))
	return append(rights.Permissions[0].Rules, rights.ClusterPermissions[0].Rules...)
}

// clusterRules returns the rules of the ClusterRoles that OLM made for the manager,
// and the names of others that it has.
func clusterRules(ctx context.Context) (rules []rbacv1.PolicyRule, others []string) {
	GinkgoHelper()
	bindings := &rbacv1.ClusterRoleBindingList{}
	Expect(k8s.List(ctx, bindings)).To(Succeed())
	for _, binding := range bindings.Items {
		switch name := binding.RoleRef.Name; {
		case !bindsManager(binding.Subjects, ""):
		case strings.HasPrefix(name, oldOne+"-"):
			role := &rbacv1.ClusterRole{}
			Expect(k8s.Get(ctx, client.ObjectKey{Name: name}, role)).To(Succeed())
			rules = append(rules, role.Rules...)
		default:
			others = append(others, name)
		}
	}
	return rules, others
}

// roles returns the names of the Roles that the manager has, with the namespace of
// those elsewhere.
func roles(ctx context.Context) ([]string, error) {
	bindings := &rbacv1.RoleBindingList{}
	err := k8s.List(ctx, bindings)
	names := sets.New[string]()
	for _, binding := range bindings.Items {
		if !bindsManager(binding.Subjects, binding.Namespace) {
			continue
		}
		name := binding.RoleRef.Name
		if binding.Namespace != systemNS {
			name = binding.Namespace + "/" + name
		}
		names.Insert(name)
	}
	return sets.List(names), err
}

// bindsManager reports whether the manager is among the subjects of a binding. One
// without a namespace is in that of the binding.
func bindsManager(subjects []rbacv1.Subject, namespace string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == container && cmp.Or(s.Namespace, namespace) == systemNS
	})
}
