// Package neutron admits the services of neutron on hosts.
package neutron

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/neutron"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

// service is a service on a host that follows an OVN configuration.
type service interface {
	comparable
	neutron.Object
}

// SetupOVNControllerWithManager serves the default and the rules of OVNController. That
// it has no customServiceConfig is a rule of its definition.
func SetupOVNControllerWithManager(mgr ctrl.Manager, defaults images.Defaults) error {
	return setup(mgr, &neutronv1.OVNController{}, "OVNController", defaults.OVNController)
}

// SetupOVNMetadataAgentWithManager serves the default and the rules of OVNMetadataAgent.
func SetupOVNMetadataAgentWithManager(mgr ctrl.Manager, defaults images.Defaults) error {
	return setup(mgr, &neutronv1.OVNMetadataAgent{}, "OVNMetadataAgent", defaults.OVNMetadataAgent)
}

func setup[T service](mgr ctrl.Manager, empty T, kind, image string) error {
	return ctrl.NewWebhookManagedBy(mgr, empty).
		WithDefaulter(imageDefault[T](image)).
		WithValidator(hook.Rules[T]{Kind: neutronv1.GroupVersion.WithKind(kind).GroupKind(), Errors: serviceErrors[T], Warnings: hook.HostedWarnings[T]}).
		Complete()
}

// imageDefault fills the image of a service that names none.
type imageDefault[T service] string

// Default sets the image that the spec leaves empty.
func (image imageDefault[T]) Default(_ context.Context, obj T) error {
	spec := &obj.OVN().Spec
	spec.ContainerImage = cmp.Or(spec.ContainerImage, string(image))
	return nil
}

func serviceErrors[T service](obj T) field.ErrorList {
	return append(hook.HostedErrors(obj, identity.MetadataAgent), validate.ObjectName(field.NewPath("spec", "ovnConfigSecretName"), obj.OVN().Spec.OVNConfigSecretName)...)
}
