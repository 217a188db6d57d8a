// Command kinds writes what the table in internal/kinds decides into config/: the webhook
// configurations, the aggregated roles, the list of resource definitions, the webhooks
// that an alert names, and the permission to watch the definitions.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/internal/kinds"
)

const header = "# Generated from internal/kinds: run make manifests.\n"

func main() {
	log.SetFlags(0)
	log.SetPrefix("kinds: ")
	for path, content := range files() {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	if err := updateAlert("config/prometheus/rules.yaml"); err != nil {
		log.Fatal(err)
	}
}

// files returns the content of every file that is generated as a whole, by its path.
func files() map[string][]byte {
	return map[string][]byte{
		"config/webhook/manifests.yaml":          documents(configurations(false)...),
		"config/overlays/ocs/webhooks.yaml":      documents(configurations(true)...),
		"config/rbac/aggregate/roles.yaml":       documents(roles(false)...),
		"config/overlays/ocs/aggregate.yaml":     documents(roles(true)...),
		"config/crd/kustomization.yaml":          documents(definitions()),
		"cmd/manager/zz_generated.permission.go": permission(),
	}
}

// documents joins objects to a file of YAML.
func documents(objects ...any) []byte {
	var parts [][]byte
	for _, obj := range objects {
		text, err := yaml.Marshal(obj)
		if err != nil {
			log.Fatal(err)
		}
		parts = append(parts, text)
	}
	return append([]byte(header), bytes.Join(parts, []byte("---\n"))...)
}

// prefix is what kustomize puts before names, which patches of its result have already.
func prefix(optional bool) string {
	if optional {
		return "edpm-operators-"
	}
	return ""
}

// configurations returns the webhook configurations of the kinds that are deployed
// everywhere, or what is added to them for the optional ones.
func configurations(optional bool) []any {
	mutating := &admissionv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: prefix(optional) + "mutating-webhook-configuration"},
	}
	validating := &admissionv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: prefix(optional) + "validating-webhook-configuration"},
	}
	for _, hook := range kinds.Webhooks() {
		switch v := webhook(hook); {
		case hook.Kind.Optional != optional:
		case hook.Mutating:
			mutating.Webhooks = append(mutating.Webhooks, admissionv1.MutatingWebhook{
				Name: v.Name, ClientConfig: v.ClientConfig, Rules: v.Rules, MatchConditions: v.MatchConditions, FailurePolicy: v.FailurePolicy,
				MatchPolicy: v.MatchPolicy, SideEffects: v.SideEffects, TimeoutSeconds: v.TimeoutSeconds, AdmissionReviewVersions: v.AdmissionReviewVersions,
			})
		default:
			validating.Webhooks = append(validating.Webhooks, v)
		}
	}
	if len(mutating.Webhooks) == 0 {
		return []any{validating}
	}
	return []any{mutating, validating}
}

func webhook(hook kinds.Webhook) admissionv1.ValidatingWebhook {
	service := &admissionv1.ServiceReference{Name: prefix(hook.Kind.Optional) + "webhook-service", Namespace: prefix(hook.Kind.Optional) + "system", Path: &hook.Path}
	return admissionv1.ValidatingWebhook{
		Name:         hook.Name,
		ClientConfig: admissionv1.WebhookClientConfig{Service: service},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{hook.Kind.Group}, APIVersions: []string{hook.Kind.Version}, Resources: []string{hook.Kind.Plural},
				Scope: ptr.To(admissionv1.NamespacedScope),
			},
		}},
		MatchConditions: hook.Conditions, FailurePolicy: &hook.Failure, MatchPolicy: ptr.To(admissionv1.Equivalent),
		SideEffects: ptr.To(admissionv1.SideEffectClassNone), TimeoutSeconds: ptr.To[int32](10), AdmissionReviewVersions: []string{"v1"},
	}
}

// roles returns who may edit and who may view each kind. They become part of the
// cluster's own admin, edit and view, and can be bound by themselves. An optional kind is
// not edited by who may edit a namespace: a StorageCluster makes the manager label
// Kubernetes nodes.
func roles(optional bool) []any {
	var all []any
	for _, k := range kinds.Table {
		if k.Optional != optional {
			continue
		}
		editors := []string{"admin", "edit"}
		if optional {
			editors = nil
		}
		all = append(all,
			role(k, "editor", []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}, editors...),
			role(k, "viewer", []string{"get", "list", "watch"}, "view"))
	}
	return all
}

func role(k kinds.Kind, suffix string, verbs []string, aggregated ...string) *rbacv1.ClusterRole {
	labels := map[string]string{}
	for _, to := range aggregated {
		labels["rbac.authorization.k8s.io/aggregate-to-"+to] = "true"
	}
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: prefix(k.Optional) + strings.ToLower(k.Kind) + "-" + suffix, Labels: labels},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{k.Group}, Resources: []string{k.Plural}, Verbs: verbs}},
	}
}

// definitions returns the kustomization of config/crd.
func definitions() any {
	var files []string
	for _, k := range kinds.Table {
		files = append(files, fmt.Sprintf("bases/%s_%s.yaml", k.Group, k.Plural))
	}
	slices.Sort(files)
	return map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": files}
}

// permission returns the marker that lets the manager watch each definition by its name,
// which is all that a permission on names allows.
func permission() []byte {
	return fmt.Appendf(nil, "// Code generated from internal/kinds by hack/kinds: run make manifests. DO NOT EDIT.\n\npackage main\n\n"+
		"// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=%s,verbs=list;watch\n",
		strings.Join(kinds.Definitions(kinds.Table), ";"))
}

// matcher is what the alert EDPMWebhookDown selects webhooks with.
var matcher = regexp.MustCompile(`name=~"\([^)]*\)\[\.\]kb\[\.\]io"`)

func updateAlert(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var names []string
	for _, hook := range kinds.Webhooks() {
		names = append(names, strings.TrimSuffix(hook.Name, ".kb.io"))
	}
	updated := matcher.ReplaceAll(text, fmt.Appendf(nil, `name=~"(%s)[.]kb[.]io"`, strings.Join(names, "|")))
	return os.WriteFile(path, updated, 0o644)
}
