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
	// Texts, if set, returns the texts of an object. With Options, new ones are judged by what
	// their image knows.
	Texts   func(T) []Text
	Options Options
}

// Known returns the rules with what images know.
func (r Rules[T]) Known(options Options) Rules[T] {
	r.Options = options
	return r
}

// ValidateCreate refuses an object with errors.
func (r Rules[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	var none T
	return r.verdict(ctx, none, obj, nil, r.Errors(obj))
}

// ValidateUpdate refuses errors that the stored object does not have already.
// An object on its way out is let go in any state.
func (r Rules[T]) ValidateUpdate(ctx context.Context, old, obj T) (admission.Warnings, error) {
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil, nil
	}
	return r.verdict(ctx, old, obj, r.texts(old), validate.Ratchet(r.Errors(old), r.Errors(obj)))
}

// ValidateDelete allows everything.
func (r Rules[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func (r Rules[T]) verdict(ctx context.Context, old, obj T, before []Text, errs field.ErrorList) (admission.Warnings, error) {
	refused, warnings := r.judge(ctx, obj.GetNamespace(), before, r.texts(obj))
	if errs = append(errs, refused...); len(errs) > 0 {
		return nil, Invalid(r.Kind, obj.GetName(), errs)
	}
	if r.Warnings != nil {
		warnings = append(r.Warnings(ctx, old, obj), warnings...)
	}
	return warnings, nil
}

// texts are those of an object that can be judged.
func (r Rules[T]) texts(obj T) []Text {
	if r.Texts == nil || r.Options == nil {
		return nil
	}
	return r.Texts(obj)
}

// Invalid returns the errors as the API server words them, nil if there are none.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(kind, name, errs)
}
