package dataplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

// SetupOpenStackDataPlaneNodeWithManager serves the rules of
// OpenStackDataPlaneNode. It warns by the manager's cache, which needs dataplane.Index:
// to list from the API server for each of thousands of nodes would cost the square
// of them.
func SetupOpenStackDataPlaneNodeWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &dataplanev1.OpenStackDataPlaneNode{}).WithValidator(nodeRules(mgr.GetClient())).Complete()
}

func nodeRules(reader client.Reader) hook.Rules[*dataplanev1.OpenStackDataPlaneNode] {
	return hook.Rules[*dataplanev1.OpenStackDataPlaneNode]{
		Kind:     dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneNode").GroupKind(),
		Errors:   nodeErrors,
		Warnings: sameHost{reader}.warnings,
	}
}

func nodeErrors(node *dataplanev1.OpenStackDataPlaneNode) field.ErrorList {
	errs := nodeSpec(field.NewPath("spec"), node.Namespace, node.Spec)
	key := field.NewPath("metadata", "annotations").Key(common.HostKeyAnnotation)
	if _, wrong := validate.HostKey(key, node.Annotations[common.HostKeyAnnotation]); wrong != nil {
		errs = append(errs, wrong)
	}
	if wrong := validate.TakeOver(node.Annotations); wrong != nil {
		errs = append(errs, wrong)
	}
	_, _, wrong := validate.Drain(node.Annotations)
	errs = append(errs, wrong...)
	_, wrong = validate.Fence(node.Annotations)
	return append(errs, wrong...)
}

// sameHost finds nodes that stand for one host. It only warns: while a node is
// replaced by one of another name, both exist for a moment.
type sameHost struct{ client.Reader }

func (s sameHost) warnings(ctx context.Context, old, node *dataplanev1.OpenStackDataPlaneNode) []string {
	host := node.Spec.AnsibleHost
	if host == "" || old != nil && old.Spec.AnsibleHost == host {
		return nil
	}
	other, err := dataplane.AtAddressOf(ctx, s, node)
	if err != nil {
		// A warning is not worth refusing the write.
		logf.FromContext(ctx).Error(err, "Failed to look for another node with the same address")
		return nil
	}
	if other == "" {
		return nil
	}
	return []string{fmt.Sprintf("spec.ansibleHost: %s is the host of node %s as well; two nodes must not configure one host: correct the address, or delete a node", host, other)}
}
