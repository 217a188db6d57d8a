package story

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writesTo are the writes to a resource, not to its status.
func writesTo(group, resource string) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}
}

// Refuse has the API server refuse writes to objects of a resource for which the expression is
// false, of those for which the condition is true, until the returned function is called or the
// story ends. The name is that of the policy.
func Refuse(name, group, resource, condition, expression string) (accept func()) {
	GinkgoHelper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: writesTo(group, resource)}}},
		MatchConditions:  []admissionv1.MatchCondition{{Name: "condition", Expression: condition}},
		Validations:      []admissionv1.Validation{{Expression: expression, Message: "not with this object", Reason: ptr.To(metav1.StatusReasonForbidden)}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	return during(policy, binding)
}

// Silence has the API server ask a webhook that does not answer before each write to an object
// of a resource in a namespace, until the returned function is called or the story ends.
func Silence(ns, group, resource string) (end func()) {
	GinkgoHelper()
	return during(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ns}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "silent.example.org", Rules: []admissionv1.RuleWithOperations{writesTo(group, resource)},
		ClientConfig:      admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/validate")},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}},
		SideEffects:       ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}})
}

// during creates objects, and deletes them when the returned function is called or the story ends.
func during(objects ...client.Object) (end func()) {
	GinkgoHelper()
	end = func() {
		for _, obj := range objects {
			Expect(client.IgnoreNotFound(api.Delete(ctx, obj))).To(Succeed())
		}
	}
	for _, obj := range objects {
		Expect(api.Create(ctx, obj)).To(Succeed())
	}
	DeferCleanup(end)
	return end
}
