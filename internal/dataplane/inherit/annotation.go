package inherit

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// Annotation returns the value of the annotation on the node, else that on its
// role, else "". A nil role has no annotations. An annotation that is set on
// the node wins even when it is empty (seeds/004).
func Annotation(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, key string) string {
	for _, obj := range present(node, role) {
		if value, ok := obj.GetAnnotations()[key]; ok {
			return value
		}
	}
	return ""
}

// RerunTokens returns the rerun tokens of the node and the role, by "node" and
// "role". That of the node is in force if there is one.
func RerunTokens(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) map[string]string {
	tokens := map[string]string{}
	if node != nil && node.Annotations[common.RerunAnnotation] != "" {
		tokens["node"] = node.Annotations[common.RerunAnnotation]
	}
	if role != nil && role.Annotations[common.RerunAnnotation] != "" {
		tokens["role"] = role.Annotations[common.RerunAnnotation]
	}
	return tokens
}

// present returns the objects that are not nil, nearest first.
func present(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) []client.Object {
	var objs []client.Object
	if node != nil {
		objs = append(objs, node)
	}
	if role != nil {
		objs = append(objs, role)
	}
	return objs
}
