package ansibleee

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// validator adds to the rules for runs who may write those with targets.
type validator struct {
	hook.Rules[*ansibleeev1.OpenStackAnsibleEE]
	reviews client.Writer
}

// ValidateCreate refuses a run with errors, or with targets of a user who may
// not set them.
func (v *validator) ValidateCreate(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) (admission.Warnings, error) {
	if len(run.Spec.Targets) > 0 {
		if err := v.mayClaim(ctx, run); err != nil {
			return nil, err
		}
	}
	return v.Rules.ValidateCreate(ctx, run)
}

// ValidateUpdate refuses new errors, and a change of a run with targets by
// a user who may not set them: what has run would not be what they stand for.
func (v *validator) ValidateUpdate(ctx context.Context, old, run *ansibleeev1.OpenStackAnsibleEE) (admission.Warnings, error) {
	if len(old.Spec.Targets)+len(run.Spec.Targets) > 0 && !equality.Semantic.DeepEqual(old.Spec, run.Spec) {
		if err := v.mayClaim(ctx, run); err != nil {
			return nil, err
		}
	}
	return v.Rules.ValidateUpdate(ctx, old, run)
}

// mayClaim returns an error unless the user may set targets. Those of a run say for
// which hosts, and for which state of them, its result counts: who could set them
// could make hosts converged on which nothing ran. The right is one on a subresource
// that exists in rules only, as "approve" and "sign" are for certificates: the
// operators with an engine have it, and may write no results.
func (v *validator) mayClaim(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) error {
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: req.UserInfo.Username, UID: req.UserInfo.UID, Groups: req.UserInfo.Groups, Extra: extra(req.UserInfo),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: run.Namespace, Group: ansibleeev1.GroupVersion.Group, Resource: "openstackansibleees", Subresource: "targets", Verb: "update", Name: run.Name,
		},
	}}
	if err := v.reviews.Create(ctx, review); err != nil {
		return fmt.Errorf("finding out whether %s may set spec.targets: %w", req.UserInfo.Username, err)
	}
	if review.Status.Allowed {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: ansibleeev1.GroupVersion.Group, Resource: "openstackansibleees"}, run.Name, fmt.Errorf(
		"spec.targets is set by the operators, and a run that has it cannot be changed: remove the field to create your own run; to run a step again, set annotation edpm.openstack.org/rerun on the node"))
}

func extra(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	all := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		all[name] = authorizationv1.ExtraValue(values)
	}
	return all
}
