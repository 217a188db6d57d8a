package nova

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var novaRules = hook.Rules[*novav1.Nova]{
	Kind:   novav1.GroupVersion.WithKind("Nova").GroupKind(),
	Errors: novaErrors,
	Texts:  novaTexts,
}

// SetupNovaWithManager serves the rules of Nova.
func SetupNovaWithManager(mgr ctrl.Manager, options hook.Options) error {
	return ctrl.NewWebhookManagedBy(mgr, &novav1.Nova{}).WithValidator(novaRules.Known(options)).Complete()
}

func novaErrors(nova *novav1.Nova) field.ErrorList {
	return SpecErrors(field.NewPath("spec"), nova.Namespace, nova.Spec)
}

// SpecErrors returns what is wrong with the spec of a Nova of the namespace,
// wherever it is written.
func SpecErrors(at *field.Path, namespace string, spec novav1.NovaSpec) field.ErrorList {
	errs := validate.ObjectName(at.Child("secret"), spec.Secret)
	errs = append(errs, validate.HTTPURL(at.Child("keystoneAuthURL"), spec.KeystoneAuthURL)...)
	errs = append(errs, validate.Address(at.Child("apiDatabaseInstance"), spec.APIDatabaseInstance)...)
	errs = append(errs, validate.NodeSelector(at.Child("nodeSelector"), spec.NodeSelector)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), spec.TopologyRef, namespace)...)
	errs = append(errs, endpointTemplate(at.Child("apiServiceTemplate"), furtherfiles.API, spec.APIServiceTemplate)...)
	errs = append(errs, serviceTemplate(at.Child("schedulerServiceTemplate"), spec.SchedulerServiceTemplate)...)
	for _, name := range slices.Sorted(maps.Keys(spec.CellTemplates)) {
		errs = append(errs, cellTemplate(at.Child("cellTemplates").Key(name), namespace, name, spec.CellTemplates[name])...)
	}
	return errs
}

func cellTemplate(at *field.Path, namespace, name string, t novav1.NovaCellTemplate) field.ErrorList {
	errs := shortName(at, name)
	errs = append(errs, validate.Address(at.Child("cellDatabaseInstance"), t.CellDatabaseInstance)...)
	errs = append(errs, validate.ObjectName(at.Child("cellMessageBusSecretName"), t.CellMessageBusSecretName)...)
	errs = append(errs, validate.HTTPURL(at.Child("noVNCProxyBaseURL"), t.NoVNCProxyBaseURL)...)
	errs = append(errs, validate.NodeSelector(at.Child("nodeSelector"), t.NodeSelector)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), t.TopologyRef, namespace)...)
	errs = append(errs, computeTemplates(at.Child("computeTemplates"), t.ComputeTemplates)...)
	return append(errs, cellServices{t.ConductorServiceTemplate, t.MetadataServiceTemplate, t.NoVNCProxyServiceTemplate}.errors(at, namespace, name)...)
}
