package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

const managerAccount = "system:serviceaccount:" + systemNS + ":edpm-operators-manager"

// allowed asks whether the manager may do something: "verb group/resource[/subresource] [namespace]".
func allowed(ctx context.Context, question string) (bool, error) {
	words := strings.Fields(question + " ")
	group, resource, _ := strings.Cut(words[1], "/")
	resource, sub, _ := strings.Cut(resource, "/")
	attributes := &authorizationv1.ResourceAttributes{Verb: words[0], Group: group, Resource: resource, Subresource: sub}
	if len(words) > 2 {
		attributes.Namespace = words[2]
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: managerAccount, Groups: []string{"system:serviceaccounts", "system:authenticated"}, ResourceAttributes: attributes,
	}}
	err := k8s.Create(ctx, review)
	return review.Status.Allowed, err
}

// rightsStories tell what the manager and the runs may do, and what not.
func rightsStories() {
	It("allow what the manager does", func(ctx SpecContext) {
		needPod()
		for _, question := range []string{
			"create batch/jobs " + batchNS, "create ansibleee.openstack.org/openstackansibleees " + batchNS,
			"patch nova.openstack.org/novaexternalcomputes/status " + batchNS, "get /secrets " + batchNS,
			"get /pods/log " + batchNS,
		} {
			Expect(allowed(ctx, question)).To(BeTrue(), question)
		}
	}, SpecTimeout(3*time.Minute))

	It("deny the manager what it does not need", func(ctx SpecContext) {
		needPod()
		for _, question := range []string{
			"create /pods " + batchNS, "create /pods/exec " + batchNS, "update /pods " + batchNS,
			"create /serviceaccounts/token " + batchNS, "impersonate /users", "delete /namespaces", "patch /nodes", "delete /persistentvolumeclaims " + batchNS,
			"create rbac.authorization.k8s.io/clusterrolebindings", "escalate rbac.authorization.k8s.io/clusterroles", "bind rbac.authorization.k8s.io/roles " + batchNS,
			"patch apps/deployments " + systemNS, "create apps/daemonsets " + batchNS, "update batch/jobs " + batchNS,
			"patch /pods " + batchNS, "update admissionregistration.k8s.io/mutatingwebhookconfigurations", "update admissionregistration.k8s.io/validatingwebhookconfigurations",
			"patch apiextensions.k8s.io/customresourcedefinitions", "delete apiextensions.k8s.io/customresourcedefinitions",
			"create admissionregistration.k8s.io/validatingwebhookconfigurations", "delete admissionregistration.k8s.io/validatingwebhookconfigurations",
			"patch core.openstack.org/openstackcontrolplanes " + batchNS, "delete core.openstack.org/openstackcontrolplanes " + batchNS,
			"create topology.openstack.org/topologies " + batchNS, "delete topology.openstack.org/topologies " + batchNS,
			"delete dataplane.openstack.org/openstackdataplanes " + batchNS, "create coordination.k8s.io/leases " + batchNS, "* */*",
		} {
			Expect(allowed(ctx, question)).To(BeFalse(), question)
		}
	}, SpecTimeout(3*time.Minute))

	It("restrict metrics to those who may read them", func(ctx SpecContext) {
		needPod()
		pod := &podManager{}
		Expect(pod.Metrics(ctx)).To(ContainSubstring("edpm_hosts{"))
		_, err := pod.metricsAs(ctx, "")
		Expect(err).To(MatchError(ContainSubstring("401 Unauthorized")))
		other := &authenticationv1.TokenRequest{}
		Expect(k8s.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: named(batchNS, "default")}, other)).To(Succeed())
		_, err = pod.metricsAs(ctx, other.Status.Token)
		Expect(err).To(MatchError(ContainSubstring("403 Forbidden")))
	}, SpecTimeout(3*time.Minute))

	It("confine the manager's pod, and admit no other kind to its namespace", func(ctx SpecContext) {
		needPod()
		pods, err := (&podManager{}).pods(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(pods).To(HaveLen(1))
		expectConfined(&pods[0])
		Expect(k8s.Create(ctx, privilegedPod(systemNS), client.DryRunAll)).To(MatchError(ContainSubstring("violates PodSecurity")))
	}, SpecTimeout(3*time.Minute))

	It("confine the runs' pods, which have no token of the cluster", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, privilegedPod(batchNS), client.DryRunAll)).To(MatchError(ContainSubstring("violates PodSecurity")))
		runs := 0
		for _, ns := range testNamespaces {
			pods := &corev1.PodList{}
			Expect(k8s.List(ctx, pods, client.InNamespace(ns), client.MatchingLabels{"osaee": "true"})).To(Succeed())
			runs += len(pods.Items)
			for i := range pods.Items {
				expectConfined(&pods.Items[i])
				Expect(pods.Items[i].Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
			}
		}
		Expect(runs).To(BeNumerically(">", 0), "there are no runs to look at")
	}, SpecTimeout(3*time.Minute))
}

