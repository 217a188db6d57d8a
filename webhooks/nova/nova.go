package nova

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var novaRules = hook.Rules[*novav1.Nova]{
	Kind:   novav1.GroupVersion.WithKind("Nova").GroupKind(),
	Errors: novaErrors,
}

// SetupNovaWithManager serves the rules of Nova.
func SetupNovaWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &novav1.Nova{}).WithValidator(novaRules).Complete()
}

func novaErrors(nova *novav1.Nova) field.ErrorList {
	spec, at := nova.Spec, field.NewPath("spec")
	errs := validate.ObjectName(at.Child("secret"), spec.Secret)
	errs = append(errs, validate.HTTPURL(at.Child("keystoneAuthURL"), spec.KeystoneAuthURL)...)
	for _, name := range slices.Sorted(maps.Keys(spec.CellTemplates)) {
		errs = append(errs, cellTemplate(at.Child("cellTemplates").Key(name), name, spec.CellTemplates[name])...)
	}
	return errs
}

func cellTemplate(at *field.Path, name string, t novav1.NovaCellTemplate) field.ErrorList {
	errs := shortName(at, name)
	errs = append(errs, validate.ObjectName(at.Child("cellMessageBusSecretName"), t.CellMessageBusSecretName)...)
	errs = append(errs, validate.HTTPURL(at.Child("noVNCProxyBaseURL"), t.NoVNCProxyBaseURL)...)
	return append(errs, cellServices{t.ConductorServiceTemplate, t.MetadataServiceTemplate, t.NoVNCProxyServiceTemplate}.errors(at, name)...)
}
