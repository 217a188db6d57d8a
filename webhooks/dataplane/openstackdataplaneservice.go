package dataplane

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var serviceRules = hook.Rules[*dataplanev1.OpenStackDataPlaneService]{
	Kind:   dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneService").GroupKind(),
	Errors: serviceErrors,
}

// SetupOpenStackDataPlaneServiceWithManager serves the rules of
// OpenStackDataPlaneService.
func SetupOpenStackDataPlaneServiceWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &dataplanev1.OpenStackDataPlaneService{}).WithValidator(serviceRules).Complete()
}

func serviceErrors(service *dataplanev1.OpenStackDataPlaneService) field.ErrorList {
	spec, at := service.Spec, field.NewPath("spec")
	errs := validate.Playbook(at.Child("playbook"), spec.Playbook)
	errs = append(errs, validate.PlaybookText(at.Child("play"), spec.Play)...)
	errs = append(errs, validate.EnvText(at.Child("play"), spec.Play)...)
	errs = append(errs, validate.ObjectNames(at.Child("configMaps"), spec.ConfigMaps)...)
	return append(errs, validate.ObjectNames(at.Child("secrets"), spec.Secrets)...)
}
