package hook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// hosted is a service on a host.
type hosted interface {
	client.Object
	comparable
	Hosted() (*hostedv1.ServiceSpec, *hostedv1.ServiceStatus)
}

// HostedErrors returns what is wrong in the fields that all services on hosts have.
func HostedErrors[T hosted](obj T, service identity.Service) field.ErrorList {
	spec, _ := obj.Hosted()
	at := field.NewPath("spec")
	errs := validate.ServiceConfig(at.Child("customServiceConfig"), service, spec.CustomServiceConfig)
	errs = append(errs, validate.ObjectName(at.Child("inventoryConfigMapName"), spec.InventoryConfigMapName)...)
	errs = append(errs, validate.ObjectName(at.Child("sshKeySecretName"), spec.SSHKeySecretName)...)
	errs = append(errs, validate.JumpHost(at.Child("jumpHost"), spec.JumpHost)...)
	return append(errs, validate.ObjectNames(at.Child("networkAttachments"), spec.NetworkAttachments)...)
}

// HostedWarnings speaks of the snippet only when it changes: the controller that
// applies the other fields has no use for it.
func HostedWarnings[T hosted](_ context.Context, old, obj T) []string {
	var none T
	spec, _ := obj.Hosted()
	if old != none {
		if before, _ := old.Hosted(); before.CustomServiceConfig == spec.CustomServiceConfig {
			return nil
		}
	}
	return validate.ServiceConfigWarnings(field.NewPath("spec", "customServiceConfig"), spec.CustomServiceConfig)
}
