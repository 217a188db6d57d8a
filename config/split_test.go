package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	rbacvalidation "k8s.io/component-helpers/auth/rbac/validation"

	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/coexistence"
)

// all returns the objects of a kind that kustomize makes of a directory.
func all[T any](t *testing.T, dir, kind string) []T {
	t.Helper()
	var out []T
	for _, r := range objects(t, dir) {
		if r.GetKind() != kind {
			continue
		}
		var obj T
		decode(t, r, &obj)
		out = append(out, obj)
	}
	return out
}

const split = "overlays/split"

// argument of a manager, after its name.
func argument(d appsv1.Deployment, name string) string {
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
	}
	return ""
}

// splitManagers are the Deployments by the operator that each runs.
func splitManagers(t *testing.T) map[string]appsv1.Deployment {
	t.Helper()
	found := map[string]appsv1.Deployment{}
	for _, d := range all[appsv1.Deployment](t, split, "Deployment") {
		operator := argument(d, "--operators")
		if _, twice := found[operator]; twice {
			t.Errorf("two managers run %s", operator)
		}
		found[operator] = d
	}
	return found
}

func TestEveryOperatorHasAManagerOfItsOwn(t *testing.T) {
	managers := splitManagers(t)
	var operators []string
	seen := map[string]string{}
	for operator, d := range managers {
		operators = append(operators, operator)
		for what, value := range map[string]string{
			"name": d.Name, "lease": argument(d, "--leader-election-id"), "account": d.Spec.Template.Spec.ServiceAccountName, "label": d.Spec.Template.Labels["app.kubernetes.io/instance"],
		} {
			if other, taken := seen[what+value]; taken || value == "" {
				t.Errorf("the %s of %s is %q, as that of %s", what, operator, value, other)
			}
			seen[what+value] = operator
		}
		for other, o := range managers {
			if other != operator && selects(t, d.Spec.Selector, o.Spec.Template) {
				t.Errorf("the Deployment of %s selects the pods of %s", operator, other)
			}
		}
	}
	slices.Sort(operators)
	if diff := cmp.Diff(controllers.Operators, operators); diff != "" {
		t.Errorf("the operators that run differ (-wanted +deployed):\n%s", diff)
	}
}

// TestEveryKindIsLookedAfterOnce : make deploy OPERATORS=... applies by this label.
func TestEveryKindIsLookedAfterOnce(t *testing.T) {
	want := map[string][]string{}
	for _, crd := range all[apiextensionsv1.CustomResourceDefinition](t, split, "CustomResourceDefinition") {
		operator := strings.TrimPrefix(crd.Labels["app.kubernetes.io/instance"], "edpm-operators-")
		want[operator] = append(want[operator], crd.Name)
	}
	for operator, kinds := range want {
		if _, deployed := splitManagers(t)[operator]; !deployed {
			t.Errorf("no one looks after %v of %q", kinds, operator)
		}
		for _, kind := range kinds {
			if !slices.Contains(coexistence.Names([]string{operator}), kind) {
				t.Errorf("%s is none of the kinds of %s", kind, operator)
			}
		}
	}
	var deployed, defined int
	for _, kinds := range want {
		deployed += len(kinds)
	}
	if defined = len(coexistence.Names(controllers.Operators)); deployed != defined {
		t.Errorf("%d kinds are deployed; want %d", deployed, defined)
	}
}

// hook is a webhook that is deployed.
type hook struct{ Path, Service, Namespace string }