// secretRightsStories tell that the manager works with a right on Secrets in some
// namespaces only, as config/overlays/secrets-by-namespace grants it.
func secretRightsStories() {
	everywhere := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "edpm-operators-manager-secrets-rolebinding"}}
	in := func(ns string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: named(ns, "edpm-operators-manager-secrets"), RoleRef: everywhere.RoleRef, Subjects: everywhere.Subjects}
	}

	BeforeAll(func(ctx SpecContext) {
		needPod()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(everywhere), everywhere)).To(Succeed())
		for _, ns := range testNamespaces {
			if ns != unboundNS {
				create(ctx, in(ns))
			}
		}
		Expect(k8s.Delete(ctx, everywhere.DeepCopy())).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: everywhere.Name, Labels: everywhere.Labels}, RoleRef: everywhere.RoleRef, Subjects: everywhere.Subjects})
			for _, ns := range testNamespaces {
				Expect(client.IgnoreNotFound(k8s.Delete(ctx, in(ns)))).To(Succeed())
			}
		}, NodeTimeout(3*time.Minute))
		Expect(manager.Evict(ctx)).To(Succeed()) // watches that it has may continue
		Expect(manager.Ready(ctx)).To(Succeed())
		role := newRole(unboundNS, quick, quick)
		role.Spec.DeployStrategy.Deploy = ptr.To(false)
		create(ctx, sshKey(unboundNS), quickService(unboundNS, quick), role, &dataplanev1.OpenStackDataPlaneNode{
			ObjectMeta: named(unboundNS, "unbound"), Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Role: quick, AnsibleHost: "192.168.122.250"},
		})
	}, NodeTimeout(15*time.Minute))

	It("show in a condition when a namespace lacks them", func(ctx SpecContext) {
		Eventually(current(ctx, nodeNamed(unboundNS, "unbound"))).WithTimeout(3 * time.Minute).
			Should(haveProblem(condition.InputReadyCondition, common.SecretForbiddenReason, "no permissions for Secrets in namespace "+unboundNS))
	}, SpecTimeout(6*time.Minute))

	It("let everything continue when granted later", func(ctx SpecContext) {
		create(ctx, in(unboundNS))
		Eventually(func() (bool, error) {
			n := nodeNamed(unboundNS, "unbound")
			err := k8s.Get(ctx, client.ObjectKeyFromObject(n), n)
			return n.Status.Conditions.IsTrue(condition.InputReadyCondition), err
		}).WithTimeout(6 * time.Minute).Should(BeTrue())
	}, SpecTimeout(9*time.Minute))
}

func expectConfined(pod *corev1.Pod) {
	GinkgoHelper()
	Expect(pod.Spec.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()), pod.Name)
	Expect(pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC).To(BeFalse(), pod.Name)
	for _, c := range pod.Spec.Containers {
		Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()), pod.Name)
		Expect(c.SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()), pod.Name)
		Expect(c.SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")), pod.Name)
	}
	for _, v := range pod.Spec.Volumes {
		Expect(v.HostPath).To(BeNil(), pod.Name)
	}
}

func privilegedPod(ns string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named(ns, "privileged"), Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: managerImage, SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
	}}}}
}

// warnings returns the warnings of a namespace as "<object>: <reason>".
func warnings(ctx context.Context, ns string) ([]string, error) {
	list := &eventsv1.EventList{}
	err := k8s.List(ctx, list, client.InNamespace(ns))
	var lines []string
	for _, e := range list.Items {
		if e.Type == corev1.EventTypeWarning {
			lines = append(lines, e.Regarding.Name+": "+e.Reason)
		}
	}
	return lines, err
}
