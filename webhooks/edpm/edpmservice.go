// Package edpm admits classes of services on hosts, and their services.
package edpm

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpmservice"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var classRules = hook.Rules[*edpmv1.EDPMServiceClass]{
	Kind:     edpmv1.GroupVersion.WithKind("EDPMServiceClass").GroupKind(),
	Errors:   edpmservice.ClassErrors,
	Warnings: classWarnings,
}

var serviceRules = hook.Rules[*edpmv1.EDPMService]{
	Kind:     edpmv1.GroupVersion.WithKind("EDPMService").GroupKind(),
	Errors:   serviceErrors,
	Warnings: hook.HostedWarnings[*edpmv1.EDPMService],
}

// SetupEDPMServiceClassWithManager serves the rules of EDPMServiceClass.
func SetupEDPMServiceClassWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &edpmv1.EDPMServiceClass{}).WithValidator(classRules).Complete()
}

// SetupEDPMServiceWithManager serves the rules of EDPMService.
func SetupEDPMServiceWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &edpmv1.EDPMService{}).WithValidator(serviceRules).Complete()
}

// serviceErrors are the rules of all services on hosts, and that of the name.
func serviceErrors(service *edpmv1.EDPMService) field.ErrorList {
	return append(hook.HostedErrors(service, identity.Partner), edpmservice.NameErrors(service)...)
}

// classWarnings speaks of the options of the snippet that the deployment sets.
func classWarnings(_ context.Context, old, class *edpmv1.EDPMServiceClass) []string {
	if old != nil && old.Spec.CustomServiceConfig == class.Spec.CustomServiceConfig {
		return nil
	}
	return validate.ServiceConfigWarnings(field.NewPath("spec", "customServiceConfig"), class.Spec.CustomServiceConfig)
}
