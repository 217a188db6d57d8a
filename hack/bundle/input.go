package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// definition is a CustomResourceDefinition, typed and as it was read.
type definition struct {
	apiextensionsv1.CustomResourceDefinition
	raw *unstructured.Unstructured
}

// input is what config has for the bundle.
type input struct {
	base       *v1alpha1.ClusterServiceVersion
	deployment *appsv1.Deployment
	role       *rbacv1.Role
	// rules of the manager, in all namespaces.
	rules      []rbacv1.PolicyRule
	mutating   []admissionv1.MutatingWebhook
	validating []admissionv1.ValidatingWebhook
	// owned are the kinds of the operators of the bundle, others those of the rest.
	owned, others []definition
	examples      []*unstructured.Unstructured
	// extra are objects that OLM installs as they are.
	extra []*unstructured.Unstructured
}

// left are kinds that OLM makes by itself, or that the CSV says in another way, and
// NetworkPolicy, which not every version of OLM takes from a bundle, and which has to name the port
// of the API server.
var left = []string{"Namespace", "ServiceAccount", "Secret", "ClusterRoleBinding", "RoleBinding", "NetworkPolicy"}

// metricsReader is how the name of the role ends that lets read the metrics.
const metricsReader = "-metrics-reader"

// readInput sorts the objects of a YAML stream. It fails if one is missing that
// every bundle needs, or if no one knows what is to become of one.
func readInput(stream io.Reader, operators []string) (*input, error) {
	objects, err := parse(stream)
	if err != nil {
		return nil, fmt.Errorf("reading config: %w", err)
	}
	in := &input{}
	// Definitions first: they tell which of the other objects are examples.
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
	for _, obj := range objects {
		if err := in.take(obj, operators); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return in, in.check(operators)
}

func rank(obj *unstructured.Unstructured) int {
	if obj.GetKind() == "CustomResourceDefinition" {
		return 0
	}
	return 1
}

func parse(stream io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(stream, 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
}

// operatorOf returns the operator that looks after a group: the first word of its
// name (design: glance.openstack.org, ocs.openshift.io).
func operatorOf(group string) string {
	operator, _, _ := strings.Cut(group, ".")
	return operator
}

func (in *input) take(obj *unstructured.Unstructured, operators []string) error {
	switch kind := obj.GetKind(); {
	case kind == "ClusterServiceVersion":
		return decode(obj, &in.base)
	case kind == "Deployment":
		return decode(obj, &in.deployment)
	case kind == "Role":
		return decode(obj, &in.role)
	case kind == "ClusterRole":
		return in.takeClusterRole(obj, operators)
	case kind == "CustomResourceDefinition":
		return in.takeDefinition(obj, operators)
	case kind == "MutatingWebhookConfiguration":
		config := &admissionv1.MutatingWebhookConfiguration{}
		if err := decode(obj, &config); err != nil {
			return err
		}
		in.mutating = keep(config.Webhooks, operators, func(w admissionv1.MutatingWebhook) admissionv1.WebhookClientConfig { return w.ClientConfig })
		return nil
	case kind == "ValidatingWebhookConfiguration":
		config := &admissionv1.ValidatingWebhookConfiguration{}
		if err := decode(obj, &config); err != nil {
			return err
		}
		in.validating = keep(config.Webhooks, operators, func(w admissionv1.ValidatingWebhook) admissionv1.WebhookClientConfig { return w.ClientConfig })
		return nil
	case kind == "Service":
		if obj.GetLabels()["app.kubernetes.io/component"] != "webhook" {
			in.extra = append(in.extra, obj)
		}
		return nil
	case is(in.owned, obj):
		in.examples = append(in.examples, obj)
		return nil
	case is(in.others, obj) || slices.Contains(left, kind):
		return nil
	}
	return fmt.Errorf("no bundle has a %s: say in hack/bundle what is to become of it", obj.GroupVersionKind())
}

// is reports whether one of the definitions is that of the object's kind.
func is(definitions []definition, obj *unstructured.Unstructured) bool {
	return slices.ContainsFunc(definitions, func(d definition) bool {
		return d.Spec.Group == obj.GroupVersionKind().Group && d.Spec.Names.Kind == obj.GetKind()
	})
}

// takeClusterRole tells the manager's roles, which the CSV grants, from those for
// people, and for whoever reads the metrics.
func (in *input) takeClusterRole(obj *unstructured.Unstructured, operators []string) error {
	role := &rbacv1.ClusterRole{}
	if err := decode(obj, &role); err != nil {
		return err
	}
	ofOperators := func(rule rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rule.APIGroups, func(group string) bool { return slices.Contains(operators, operatorOf(group)) })
	}
	if strings.HasSuffix(role.Name, "manager-role") || strings.HasSuffix(role.Name, "manager-secrets-role") {
		in.rules = append(in.rules, role.Rules...)
	} else if strings.HasSuffix(role.Name, metricsReader) || slices.ContainsFunc(role.Rules, ofOperators) {
		in.extra = append(in.extra, obj)
	}
	return nil
}

func (in *input) takeDefinition(obj *unstructured.Unstructured, operators []string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := decode(obj, &crd); err != nil {
		return err
	}
	list := &in.others
	if slices.Contains(operators, operatorOf(crd.Spec.Group)) {
		list = &in.owned
	}
	*list = append(*list, definition{*crd, obj})
	return nil
}

// keep returns the webhooks that the operators serve. The path says whose a
// webhook is: the cell rule is nova's, although it judges kinds of the data plane.
func keep[T any](hooks []T, operators []string, config func(T) admissionv1.WebhookClientConfig) []T {
	return slices.DeleteFunc(hooks, func(hook T) bool {
		words := strings.Split(*config(hook).Service.Path, "-")
		return len(words) < 2 || !slices.Contains(operators, words[1])
	})
}

func (in *input) check(operators []string) error {
	for name, missing := range map[string]bool{
		"ClusterServiceVersion": in.base == nil, "Deployment": in.deployment == nil,
		"Role manager-role": in.role == nil, "ClusterRole manager-role": in.rules == nil,
	} {
		if missing {
			return fmt.Errorf("config/olm has no %s", name)
		}
	}
	for _, operator := range operators {
		if !slices.ContainsFunc(in.owned, func(d definition) bool { return operatorOf(d.Spec.Group) == operator }) {
			return fmt.Errorf("operator %q has no kinds in config/crd: choose others", operator)
		}
	}
	return nil
}

// decode makes a typed object, refusing fields that its type does not have.
func decode[T any](obj *unstructured.Unstructured, into **T) error {
	*into = new(T)
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, *into, true)
}
