package dataplane

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var roleRules = hook.Rules[*dataplanev1.OpenStackDataPlaneRole]{
	Kind:   dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneRole").GroupKind(),
	Errors: roleErrors,
}

// SetupOpenStackDataPlaneRoleWithManager serves the rules of OpenStackDataPlaneRole.
func SetupOpenStackDataPlaneRoleWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &dataplanev1.OpenStackDataPlaneRole{}).WithValidator(roleRules).Complete()
}

func roleErrors(role *dataplanev1.OpenStackDataPlaneRole) field.ErrorList {
	return roleSpec(field.NewPath("spec"), role.Namespace, role.Spec)
}
