package topology

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// Nearest returns the effective reference, given those of an object and
// of the objects above it, nearest first. The first that is set decides; nil
// when none is set, or when the nearest opts out by an empty name.
func Nearest(refs ...*topologyv1.TopologyRef) *topologyv1.TopologyRef {
	for _, ref := range refs {
		if ref == nil {
			continue
		}
		if ref.Name == "" {
			return nil
		}
		return ref.DeepCopy()
	}
	return nil
}

// NameOf returns the name that the reference has, "" for none.
func NameOf(ref *topologyv1.TopologyRef) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// ValidateRef checks the reference at the path, for webhooks, of an object in
// the namespace. The text about the namespace is that of infra-operator
// (apis/topology/v1beta1 ValidateTopologyRef).
func ValidateRef(path *field.Path, ref *topologyv1.TopologyRef, namespace string) field.ErrorList {
	if ref == nil {
		return nil
	}
	var errs field.ErrorList
	if ref.Namespace != "" && ref.Namespace != namespace {
		errs = append(errs, field.Invalid(path.Child("namespace"), ref.Namespace,
			"Customizing namespace field is not supported: remove it, and create the Topology in the namespace of this object"))
	}
	if ref.Name != "" && len(validation.IsDNS1123Subdomain(ref.Name)) > 0 {
		errs = append(errs, field.Invalid(path.Child("name"), ref.Name,
			`is not the name of a Topology: use lower-case letters, digits, "-" and ".", for example glance-default-spread-pods`))
	}
	return errs
}
