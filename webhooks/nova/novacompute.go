package nova

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var podifiedComputeRules = hook.Rules[*novav1.NovaCompute]{
	Kind:   novav1.GroupVersion.WithKind("NovaCompute").GroupKind(),
	Errors: podifiedComputeErrors,
	Warnings: func(_ context.Context, old, compute *novav1.NovaCompute) []string {
		if old != nil && old.Spec.CustomServiceConfig == compute.Spec.CustomServiceConfig {
			return nil
		}
		return validate.ServiceConfigWarnings(field.NewPath("spec", "customServiceConfig"), compute.Spec.CustomServiceConfig)
	},
}

// SetupNovaComputeWithManager serves the rules of NovaCompute.
func SetupNovaComputeWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &novav1.NovaCompute{}).WithValidator(podifiedComputeRules).Complete()
}

func podifiedComputeErrors(compute *novav1.NovaCompute) field.ErrorList {
	spec, at := compute.Spec, field.NewPath("spec")
	errs := validate.PartOfSetName(field.NewPath("metadata", "name"), compute.Name, compute.Name)
	errs = append(errs, validate.ObjectName(at.Child("cellName"), spec.CellName)...)
	errs = append(errs, validate.NodeSelector(at.Child("nodeSelector"), spec.NodeSelector)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), spec.TopologyRef, compute.Namespace)...)
	errs = append(errs, validate.ServiceConfig(at.Child("customServiceConfig"), identity.PodCompute, spec.CustomServiceConfig)...)
	errs = append(errs, validate.ObjectNames(at.Child("customServiceConfigSecrets"), spec.CustomServiceConfigSecrets)...)
	return append(errs, validate.ObjectNames(at.Child("networkAttachments"), spec.NetworkAttachments)...)
}
