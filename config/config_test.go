// Package config_test checks what of config/ no other test applies: that policies
// and monitors select what is deployed.
package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/test/podsecurity"
)

// made is what kustomize has made of directories, which takes it seconds each.
var made = map[string]resmap.ResMap{}

// objects returns what kustomize makes of a directory. No one changes them.
func objects(t *testing.T, dir string) []*resource.Resource {
	t.Helper()
	if made[dir] == nil {
		resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		made[dir] = resources
	}
	return made[dir].Resources()
}

func decode(t *testing.T, r *resource.Resource, into any) {
	t.Helper()
	text, err := r.AsYAML()
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s %s: %v", r.GetKind(), r.GetName(), err)
	}
}

// built returns what kustomize makes of a directory, the object of the kind and
// name.
func built(t *testing.T, dir, kind, name string, into any) {
	t.Helper()
	for _, r := range objects(t, dir) {
		if r.GetKind() != kind || r.GetName() != name {
			continue
		}
		if r.GetNamespace() != "edpm-operators-system" {
			t.Errorf("%s %s is in namespace %q", kind, name, r.GetNamespace())
		}
		decode(t, r, into)
		return
	}
	t.Fatalf("config/%s has no %s %s", dir, kind, name)
}

func manager(t *testing.T) appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	built(t, "default", "Deployment", "edpm-operators-manager", &d)
	return d
}

// selects reports whether a selector selects the manager's pods.
func selects(t *testing.T, s *metav1.LabelSelector, pod corev1.PodTemplateSpec) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(pod.Labels))
}

// number is the port of the manager's container that is meant.
func number(t *testing.T, pod corev1.PodTemplateSpec, port intstr.IntOrString) int32 {
	t.Helper()
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, p := range pod.Spec.Containers[0].Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort
		}
	}
	t.Errorf("the manager has no port %s", port.StrVal)
	return 0
}

func TestThePolicyLetsTheManagerWork(t *testing.T) {
	pod := manager(t).Spec.Template
	var policy networkingv1.NetworkPolicy
	built(t, "default", "NetworkPolicy", "edpm-operators-manager", &policy)
	if !selects(t, &policy.Spec.PodSelector, pod) {
		t.Fatalf("the policy selects %v; the pods have %v", policy.Spec.PodSelector, pod.Labels)
	}
	if want := []networkingv1.PolicyType{"Ingress", "Egress"}; !slices.Equal(policy.Spec.PolicyTypes, want) {
		t.Errorf("the policy is about %v; want %v", policy.Spec.PolicyTypes, want)
	}
	open := map[int32]bool{} // whether from anywhere
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			open[number(t, pod, *p.Port)] = len(rule.From) == 0
		}
	}
	if anywhere, ok := open[9443]; !ok || !anywhere {
		t.Error("the API server does not reach the webhooks")
	}
	if anywhere, ok := open[8443]; !ok || anywhere {
		t.Error("the metrics should be reached from some namespaces, not from all")
	}
	if len(open) != 2 {
		t.Errorf("the ports %v are open; want those of webhooks and metrics", open)
	}
	out := map[int32]bool{}
	for _, rule := range policy.Spec.Egress {
		if len(rule.Ports) == 0 {
			t.Error("a rule lets the manager reach everything")
		}
		for _, p := range rule.Ports {
			out[p.Port.IntVal] = true
		}
	}
	for _, port := range []int32{443, 6443, 53} {
		if !out[port] {
			t.Errorf("the manager does not reach port %d", port)
		}
	}
}

func TestTheManagerFitsThePodSecurityStandardRestricted(t *testing.T) {
	if level, forbidden := podsecurity.Level(manager(t).Spec.Template); level != "restricted" {
		t.Errorf("the manager's pod fits the level %s: %q", level, forbidden)
	}
}

// TestNobodyWhoEditsANamespaceChangesTheCluster finds what edpm-operators adds to the
// cluster's own roles: none of it may reach beyond a namespace, or write results.
func TestNobodyWhoEditsANamespaceChangesTheCluster(t *testing.T) {
	for _, dir := range []string{"default", "overlays/ocs"} {
		for _, r := range objects(t, dir) {
			if r.GetKind() != "ClusterRole" || r.GetLabels()["rbac.authorization.k8s.io/aggregate-to-edit"] == "" {
				continue
			}
			var role rbacv1.ClusterRole
			decode(t, r, &role)
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					if strings.Contains(resource, "/") || resource == "storageclusters" || resource == "*" {
						t.Errorf("%s: ClusterRole %s lets who edits a namespace write %s", dir, role.Name, resource)
					}
				}
			}
		}
	}
}