func hooks(t *testing.T, dir string) map[string]hook {
	t.Helper()
	found := map[string]hook{}
	add := func(name string, c admissionv1.WebhookClientConfig) {
		if _, twice := found[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		found[name] = hook{*c.Service.Path, c.Service.Name, c.Service.Namespace}
	}
	for _, config := range all[admissionv1.MutatingWebhookConfiguration](t, dir, "MutatingWebhookConfiguration") {
		for _, w := range config.Webhooks {
			add(w.Name, w.ClientConfig)
		}
	}
	for _, config := range all[admissionv1.ValidatingWebhookConfiguration](t, dir, "ValidatingWebhookConfiguration") {
		for _, w := range config.Webhooks {
			add(w.Name, w.ClientConfig)
		}
	}
	return found
}

func TestEveryWebhookIsServedByTheManagerOfItsOperator(t *testing.T) {
	managers, services := splitManagers(t), map[string]corev1.Service{}
	for _, s := range all[corev1.Service](t, split, "Service") {
		services[s.Name] = s
	}
	want, got := hooks(t, "default"), hooks(t, split)
	for name, w := range want {
		if got[name].Path != w.Path {
			t.Errorf("%s leads to %q; want %s", name, got[name].Path, w.Path)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d webhooks; want %d", len(got), len(want))
	}
	for name, w := range got {
		operator := strings.Split(w.Path, "-")[1]
		pod := managers[operator].Spec.Template
		for other, d := range managers {
			leads := labels.SelectorFromSet(services[w.Service].Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels))
			if leads != (other == operator) {
				t.Errorf("whether Service %s of %s leads to %s: %v", w.Service, name, other, leads)
			}
		}
		if env := pod.Spec.Containers[0].Env; !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == "WEBHOOK_SERVICE" && e.Value == w.Service }) {
			t.Errorf("the manager of %s is not told of Service %s", operator, w.Service)
		}
	}
}

// rights are the rules of a role; what each manager has for itself, such as the
// certificate, is under the name that all have.
func rights(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		rule = *rule.DeepCopy()
		for i, name := range rule.ResourceNames {
			for _, own := range []string{"webhook-service-cert", "mutating-webhook-configuration", "validating-webhook-configuration"} {
				if strings.HasSuffix(name, own) {
					rule.ResourceNames[i] = own
				}
			}
		}
		out = append(out, rule)
	}
	return out
}

func TestNoManagerMayMoreThanOneManagerMay(t *testing.T) {
	for _, kind := range []string{"ClusterRole", "Role"} {
		var whole []rbacv1.PolicyRule
		for _, r := range all[rbacv1.ClusterRole](t, "default", kind) {
			if r.Name == "edpm-operators-manager-role" {
				whole = rights(r.Rules)
			}
		}
		var sum []rbacv1.PolicyRule
		for _, r := range all[rbacv1.ClusterRole](t, split, kind) {
			if !strings.HasSuffix(r.Name, "-manager-role") {
				continue
			}
			sum = append(sum, rights(r.Rules)...)
			if ok, missing := rbacvalidation.Covers(whole, rights(r.Rules)); !ok {
				t.Errorf("%s may more than the one manager of config/default: %v", r.Name, missing)
			}
		}
		if ok, missing := rbacvalidation.Covers(sum, whole); !ok || len(whole) == 0 {
			t.Errorf("no manager may what that of config/default may by its %s: %v", kind, missing)
		}
	}
}

