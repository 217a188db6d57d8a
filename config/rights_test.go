package config_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestWebhookConfigurationsAreUpdatedByName : who may update any webhook
// configuration of the cluster decides what is stored in it.
func TestWebhookConfigurationsAreUpdatedByName(t *testing.T) {
	for dir, updates := range map[string]bool{"default": true, "overlays/ocs": true, split: true, "overlays/secrets-by-namespace": true, "overlays/cert-manager": false} {
		deployed, found := map[string]bool{}, false
		for _, r := range objects(t, dir) {
			if strings.HasSuffix(r.GetKind(), "WebhookConfiguration") {
				deployed[r.GetName()] = true
			}
		}
		for _, role := range append(all[rbacv1.ClusterRole](t, dir, "ClusterRole"), all[rbacv1.ClusterRole](t, dir, "Role")...) {
			for _, rule := range role.Rules {
				if !slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") || reads(rule) {
					continue
				}
				found = true
				if !slices.Equal(rule.Verbs, []string{"update"}) || len(rule.ResourceNames) == 0 {
					t.Errorf("%s: %s may %v %v %v; want update, by name", dir, role.Name, rule.Verbs, rule.Resources, rule.ResourceNames)
				}
				for _, name := range rule.ResourceNames {
					mutating := strings.Contains(name, "mutating") // not every operator sets defaults
					if !deployed[name] && (dir != split || !mutating) {
						t.Errorf("%s: %s may update %s, which is not deployed", dir, role.Name, name)
					}
				}
			}
		}
		if found != updates {
			t.Errorf("%s: whether the manager may update webhook configurations is %v; want %v", dir, found, updates)
		}
	}
}

// TestNoManagerChangesPods : a label or annotation of any Pod of the cluster can
// be a key to another user's policy. What is written on the manager's own Pod is
// its status.
func TestNoManagerChangesPods(t *testing.T) {
	for _, dir := range []string{"default", "overlays/ocs", split, "overlays/secrets-by-namespace", "overlays/cert-manager"} {
		for _, role := range append(all[rbacv1.ClusterRole](t, dir, "ClusterRole"), all[rbacv1.ClusterRole](t, dir, "Role")...) {
			for _, rule := range role.Rules {
				core := slices.Contains(rule.APIGroups, "")
				if core && slices.Contains(rule.Resources, "pods") && slices.ContainsFunc(rule.Verbs, func(v string) bool { return v == "patch" || v == "update" || v == "create" }) {
					t.Errorf("%s: %s may %v pods", dir, role.Name, rule.Verbs)
				}
			}
		}
	}
}

func reads(rule rbacv1.PolicyRule) bool {
	return !slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" })
}
