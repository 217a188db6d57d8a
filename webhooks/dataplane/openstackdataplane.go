package dataplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var dataPlaneRules = hook.Rules[*dataplanev1.OpenStackDataPlane]{
	Kind:     dataplanev1.GroupVersion.WithKind("OpenStackDataPlane").GroupKind(),
	Errors:   dataPlaneErrors,
	Warnings: dataPlaneWarnings,
}

// SetupOpenStackDataPlaneWithManager serves the rules of OpenStackDataPlane.
func SetupOpenStackDataPlaneWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &dataplanev1.OpenStackDataPlane{}).WithValidator(dataPlaneRules).Complete()
}

// dataPlaneErrors checks the nested specs as those of the objects that they
// become, which else would be refused where no one looks.
func dataPlaneErrors(dataPlane *dataplanev1.OpenStackDataPlane) field.ErrorList {
	spec, at := dataPlane.Spec, field.NewPath("spec")
	errs := named(at.Child("roles"), dataPlane.Namespace, spec.Roles, roleSpec)
	errs = append(errs, named(at.Child("nodes"), dataPlane.Namespace, spec.Nodes, nodeSpec)...)
	errs = append(errs, size(at, spec)...)
	return append(errs, deployStrategy(at.Child("deployStrategy"), spec.DeployStrategy)...)
}

// maxSpec is the most bytes that a data plane may have as JSON. etcd takes objects of
// 1.5 MiB, and the API server notes next to each field who set it, in about as
// many bytes again.
const maxSpec = 512 << 10

// size refuses a spec that etcd would refuse sooner or later, when one node is
// added to thousands. The text has no number, so that one that is too large
// already can still be changed.
func size(at *field.Path, spec dataplanev1.OpenStackDataPlaneSpec) field.ErrorList {
	text, err := json.Marshal(spec)
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	if len(text) <= maxSpec {
		return nil
	}
	return field.ErrorList{field.Invalid(at, field.OmitValueType{}, fmt.Sprintf(
		"roles and nodes together have more than %d bytes: create some of the nodes as separate OpenStackDataPlaneNode objects, or in another OpenStackDataPlane", maxSpec))}
}

// dataPlaneWarnings names roles that are not part of the data plane, which may
// exist by themselves, and hosts that two nodes share.
func dataPlaneWarnings(_ context.Context, _, dataPlane *dataplanev1.OpenStackDataPlane) []string {
	var warnings []string
	hosts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(dataPlane.Spec.Nodes)) {
		node, at := dataPlane.Spec.Nodes[name], field.NewPath("spec", "nodes").Key(name)
		if _, ok := dataPlane.Spec.Roles[node.Role]; !ok && node.Role != "" {
			warnings = append(warnings, fmt.Sprintf("%s: role %s is not in spec.roles; the node waits until that role exists", at.Child("role"), node.Role))
		}
		if other, ok := hosts[node.AnsibleHost]; ok && node.AnsibleHost != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %s is the host of node %s as well; two nodes must not configure one host: correct the address, or remove a node", at.Child("ansibleHost"), node.AnsibleHost, other))
		}
		hosts[node.AnsibleHost] = name
	}
	return warnings
}
