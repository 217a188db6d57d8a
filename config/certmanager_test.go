package config_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const certManager = "overlays/cert-manager"

// certificate is the part that matters here of the kind of cert-manager, of which
// hack/certmanager checks the whole.
type certificate struct {
	metav1.ObjectMeta `json:"metadata"`
	Kind              string         `json:"kind"`
	APIVersion        string         `json:"apiVersion"`
	Spec              map[string]any `json:"spec"`
}

func TestCertManagerMakesTheCertificateThatIsMounted(t *testing.T) {
	c := all[certificate](t, certManager, "Certificate")[0]
	secret, _ := c.Spec["secretName"].(string)
	names, _ := c.Spec["dnsNames"].([]any)
	d := all[appsv1.Deployment](t, certManager, "Deployment")[0]
	pod := d.Spec.Template.Spec
	if pod.Volumes[0].Secret.SecretName != secret {
		t.Errorf("Secret %s is mounted; the certificate is in %s", pod.Volumes[0].Secret.SecretName, secret)
	}
	mount := pod.Containers[0].VolumeMounts[0]
	if mount.Name != pod.Volumes[0].Name || argument(d, "--webhook-cert-dir") != mount.MountPath {
		t.Errorf("the manager reads %s; mounted is %+v", argument(d, "--webhook-cert-dir"), mount)
	}
	if argument(d, "--webhook-service") != "" || argument(d, "--webhook-configurations") != "" {
		t.Errorf("the manager would make certificates: %v", pod.Containers[0].Args)
	}
	for _, s := range all[metav1.PartialObjectMetadata](t, certManager, "Secret") {
		t.Errorf("Secret %s is there, which cert-manager is to make", s.Name)
	}
	for name, w := range hooks(t, certManager) {
		if want := w.Service + "." + w.Namespace + ".svc"; !slices.Contains(names, any(want)) {
			t.Errorf("%s is called by the name %s; the certificate is for %v", name, want, names)
		}
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, config := range all[struct {
			metav1.PartialObjectMetadata `json:",inline"`
			Webhooks                     []any `json:"webhooks"`
		}](t, certManager, kind) {
			if got, want := config.Annotations["cert-manager.io/inject-ca-from"], c.Namespace+"/"+c.Name; got != want {
				t.Errorf("%s takes the authority from %q; want %s", kind, got, want)
			}
		}
	}
}

func TestWithCertManagerTheManagerConfiguresNothing(t *testing.T) {
	for _, kind := range []string{"ClusterRole", "Role"} {
		find := func(dir string) []rbacv1.PolicyRule {
			roles := all[rbacv1.ClusterRole](t, dir, kind)
			i := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Name == "edpm-operators-manager-role" })
			return roles[i].Rules
		}
		// As in hack/bundle: what else there is stays.
		want := slices.DeleteFunc(find("default"), func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, "admissionregistration.k8s.io") || kind == "Role" && slices.Contains(r.Resources, "secrets")
		})
		if got := find(certManager); !slices.EqualFunc(got, want, func(a, b rbacv1.PolicyRule) bool { return a.String() == b.String() }) {
			t.Errorf("the rules of the %s are %v; want %v", kind, got, want)
		}
	}
}
