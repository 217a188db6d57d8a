package glance

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/glance"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var apiRules = hook.Rules[*glancev1.GlanceAPI]{
	Kind:   glancev1.GroupVersion.WithKind("GlanceAPI").GroupKind(),
	Errors: apiErrors,
	Warnings: func(_ context.Context, old, api *glancev1.GlanceAPI) []string {
		if old != nil && old.Spec.CustomServiceConfig == api.Spec.CustomServiceConfig {
			return nil
		}
		return validate.ServiceConfigWarnings(field.NewPath("spec", "customServiceConfig"), api.Spec.CustomServiceConfig)
	},
}

// SetupGlanceAPIWithManager serves the rules of GlanceAPI.
func SetupGlanceAPIWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &glancev1.GlanceAPI{}).WithValidator(apiRules).Complete()
}

func apiErrors(api *glancev1.GlanceAPI) field.ErrorList {
	spec, at := api.Spec, field.NewPath("spec")
	errs := validate.PartOfSetName(field.NewPath("metadata", "name"), api.Name, glance.SetName(api.Name, spec.APIType))
	errs = append(errs, validate.Label(at.Child("apiName"), spec.APIName)...)
	errs = append(errs, backing(at, spec.Backing)...)
	errs = append(errs, apiService(at, api.Namespace, spec.APIService)...)
	errs = append(errs, claims(at.Child("storage"), spec.Storage)...)
	layout := glancev1.LayoutSplit // which has both endpoints
	if spec.APIType == glancev1.APIEdge {
		layout = glancev1.LayoutEdge
	}
	return append(errs, endpoints(at.Child("override", "service"), layout, spec.Override)...)
}

// backing checks what all APIs work with.
func backing(at *field.Path, b glancev1.Backing) field.ErrorList {
	errs := validate.ObjectName(at.Child("secret"), b.Secret)
	errs = append(errs, validate.HTTPURL(at.Child("keystoneAuthURL"), b.KeystoneAuthURL)...)
	errs = append(errs, validate.Address(at.Child("databaseHostname"), b.DatabaseHostname)...)
	if b.Secret == "" && (b.DatabaseHostname != "" || b.KeystoneAuthURL != "") {
		errs = append(errs, field.Required(at.Child("secret"), "databaseHostname and keystoneAuthURL need passwords: set this field to the Secret that contains them"))
	}
	return errs
}

// serviceFields are the fields that a Glance and its APIs have alike.
type serviceFields struct {
	nodeSelector *map[string]string
	topologyRef  *topologyv1.TopologyRef
	config       string
	secrets      []string
}

func service(at *field.Path, namespace string, f serviceFields) field.ErrorList {
	errs := validate.NodeSelector(at.Child("nodeSelector"), f.nodeSelector)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), f.topologyRef, namespace)...)
	errs = append(errs, validate.ServiceConfig(at.Child("customServiceConfig"), identity.Image, f.config)...)
	return append(errs, validate.ObjectNames(at.Child("customServiceConfigSecrets"), f.secrets)...)
}

func apiService(at *field.Path, namespace string, s glancev1.APIService) field.ErrorList {
	errs := service(at, namespace, serviceFields{s.NodeSelector, s.TopologyRef, s.CustomServiceConfig, s.CustomServiceConfigSecrets})
	errs = append(errs, request(at.Child("storage"), s.Storage)...)
	return append(errs, validate.ObjectNames(at.Child("networkAttachments"), s.NetworkAttachments)...)
}

func request(at *field.Path, s glancev1.Storage) field.ErrorList {
	errs := validate.ObjectName(at.Child("storageClass"), s.StorageClass)
	if r := s.StorageRequest; r != nil && r.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("storageRequest"), r.String(), "is not a valid size: set a quantity larger than 0, for example 10G"))
	}
	return errs
}

// claims checks that claims have a size. The storage is the effective one.
func claims(at *field.Path, s glancev1.Storage) field.ErrorList {
	if glance.External(s) || s.StorageRequest != nil {
		return nil
	}
	return field.ErrorList{field.Required(at.Child("storageRequest"), "external is false, so each pod has a claim: set its size, for example 10G, or set external to true")}
}
