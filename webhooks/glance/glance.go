package glance

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/glance"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var glanceRules = hook.Rules[*glancev1.Glance]{
	Kind: glancev1.GroupVersion.WithKind("Glance").GroupKind(),
	Errors: func(g *glancev1.Glance) field.ErrorList {
		return SpecErrors(field.NewPath("spec"), g.Namespace, g.Name, g.Spec)
	},
	Warnings: func(_ context.Context, old, g *glancev1.Glance) []string {
		if old == nil {
			return SpecWarnings(field.NewPath("spec"), nil, g.Spec)
		}
		return SpecWarnings(field.NewPath("spec"), &old.Spec, g.Spec)
	},
}

// SetupGlanceWithManager serves the defaults and rules of Glance.
func SetupGlanceWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &glancev1.Glance{}).WithDefaulter(layouts{}).WithValidator(glanceRules).Complete()
}

// layouts decides the layout of each API when it is created, so that another
// backend later does not change it.
type layouts struct{}

// Default sets the layouts that the spec leaves out.
func (layouts) Default(_ context.Context, g *glancev1.Glance) error {
	glance.DecideLayouts(&g.Spec)
	return nil
}

// SpecErrors returns what is wrong with the spec of a Glance of that name,
// wherever it is written.
func SpecErrors(at *field.Path, namespace, name string, spec glancev1.GlanceSpec) field.ErrorList {
	errs := backing(at, spec.Backing)
	errs = append(errs, service(at, namespace, serviceFields{
		nodeSelector: spec.NodeSelector, topologyRef: spec.TopologyRef, config: spec.CustomServiceConfig, secrets: spec.CustomServiceConfigSecrets,
	})...)
	errs = append(errs, request(at.Child("storage"), spec.Storage)...)
	for _, api := range slices.Sorted(maps.Keys(spec.GlanceAPIs)) {
		errs = append(errs, entry(at.Child("glanceAPIs").Key(api), namespace, name, api, spec)...)
	}
	return append(errs, keystoneEndpoint(at.Child("keystoneEndpoint"), spec)...)
}

// entry checks one API, with what it inherits.
func entry(at *field.Path, namespace, glanceName, name string, spec glancev1.GlanceSpec) field.ErrorList {
	api := glance.Effective(spec, name)
	var errs field.ErrorList
	for _, t := range api.Type.Types()[:1] { // external and internal are equally long
		errs = append(errs, validate.PartOfSetName(at, name, glance.SetName(glance.APIName(glanceName, name, t), t))...)
	}
	errs = append(errs, apiService(at, namespace, spec.GlanceAPIs[name].APIService)...)
	errs = append(errs, claims(at.Child("storage"), api.Storage)...)
	if api.Type == glancev1.LayoutSplit && !zero(api.Replicas) && glance.FileBackend(api.APIService) {
		errs = append(errs, field.Invalid(at.Child("type"), api.Type,
			"The GlanceAPI layout type: split cannot be used in combination with File and NFS backend: the pods of the two groups cannot access each other's files; "+
				"set single, or enable another backend in customServiceConfig, for example enabled_backends = default_backend:swift"))
	}
	return append(errs, endpoints(at.Child("override", "service"), api.Type, api.Override)...)
}

func zero(replicas *int32) bool { return replicas != nil && *replicas == 0 }

// endpoints checks the names of the Services that are changed.
func endpoints(at *field.Path, layout glancev1.Layout, o glancev1.Override) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(o.Service)) {
		switch {
		case name != glancev1.EndpointPublic && name != glancev1.EndpointInternal:
			errs = append(errs, field.Invalid(at.Key(name), name, "invalid endpoint type: "+name+": set public or internal"))
		case name == glancev1.EndpointPublic && layout == glancev1.LayoutEdge:
			errs = append(errs, field.Invalid(at.Key(name), name, "an API of type edge has no public endpoint: set internal, or remove the entry"))
		}
		errs = append(errs, validate.HTTPURL(at.Key(name).Child("endpointURL"), o.Service[name].EndpointURL)...)
	}
	return errs
}

// keystoneEndpoint checks that the catalog names an API that users reach.
func keystoneEndpoint(at *field.Path, spec glancev1.GlanceSpec) field.ErrorList {
	name := spec.KeystoneEndpoint
	if name == "" {
		return nil
	}
	if _, ok := spec.GlanceAPIs[name]; !ok || glance.Effective(spec, name).Type == glancev1.LayoutEdge {
		return field.ErrorList{field.Invalid(at, name,
			"KeystoneEndpoint is assigned to an invalid GlanceAPI instance: set it to an entry of glanceAPIs whose type is not edge")}
	}
	return nil
}

// SpecWarnings returns what is allowed but likely not meant, of what has changed
// since old, which is nil for a new spec.
func SpecWarnings(at *field.Path, old *glancev1.GlanceSpec, spec glancev1.GlanceSpec) []string {
	before := glancev1.GlanceSpec{}
	if old != nil {
		before = *old
	}
	var warnings []string
	if before.CustomServiceConfig != spec.CustomServiceConfig {
		warnings = validate.ServiceConfigWarnings(at.Child("customServiceConfig"), spec.CustomServiceConfig)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.GlanceAPIs)) {
		if text := spec.GlanceAPIs[name].CustomServiceConfig; before.GlanceAPIs[name].CustomServiceConfig != text {
			warnings = append(warnings, validate.ServiceConfigWarnings(at.Child("glanceAPIs").Key(name).Child("customServiceConfig"), text)...)
		}
	}
	if old == nil && spec.KeystoneAuthURL == "" {
		warnings = append(warnings, fmt.Sprintf("%s is empty: the API rejects all requests that need a token; set it, or [keystone_authtoken] in customServiceConfig", at.Child("keystoneAuthURL")))
	}
	return warnings
}
