// Package core admits control planes. A control plane is checked as its services
// would be, so that a person learns at once what is wrong, and where.
package core

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/controlplane"
	inherit "github.com/edpm-operators/edpm-operators/internal/glance"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/glance"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
	"github.com/edpm-operators/edpm-operators/webhooks/nova"
)

var kind = openstackv1.GroupVersion.WithKind("OpenStackControlPlane").GroupKind()

// What images know of options is in ConfigMaps.
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch

// SetupOpenStackControlPlaneWithManager serves the defaults and rules of
// OpenStackControlPlane. The reader must read from the API server.
func SetupOpenStackControlPlaneWithManager(mgr ctrl.Manager, reader client.Reader, options hook.Options) error {
	own := hook.Rules[*openstackv1.OpenStackControlPlane]{Kind: kind, Errors: planeErrors, Warnings: planeWarnings, Options: options}
	return ctrl.NewWebhookManagedBy(mgr, &openstackv1.OpenStackControlPlane{}).
		WithDefaulter(layouts{}).WithValidator(validator{own, reader}).Complete()
}

// layouts decides the layout of each glance API when it is created.
type layouts struct{}

// Default sets the layouts that the template of the Glance leaves out.
func (layouts) Default(_ context.Context, plane *openstackv1.OpenStackControlPlane) error {
	if plane.Spec.Glance != nil {
		inherit.DecideLayouts(&plane.Spec.Glance.Template)
	}
	return nil
}

// validator adds to the rules of the object itself that it is the only one: its
// services have fixed names.
type validator struct {
	hook.Rules[*openstackv1.OpenStackControlPlane]
	reader client.Reader
}

// ValidateCreate refuses a second control plane in a namespace.
func (v validator) ValidateCreate(ctx context.Context, plane *openstackv1.OpenStackControlPlane) (admission.Warnings, error) {
	others := &openstackv1.OpenStackControlPlaneList{}
	if err := v.reader.List(ctx, others, client.InNamespace(plane.Namespace), client.Limit(1)); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if len(others.Items) > 0 {
		return nil, hook.Invalid(kind, plane.Name, field.ErrorList{field.Forbidden(field.NewPath("metadata", "namespace"), fmt.Sprintf(
			"%s has OpenStackControlPlane %s already, and only one is allowed: change that one, or use another namespace", plane.Namespace, others.Items[0].Name))})
	}
	return v.withImages(ctx, plane).ValidateCreate(ctx, plane)
}

// ValidateUpdate refuses errors that the stored control plane does not have already.
func (v validator) ValidateUpdate(ctx context.Context, old, plane *openstackv1.OpenStackControlPlane) (admission.Warnings, error) {
	return v.withImages(ctx, plane).ValidateUpdate(ctx, old, plane)
}

// withImages returns the rules with the texts for nova, which are judged by the images that its Nova
// has recorded. If that cannot be read, what is wrong shows in a condition of the Nova.
func (v validator) withImages(ctx context.Context, plane *openstackv1.OpenStackControlPlane) hook.Rules[*openstackv1.OpenStackControlPlane] {
	var images map[string]string
	if plane.Spec.Nova != nil && v.Options != nil {
		list := &novav1.NovaList{}
		_ = v.reader.List(ctx, list, client.InNamespace(plane.Namespace))
		for _, n := range list.Items {
			if n.Name == openstackv1.NovaName {
				images = n.Status.Images
			}
		}
	}
	rules := v.Rules
	rules.Texts = func(plane *openstackv1.OpenStackControlPlane) []hook.Text {
		if plane.Spec.Nova == nil {
			return nil
		}
		return nova.SpecTexts(field.NewPath("spec", "nova", "template"), plane.Spec.Nova.Template, images)
	}
	return rules
}

func planeErrors(plane *openstackv1.OpenStackControlPlane) field.ErrorList {
	spec, at := plane.Spec, field.NewPath("spec")
	errs := validate.ObjectName(at.Child("secret"), spec.Secret)
	errs = append(errs, validate.ObjectName(at.Child("storageClass"), spec.StorageClass)...)
	errs = append(errs, validate.NodeSelector(at.Child("nodeSelector"), spec.NodeSelector)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), spec.TopologyRef, plane.Namespace)...)
	if spec.Glance != nil {
		inherited := spec.Glance.Template
		inherited.Secret = controlplane.Glance(spec).Secret // what is wrong with the rest is said where it is written
		errs = append(errs, glance.SpecErrors(at.Child("glance", "template"), plane.Namespace, openstackv1.GlanceName, inherited)...)
	}
	if spec.Nova != nil {
		template := at.Child("nova", "template")
		errs = append(errs, nova.SpecErrors(template, plane.Namespace, spec.Nova.Template)...)
		if ptr.Deref(spec.Nova.Enabled, true) && controlplane.Nova(spec).Secret == "" {
			errs = append(errs, field.Required(template.Child("secret"), "nova needs passwords: set this field to the Secret that contains them, or set spec.secret for all services"))
		}
	}
	return errs
}

func planeWarnings(_ context.Context, old, plane *openstackv1.OpenStackControlPlane) []string {
	if plane.Spec.Glance == nil {
		return nil
	}
	var before *glancev1.GlanceSpec
	if old != nil && old.Spec.Glance != nil {
		before = &old.Spec.Glance.Template
	}
	return glance.SpecWarnings(field.NewPath("spec", "glance", "template"), before, plane.Spec.Glance.Template)
}