// TestWhatManagersMayNot : an operator has no rights of another's work.
func TestWhatManagersMayNot(t *testing.T) {
	roles := map[string][]rbacv1.PolicyRule{}
	for _, r := range all[rbacv1.ClusterRole](t, split, "ClusterRole") {
		roles[r.Name] = r.Rules
	}
	rule := func(verb, group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
	}
	for operator, c := range map[string]struct{ may, mayNot []rbacv1.PolicyRule }{
		"ansibleee": {[]rbacv1.PolicyRule{rule("create", "batch", "jobs")}, []rbacv1.PolicyRule{
			rule("get", "", "secrets"), rule("create", "ansibleee.openstack.org", "openstackansibleees"), rule("patch", "apps", "statefulsets"), rule("get", "nova.openstack.org", "novacells"),
		}},
		"core": {[]rbacv1.PolicyRule{rule("create", "glance.openstack.org", "glances")}, []rbacv1.PolicyRule{
			rule("get", "", "secrets"), rule("create", "batch", "jobs"), rule("create", "apps", "statefulsets"),
		}},
		"dataplane": {[]rbacv1.PolicyRule{rule("create", "ansibleee.openstack.org", "openstackansibleees")}, []rbacv1.PolicyRule{
			rule("create", "batch", "jobs"), rule("create", "apps", "statefulsets"), rule("create", "nova.openstack.org", "novaexternalcomputes"),
		}},
		"edpm": {[]rbacv1.PolicyRule{rule("create", "edpm.openstack.org", "edpmservices"), rule("create", "ansibleee.openstack.org", "openstackansibleees")}, []rbacv1.PolicyRule{
			rule("create", "batch", "jobs"), rule("create", "apps", "statefulsets"), rule("patch", "nova.openstack.org", "novaexternalcomputes"), rule("create", "dataplane.openstack.org", "openstackdataplanenodes"),
		}},
		"glance": {[]rbacv1.PolicyRule{rule("patch", "apps", "statefulsets"), rule("create", "batch", "jobs")}, []rbacv1.PolicyRule{
			rule("create", "ansibleee.openstack.org", "openstackansibleees"), rule("get", "dataplane.openstack.org", "openstackdataplanenodes"),
		}},
		"nova": {[]rbacv1.PolicyRule{rule("create", "nova.openstack.org", "novaexternalcomputes"), rule("create", "batch", "jobs")}, []rbacv1.PolicyRule{
			rule("patch", "glance.openstack.org", "glances"), rule("create", "dataplane.openstack.org", "openstackdataplanenodes"),
		}},
		"topology": {[]rbacv1.PolicyRule{rule("patch", "topology.openstack.org", "topologies/status")}, []rbacv1.PolicyRule{
			rule("get", "", "secrets"), rule("list", "", "configmaps"), rule("create", "batch", "jobs"), rule("get", "glance.openstack.org", "glances"),
		}},
	} {
		granted := roles["edpm-operators-"+operator+"-manager-role"]
		for _, r := range c.may {
			if ok, _ := rbacvalidation.Covers(granted, []rbacv1.PolicyRule{r}); !ok {
				t.Errorf("%s may not %v %v, which is its work", operator, r.Verbs, r.Resources)
			}
		}
		for _, r := range c.mayNot {
			if ok, _ := rbacvalidation.Covers(granted, []rbacv1.PolicyRule{r}); ok {
				t.Errorf("%s may %v %v of %v", operator, r.Verbs, r.Resources, r.APIGroups)
			}
		}
	}
}

func TestRolesAreBoundToTheAccountOfTheirManager(t *testing.T) {
	blind := []string{"core", "topology"} // of Secrets
	for operator, d := range splitManagers(t) {
		account := rbacv1.Subject{Kind: "ServiceAccount", Name: d.Spec.Template.Spec.ServiceAccountName, Namespace: d.Namespace}
		for _, kind := range []string{"ClusterRole", "Role"} {
			var bound []string
			for _, b := range all[rbacv1.RoleBinding](t, split, kind+"Binding") {
				if slices.Contains(b.Subjects, account) {
					bound = append(bound, b.RoleRef.Kind+" "+b.RoleRef.Name)
				}
			}
			want := []string{kind + " edpm-operators-" + operator + "-manager-role"}
			if kind == "ClusterRole" && !slices.Contains(blind, operator) {
				want = append(want, kind+" edpm-operators-"+operator+"-manager-secrets-role")
			}
			if !slices.Equal(bound, want) {
				t.Errorf("the manager of %s has %v; want %v", operator, bound, want)
			}
		}
	}
	for _, p := range all[corev1.ServiceAccount](t, split, "ServiceAccount") {
		if p.Namespace != "edpm-operators-system" {
			t.Errorf("account %s is in %s", p.Name, p.Namespace)
		}
	}
}
