package main

import (
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// servicePort is where the Service that OLM makes for the webhooks listens.
const servicePort = 443

// webhooks returns the webhooks for OLM to configure. A ClusterServiceVersion has
// no matchConditions, so these webhooks are called for more writes than those of
// config/webhook: their handlers say yes to whatever changes nothing that they
// judge, and so only the answer's way is longer.
func (in *input) webhooks() ([]v1alpha1.WebhookDescription, error) {
	port, err := in.webhookPort()
	if err != nil {
		return nil, err
	}
	var all []v1alpha1.WebhookDescription
	for _, w := range in.mutating {
		d := in.webhook(v1alpha1.MutatingAdmissionWebhook, port, admissionv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
		})
		d.ReinvocationPolicy = w.ReinvocationPolicy
		all = append(all, d)
		if w.NamespaceSelector != nil {
			return nil, noNamespaceSelector(w.Name)
		}
	}
	for _, w := range in.validating {
		if w.NamespaceSelector != nil {
			return nil, noNamespaceSelector(w.Name)
		}
		all = append(all, in.webhook(v1alpha1.ValidatingAdmissionWebhook, port, w))
	}
	return all, nil
}

func noNamespaceSelector(name string) error {
	return fmt.Errorf("webhook %s has a namespaceSelector, which OLM sets by itself: select by object, or in the handler", name)
}

func (in *input) webhook(t v1alpha1.WebhookAdmissionType, port int32, w admissionv1.ValidatingWebhook) v1alpha1.WebhookDescription {
	return v1alpha1.WebhookDescription{
		GenerateName: w.Name, Type: t, DeploymentName: in.deployment.Name,
		ContainerPort: servicePort, TargetPort: ptr.To(intstr.FromInt32(port)),
		WebhookPath: w.ClientConfig.Service.Path, Rules: w.Rules,
		FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy, ObjectSelector: w.ObjectSelector,
		SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
	}
}

// webhookPort returns the port at which the manager serves its webhooks.
func (in *input) webhookPort() (int32, error) {
	for _, port := range in.deployment.Spec.Template.Spec.Containers[0].Ports {
		if port.Name == "webhook-server" {
			return port.ContainerPort, nil
		}
	}
	return 0, fmt.Errorf("container %s has no port webhook-server", in.deployment.Spec.Template.Spec.Containers[0].Name)
}
