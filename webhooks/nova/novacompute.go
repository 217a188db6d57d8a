package nova

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var podifiedComputeRules = hook.Rules[*novav1.NovaCompute]{
	Kind:   novav1.GroupVersion.WithKind("NovaCompute").GroupKind(),
	Errors: podifiedComputeErrors,
	Texts:  podifiedComputeTexts,
	Warnings: func(_ context.Context, old, compute *novav1.NovaCompute) []string {
		at := field.NewPath("spec")
		var warnings []string
		if old == nil || old.Spec.CustomServiceConfig != compute.Spec.CustomServiceConfig {
			warnings = validate.ServiceConfigWarnings(at.Child("customServiceConfig"), compute.Spec.CustomServiceConfig)
		}
		if n := services(compute); n > 1 && compute.Spec.ComputeDriver == novav1.IronicDriver && (old == nil || services(old) != n) {
			warnings = append(warnings, fmt.Sprintf("%s: %d services share the nodes of ironic, which nova deprecates: %s", at.Child("replicas"), n, oneForEachShard))
		}
		return warnings
	},
}

// SetupNovaComputeWithManager serves the rules of NovaCompute.
func SetupNovaComputeWithManager(mgr ctrl.Manager, options hook.Options) error {
	return ctrl.NewWebhookManagedBy(mgr, &novav1.NovaCompute{}).WithValidator(podifiedComputeRules.Known(options)).Complete()
}

const oneForEachShard = "use a NovaCompute with replicas: 1 for each shard of ironic, with shard in the section [ironic] of its spec.customServiceConfig"

// services is the number of nova-computes.
func services(compute *novav1.NovaCompute) int32 { return ptr.Deref(compute.Spec.Replicas, 1) }

// shardErrors refuses a shard that several services would have: each would manage all of its nodes.
// https://docs.openstack.org/nova/latest/configuration/config.html#ironic.shard
func shardErrors(at *field.Path, compute *novav1.NovaCompute) field.ErrorList {
	config, err := oslo.Parse(compute.Spec.CustomServiceConfig)
	if err != nil || services(compute) <= 1 {
		return nil
	}
	if shards := config.Get("ironic", "shard"); len(shards) == 0 || shards[len(shards)-1] == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(at, services(compute), "several services cannot share a shard of ironic: "+oneForEachShard)}
}

func podifiedComputeErrors(compute *novav1.NovaCompute) field.ErrorList {
	spec, at := compute.Spec, field.NewPath("spec")
	errs := validate.PartOfSetName(field.NewPath("metadata", "name"), compute.Name, compute.Name)
	errs = append(errs, validate.ObjectName(at.Child("cellName"), spec.CellName)...)
	errs = append(errs, validate.NodeSelector(at.Child("nodeSelector"), spec.NodeSelector)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), spec.TopologyRef, compute.Namespace)...)
	errs = append(errs, shardErrors(at.Child("replicas"), compute)...)
	errs = append(errs, validate.ServiceConfig(at.Child("customServiceConfig"), identity.PodCompute, spec.CustomServiceConfig)...)
	errs = append(errs, validate.ObjectNames(at.Child("customServiceConfigSecrets"), spec.CustomServiceConfigSecrets)...)
	errs = append(errs, furtherfiles.Errors(at, furtherfiles.Compute, spec.FurtherFiles)...)
	return append(errs, validate.ObjectNames(at.Child("networkAttachments"), spec.NetworkAttachments)...)
}
