// Package edpm admits classes of services on hosts, and their services.
package edpm

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	edpmservicev1 "github.com/edpm-operators/edpm-operators/apis/edpmservice/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpmservice"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var classRules = hook.Rules[*edpmservicev1.EDPMServiceClass]{
	Kind:     edpmservicev1.GroupVersion.WithKind("EDPMServiceClass").GroupKind(),
	Errors:   edpmservice.ClassErrors,
	Warnings: classWarnings,
}

var serviceRules = hook.Rules[*edpmservicev1.EDPMService]{
	Kind:     edpmservicev1.GroupVersion.WithKind("EDPMService").GroupKind(),
	Errors:   serviceErrors,
	Warnings: hook.HostedWarnings[*edpmservicev1.EDPMService],
}

// SetupEDPMServiceClassWithManager serves the rules of EDPMServiceClass.
func SetupEDPMServiceClassWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &edpmservicev1.EDPMServiceClass{}).WithValidator(classRules).Complete()
}

// SetupEDPMServiceWithManager serves the rules of EDPMService.
func SetupEDPMServiceWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &edpmservicev1.EDPMService{}).WithValidator(serviceRules).Complete()
}

// serviceErrors are the rules of all services on hosts, and that of the name.
func serviceErrors(service *edpmservicev1.EDPMService) field.ErrorList {
	return append(hook.HostedErrors(service), edpmservice.NameErrors(service)...)
}

// classWarnings speaks of the options of the snippet that the deployment sets.
func classWarnings(_ context.Context, old, class *edpmservicev1.EDPMServiceClass) []string {
	if old != nil && old.Spec.CustomServiceConfig == class.Spec.CustomServiceConfig {
		return nil
	}
	return validate.ServiceConfigWarnings(field.NewPath("spec", "customServiceConfig"), class.Spec.CustomServiceConfig)
}
