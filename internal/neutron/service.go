package neutron

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Object is a service on a host that follows an OVN configuration.
type Object interface {
	hosted.Object
	OVN() *neutronv1.OVNService
}

// Service completes a service with how nodes are given it and what it reads. Objects
// are woken by changes of the object of the other kind on their host.
func Service(s hosted.Service, other client.Object, changes predicate.Predicate) hosted.Service {
	s.Annotation = neutronv1.OVNAnnotation
	s.Choose = func(obj hosted.Object, secret string) {
		obj.(Object).OVN().Spec.OVNConfigSecretName = secret
	}
	s.Reads = func(obj hosted.Object) []string {
		return []string{"Secret/" + obj.(Object).OVN().Spec.OVNConfigSecretName, "Secret/" + tlsSecret(obj)}
	}
	s.Watch = func(_ context.Context, _ ctrl.Manager, b *builder.Builder) error {
		// The Secret may have changed before the status named it.
		b.Watches(s.Object, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.SpecOr(tlsSecret))).
			Watches(other, &handler.EnqueueRequestForObject{}, builder.WithPredicates(changes))
		return nil
	}
	return s
}

// Images returns what decides about the image of a service.
func Images(o Object, program, byDefault string) map[string]images.Component {
	return map[string]images.Component{neutronv1.ServiceComponent: {Spec: o.OVN().Spec.ContainerImage, Default: byDefault, Program: program}}
}

func tlsSecret(obj client.Object) string { return obj.(Object).OVN().Status.TLSSecretName }

// Read reads the OVN configuration of an object. What is wrong with it is a *phase.Halt
// of OVNConfigReady.
func Read(ctx context.Context, s *hosted.Scope) (*Config, error) {
	name, status := s.Object.(Object).OVN().Spec.OVNConfigSecretName, &s.Object.(Object).OVN().Status
	configuration, err := read(ctx, s, name)
	if err != nil {
		return nil, err
	}
	c, err := parse(configuration)
	if err != nil {
		return nil, err
	}
	status.TLSSecretName = ""
	if c.tls {
		if status.TLSSecretName, err = configuration.value(neutronv1.TLSSecretKey, ""); err != nil {
			return nil, err
		}
		certificate, err := read(ctx, s, status.TLSSecretName)
		if err != nil {
			return nil, err
		}
		if err := c.certify(certificate); err != nil {
			return nil, err
		}
	}
	status.Conditions.MarkTrue(neutronv1.OVNConfigReadyCondition, "OVN configuration read from Secret %s", name)
	return c, nil
}

func read(ctx context.Context, s *hosted.Scope, name string) (secret, error) {
	data, err := s.Inputs.Secret(ctx, s.Object.GetNamespace(), name)
	return secret{name, data}, inputs.Halt(neutronv1.OVNConfigReadyCondition, err)
}
