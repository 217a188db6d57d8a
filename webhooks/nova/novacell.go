package nova

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

// maxCellName is the longest short name of a cell (nova-operator
// api/v1beta1/novacell_webhook.go).
const maxCellName = 35

var cellRules = hook.Rules[*novav1.NovaCell]{
	Kind:   novav1.GroupVersion.WithKind("NovaCell").GroupKind(),
	Errors: cellErrors,
	Texts:  cellTexts,
	Warnings: func(_ context.Context, old, cell *novav1.NovaCell) []string {
		if old != nil && equality.Semantic.DeepEqual(old.Spec.ComputeTemplates, cell.Spec.ComputeTemplates) {
			return nil
		}
		var warnings []string
		for i, t := range cell.Spec.ComputeTemplates {
			warnings = append(warnings, validate.ServiceConfigWarnings(field.NewPath("spec", "computeTemplates").Index(i).Child("customServiceConfig"), t.CustomServiceConfig)...)
		}
		return warnings
	},
}

// SetupNovaCellWithManager serves the rules of NovaCell.
func SetupNovaCellWithManager(mgr ctrl.Manager, options hook.Options) error {
	return ctrl.NewWebhookManagedBy(mgr, &novav1.NovaCell{}).WithValidator(cellRules.Known(options)).Complete()
}

func cellErrors(cell *novav1.NovaCell) field.ErrorList {
	spec, at := cell.Spec, field.NewPath("spec")
	errs := shortName(at.Child("cellName"), spec.CellName)
	errs = append(errs, validate.ObjectName(at.Child("secret"), spec.Secret)...)
	errs = append(errs, validate.ObjectName(at.Child("cellMessageBusSecretName"), spec.CellMessageBusSecretName)...)
	errs = append(errs, validate.HTTPURL(at.Child("keystoneAuthURL"), spec.KeystoneAuthURL)...)
	errs = append(errs, validate.HTTPURL(at.Child("noVNCProxyBaseURL"), spec.NoVNCProxyBaseURL)...)
	errs = append(errs, validate.Address(at.Child("cellDatabaseHostname"), spec.CellDatabaseHostname)...)
	errs = append(errs, validate.Address(at.Child("apiDatabaseHostname"), spec.APIDatabaseHostname)...)
	errs = append(errs, validate.NodeSelector(at.Child("nodeSelector"), spec.NodeSelector)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), spec.TopologyRef, cell.Namespace)...)
	errs = append(errs, computeTemplates(at.Child("computeTemplates"), spec.ComputeTemplates)...)
	if spec.CellDatabaseHostname != "" {
		errs = append(errs, validate.PartOfSetName(field.NewPath("metadata", "name"), cell.Name, longestSet(cell))...)
	}
	return append(errs, cellServices{spec.ConductorServiceTemplate, spec.MetadataServiceTemplate, spec.NoVNCProxyServiceTemplate}.
		errors(at, cell.Namespace, cell.ShortName())...)
}

// computeTemplates checks the layers of computes, which a NovaCell and a NovaCellTemplate
// have alike.
func computeTemplates(at *field.Path, templates []novav1.NovaComputeTemplate) field.ErrorList {
	var errs field.ErrorList
	for i, t := range templates {
		errs = append(errs, validate.ObjectNames(at.Index(i).Child("roles"), t.Roles)...)
		errs = append(errs, validate.ServiceConfig(at.Index(i).Child("customServiceConfig"), identity.HostCompute, t.CustomServiceConfig)...)
		errs = append(errs, validate.ObjectNames(at.Index(i).Child("customServiceConfigSecrets"), t.CustomServiceConfigSecrets)...)
		errs = append(errs, furtherfiles.Errors(at.Index(i), furtherfiles.Compute, t.FurtherFiles)...)
	}
	return errs
}

// longestSet is the longest name of a StatefulSet of the cell.
func longestSet(cell *novav1.NovaCell) string {
	if ptr.Deref(cell.Spec.NoVNCProxyServiceTemplate.Replicas, 0) > 0 {
		return novav1.NoVNCProxyName(cell.Name)
	}
	return novav1.ConductorName(cell.Name)
}

// shortName checks the short name of a cell. It becomes part of the names of
// the NovaCell and of what belongs to it.
func shortName(at *field.Path, name string) field.ErrorList {
	if len(name) > maxCellName {
		return field.ErrorList{field.Invalid(at, name, "should be shorter than 36 characters: choose a short name, for example cell1")}
	}
	return validate.Label(at, name)
}

// cellServices are the templates of the podified services of a cell, which a
// NovaCell and a NovaCellTemplate have alike.
type cellServices struct {
	conductor            novav1.NovaConductorTemplate
	metadata, noVNCProxy novav1.NovaEndpointTemplate
}

func (s cellServices) errors(at *field.Path, namespace, cell string) field.ErrorList {
	conductor := at.Child("conductorServiceTemplate")
	errs := serviceTemplate(conductor, s.conductor.NovaServiceTemplate)
	errs = append(errs, topology.ValidateRef(conductor.Child("topologyRef"), s.conductor.TopologyRef, namespace)...)
	errs = append(errs, endpointTemplate(at.Child("metadataServiceTemplate"), furtherfiles.Metadata, s.metadata)...)
	errs = append(errs, endpointTemplate(at.Child("noVNCProxyServiceTemplate"), furtherfiles.NoVNCProxy, s.noVNCProxy)...)
	if replicas := s.metadata.Replicas; cell == novav1.Cell0Name && replicas != nil && *replicas != 0 {
		errs = append(errs, field.Invalid(at.Child("metadataServiceTemplate", "replicas"), *replicas,
			"should be 0 for cell0: it has no computes that could request metadata"))
	}
	return errs
}

func endpointTemplate(at *field.Path, service furtherfiles.Service, t novav1.NovaEndpointTemplate) field.ErrorList {
	errs := append(serviceTemplate(at, t.NovaServiceTemplate), furtherfiles.Errors(at, service, t.FurtherFiles)...)
	if t.TLS != nil {
		errs = append(errs, validate.ObjectName(at.Child("tls", "secretName"), t.TLS.SecretName)...)
	}
	return errs
}

func serviceTemplate(at *field.Path, t novav1.NovaServiceTemplate) field.ErrorList {
	errs := validate.ServiceConfig(at.Child("customServiceConfig"), identity.PodNova, t.CustomServiceConfig)
	errs = append(errs, validate.ObjectNames(at.Child("customServiceConfigSecrets"), t.CustomServiceConfigSecrets)...)
	errs = append(errs, validate.NodeSelector(at.Child("nodeSelector"), t.NodeSelector)...)
	return append(errs, validate.ObjectNames(at.Child("networkAttachments"), t.NetworkAttachments)...)
}