func TestTheServicesLeadToTheManager(t *testing.T) {
	pod := manager(t).Spec.Template
	for name, want := range map[string]int32{"edpm-operators-metrics": 8443, "edpm-operators-webhook-service": 9443} {
		var service corev1.Service
		built(t, "default", "Service", name, &service)
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("Service %s selects %v; the pods have %v", name, service.Spec.Selector, pod.Labels)
		}
		if got := number(t, pod, service.Spec.Ports[0].TargetPort); got != want {
			t.Errorf("Service %s leads to port %d; want %d", name, got, want)
		}
	}
}

// serviceMonitor is the part that is used of the kind of prometheus-operator.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port            string `json:"port"`
			Scheme          string `json:"scheme"`
			Path            string `json:"path"`
			BearerTokenFile string `json:"bearerTokenFile"`
			TLSConfig       struct {
				CA struct {
					Secret corev1.SecretKeySelector `json:"secret"`
				} `json:"ca"`
				ServerName string `json:"serverName"`
			} `json:"tlsConfig"`
		} `json:"endpoints"`
	} `json:"spec"`
}

func TestTheMonitorReadsTheMetrics(t *testing.T) {
	var monitor serviceMonitor
	built(t, "prometheus", "ServiceMonitor", "edpm-operators-manager", &monitor)
	var service, webhooks corev1.Service
	built(t, "default", "Service", "edpm-operators-metrics", &service)
	built(t, "default", "Service", "edpm-operators-webhook-service", &webhooks)
	var certificate corev1.Secret
	built(t, "default", "Secret", "edpm-operators-webhook-service-cert", &certificate)
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(service.Labels)) || selector.Matches(labels.Set(webhooks.Labels)) {
		t.Errorf("the monitor selects %v (%v); want Service %s only, with %v", monitor.Spec.Selector, err, service.Name, service.Labels)
	}
	if len(monitor.Spec.Endpoints) != 1 {
		t.Fatalf("there are %d endpoints; want 1", len(monitor.Spec.Endpoints))
	}
	e := monitor.Spec.Endpoints[0]
	if e.Port != service.Spec.Ports[0].Name || e.Scheme != "https" || e.Path != "/metrics" || e.BearerTokenFile == "" {
		t.Errorf("the endpoint is %+v; want https at port %s with a token", e, service.Spec.Ports[0].Name)
	}
	if ca := e.TLSConfig.CA.Secret; ca.Name != certificate.Name || ca.Key != "ca.crt" {
		t.Errorf("the authority is %+v; want ca.crt of %s", ca, certificate.Name)
	}
	if want := webhooks.Name + "." + webhooks.Namespace + ".svc"; e.TLSConfig.ServerName != want {
		t.Errorf("the server name is %q; the certificate is for %q", e.TLSConfig.ServerName, want)
	}
}

func TestTheDashboardIsFoundByGrafana(t *testing.T) {
	var dashboard corev1.ConfigMap
	built(t, "grafana", "ConfigMap", "edpm-operators-dashboard", &dashboard)
	if dashboard.Labels["grafana_dashboard"] != "1" || len(dashboard.Data["dashboard.json"]) == 0 {
		t.Errorf("the labels are %v and the dashboard has %d bytes", dashboard.Labels, len(dashboard.Data["dashboard.json"]))
	}
}

// TestSecretsByNamespaceGrantsNoMore : the overlay replaces the one binding by others
// of the same role and account.
func TestSecretsByNamespaceGrantsNoMore(t *testing.T) {
	secretsBinding := func(dir string) (found []string) {
		for _, r := range objects(t, dir) {
			if !strings.HasSuffix(r.GetKind(), "RoleBinding") {
				continue
			}
			var binding rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
			decode(t, r, &binding)
			if s := binding.Subjects[0]; binding.RoleRef.Name == "edpm-operators-manager-secrets-role" {
				found = append(found, strings.Join([]string{r.GetKind(), r.GetNamespace(), s.Kind, s.Namespace, s.Name}, " "))
			}
		}
		return found
	}
	account := "ServiceAccount edpm-operators-system edpm-operators-manager"
	if got := secretsBinding("default"); !slices.Equal(got, []string{"ClusterRoleBinding  " + account}) {
		t.Errorf("by default there is %q", got)
	}
	if got := secretsBinding("overlays/secrets-by-namespace"); !slices.Equal(got, []string{"RoleBinding openstack " + account}) {
		t.Errorf("in the overlay there is %q", got)
	}
}

// TestEveryFileIsUsed : a manifest that no kustomization names is never applied.
func TestEveryFileIsUsed(t *testing.T) {
	files, err := filepath.Glob("*/kustomization.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d kustomizations: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifests, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range manifests {
			if name := filepath.Base(m); name != "kustomization.yaml" && !bytes.Contains(text, []byte(name)) {
				t.Errorf("%s does not name %s", file, name)
			}
		}
	}
}
