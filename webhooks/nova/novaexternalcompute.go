package nova

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var computeKind = novav1.GroupVersion.WithKind("NovaExternalCompute").GroupKind()

// SetupNovaExternalComputeWithManager serves the defaults and rules of
// NovaExternalCompute. The reader must read from the API server.
func SetupNovaExternalComputeWithManager(mgr ctrl.Manager, reader client.Reader, defaults images.Defaults, options hook.Options) error {
	return ctrl.NewWebhookManagedBy(mgr, &novav1.NovaExternalCompute{}).
		WithDefaulter(computeImages{defaults, cellReader{Reader: reader}}).
		WithValidator(newComputeValidator(reader, options)).
		Complete()
}

// computeImages fills the images (seeds/004: they "can be changed later
// independently from their defaults").
type computeImages struct {
	defaults images.Defaults
	cells    cellReader
}

// Default sets the images that the spec leaves empty: that of nova-compute is of the release
// of its cell, if that is known.
func (d computeImages) Default(ctx context.Context, compute *novav1.NovaExternalCompute) error {
	spec := &compute.Spec
	if spec.NovaComputeContainerImage == "" {
		image, err := d.imageOf(ctx, compute.Namespace, spec.CellName)
		if err != nil {
			return err
		}
		spec.NovaComputeContainerImage = cmp.Or(image, d.defaults.NovaCompute)
	}
	spec.NovaLibvirtContainerImage = cmp.Or(spec.NovaLibvirtContainerImage, d.defaults.NovaLibvirt)
	spec.AnsibleEEContainerImage = cmp.Or(spec.AnsibleEEContainerImage, d.defaults.NovaAnsibleEE)
	return nil
}

// imageOf returns the image of new computes of a cell, "" if it is not known. A name that is
// not valid is for the rules to refuse.
func (d computeImages) imageOf(ctx context.Context, namespace, cell string) (string, error) {
	if len(validate.ObjectName(field.NewPath("spec", "cellName"), cell)) > 0 {
		return "", nil
	}
	found := &novav1.NovaCell{}
	_, err := d.cells.find(ctx, namespace, cell, found)
	return found.Status.Images[novav1.ComputeComponent], err
}

// computeValidator adds to the rules of the object itself that it is not
// created in a cell other than its node's.
type computeValidator struct {
	hook.Rules[*novav1.NovaExternalCompute]
	cells cellReader
}

func newComputeValidator(reader client.Reader, options hook.Options) computeValidator {
	return computeValidator{
		hook.Rules[*novav1.NovaExternalCompute]{
			Kind: computeKind, Errors: computeErrors, Warnings: hook.HostedWarnings[*novav1.NovaExternalCompute], Texts: computeTexts, Options: options,
		},
		cellReader{Reader: reader},
	}
}

// ValidateCreate refuses, next to what is wrong in the object itself, a cell that is not
// the node's: it could never be corrected. A compute made before its node, or
// for a node without a cell, is in order.
func (v computeValidator) ValidateCreate(ctx context.Context, compute *novav1.NovaExternalCompute) (admission.Warnings, error) {
	cell, err := v.nodeCell(ctx, compute.Namespace, compute.Spec.DataplaneNodeName)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if errs := nodeCellErrors(compute, cell); len(errs) > 0 {
		return nil, hook.Invalid(computeKind, compute.Name, errs)
	}
	return v.Rules.ValidateCreate(ctx, compute)
}

func (v computeValidator) nodeCell(ctx context.Context, namespace, name string) (string, error) {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	found, err := v.cells.find(ctx, namespace, name, node)
	if !found {
		return "", err
	}
	role, err := v.cells.role(ctx, namespace, node.Spec.Role)
	return inherit.Annotation(node, role, novav1.CellAnnotation), err
}

// nodeCellErrors compares the compute with the effective cell of its node.
func nodeCellErrors(compute *novav1.NovaExternalCompute, cell string) field.ErrorList {
	if cell == "" || cell == compute.Spec.CellName {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "cellName"), compute.Spec.CellName, fmt.Sprintf(
		"node %s is in cell %s by the annotation %s of the node or its role: set %s", compute.Spec.DataplaneNodeName, cell, novav1.CellAnnotation, cell))}
}

func computeErrors(compute *novav1.NovaExternalCompute) field.ErrorList {
	at, spec := field.NewPath("spec"), compute.Spec
	errs := append(hook.HostedErrors(compute, identity.HostCompute), validate.ObjectName(at.Child("cellName"), spec.CellName)...)
	errs = append(errs, furtherfiles.Errors(at, furtherfiles.Compute, spec.FurtherFiles)...)
	return append(errs, validate.ObjectNames(at.Child("customServiceConfigSecrets"), spec.CustomServiceConfigSecrets)...)
}
