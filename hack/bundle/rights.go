package main

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// withoutCertificates leaves out what the manager needs only where it makes the
// certificates of its webhooks itself. OLM does that here.
func withoutCertificates(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	return slices.DeleteFunc(slices.Clone(rules), func(rule rbacv1.PolicyRule) bool {
		secret := slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) > 0
		return secret || slices.Contains(rule.APIGroups, "admissionregistration.k8s.io")
	})
}

// requiredKinds returns the kinds of other operators that those of the bundle watch
// and cannot do without: OLM installs the package that has them first. What they
// only list and watch they watch where it exists.
func (in *input) requiredKinds() []v1alpha1.CRDDescription {
	var required []v1alpha1.CRDDescription
	for _, d := range in.others {
		if in.may(d, "watch") && slices.ContainsFunc([]string{"get", "create", "update", "patch", "delete"}, func(verb string) bool { return in.may(d, verb) }) {
			kind := describe(d)
			kind.SpecDescriptors, kind.StatusDescriptors = nil, nil
			required = append(required, kind)
		}
	}
	return required
}

// may reports whether the manager has the right to the objects of the kind.
func (in *input) may(d definition, verb string) bool {
	return slices.ContainsFunc(in.rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, d.Spec.Group) && slices.Contains(rule.Resources, d.Spec.Names.Plural) && slices.Contains(rule.Verbs, verb)
	})
}
