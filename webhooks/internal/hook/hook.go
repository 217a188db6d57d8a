// Package hook makes admission webhooks out of pure rules.
package hook

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// Rules is a validator for a kind whose objects are judged by themselves.
type Rules[T client.Object] struct {
	Kind schema.GroupKind
	// Errors returns what is wrong with an object.
	Errors func(T) field.ErrorList
	// Warnings, if set, returns what is allowed but likely not meant. The old
	// object is nil on create.
	Warnings func(ctx context.Context, old, obj T) []string
}

// ValidateCreate refuses an object with errors.
func (r Rules[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	var none T
	return r.verdict(ctx, none, obj, r.Errors(obj))
}

// ValidateUpdate refuses errors that the stored object does not have already.
// An object on its way out is let go in any state.
func (r Rules[T]) ValidateUpdate(ctx context.Context, old, obj T) (admission.Warnings, error) {
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil, nil
	}
	return r.verdict(ctx, old, obj, validate.Ratchet(r.Errors(old), r.Errors(obj)))
}

// ValidateDelete allows everything.
func (r Rules[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func (r Rules[T]) verdict(ctx context.Context, old, obj T, errs field.ErrorList) (admission.Warnings, error) {
	if len(errs) > 0 || r.Warnings == nil {
		return nil, Invalid(r.Kind, obj.GetName(), errs)
	}
	return r.Warnings(ctx, old, obj), nil
}

// Invalid returns the errors as the API server words them, nil if there are none.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(kind, name, errs)
}
