package ocs

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var kind = ocsv1.GroupVersion.WithKind("StorageCluster").GroupKind()

// SetupStorageClusterWithManager serves the rules of StorageCluster. The reader
// must read from the API server.
func SetupStorageClusterWithManager(mgr ctrl.Manager, reader client.Reader) error {
	return ctrl.NewWebhookManagedBy(mgr, &ocsv1.StorageCluster{}).WithValidator(validator{cluster{reader}}).Complete()
}

// validator judges a storage cluster by itself, by what it was before, and by the
// claims and nodes there are.
type validator struct{ cluster cluster }

// ValidateCreate refuses a storage cluster with errors, and one whose layout
// would orphan the claims of an earlier one.
func (v validator) ValidateCreate(ctx context.Context, c *ocsv1.StorageCluster) (admission.Warnings, error) {
	return v.verdict(ctx, nil, c, clusterErrors(c))
}

// ValidateUpdate refuses new errors, what cannot be changed, and a switch of the
// layout that would orphan claims.
func (v validator) ValidateUpdate(ctx context.Context, old, c *ocsv1.StorageCluster) (admission.Warnings, error) {
	if !c.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return v.verdict(ctx, old, c, append(validate.Ratchet(clusterErrors(old), clusterErrors(c)), changeErrors(old, c)...))
}

// ValidateDelete allows everything.
func (validator) ValidateDelete(context.Context, *ocsv1.StorageCluster) (admission.Warnings, error) {
	return nil, nil
}

// verdict adds what takes a look at the cluster, unless the object is refused as
// it is. old is nil for a new object.
func (v validator) verdict(ctx context.Context, old, c *ocsv1.StorageCluster, errs field.ErrorList) (admission.Warnings, error) {
	if len(errs) > 0 {
		return nil, hook.Invalid(kind, c.Name, errs)
	}
	claims, err := v.cluster.claims(ctx, c.Namespace)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if errs := append(layoutErrors(old, c, claims), osdErrors(old, c, claims)...); len(errs) > 0 {
		return nil, hook.Invalid(kind, c.Name, errs)
	}
	warnings := append(specWarnings(old, c), changeWarnings(old, c, claims)...)
	return append(warnings, v.domainWarnings(ctx, c)...), nil
}
