package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestOptions(t *testing.T) {
	good := options{operators: "nova", pkg: "p", channel: "c", version: "0.2.0", replaces: "0.1.0", image: "i"}
	tests := map[string]struct {
		change func(*options)
		want   string
	}{
		"a version that replaces an older one is in order":    {func(*options) {}, ""},
		"the first version replaces none":                     {func(o *options) { o.replaces = "" }, ""},
		"a version is semantic":                               {func(o *options) { o.version, o.replaces = "v1", "" }, `-version "v1"`},
		"a version cannot replace itself":                     {func(o *options) { o.replaces = "0.2.0" }, `-replaces "0.2.0": give a version before 0.2.0, or none`},
		"a version cannot replace what is no version":         {func(o *options) { o.replaces = "before" }, `-replaces "before"`},
		"a package has a name that others can be made of":     {func(o *options) { o.pkg = strings.Repeat("p", 48) }, "give a name of at most 47"},
		"a bundle without an image of the manager is useless": {func(o *options) { o.image = "" }, "-image is empty"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := good
			tt.change(&o)
			mention(t, o.check(), tt.want)
		})
	}
}

// mention fails unless the error has the words, or is nil for none.
func mention(t *testing.T, err error, words string) {
	t.Helper()
	if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
		t.Errorf("want an error with %q, got %v", words, err)
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"NovaExternalCompute":    "Nova External Compute",
		"OpenStackDataPlaneNode": "OpenStack Data Plane Node",
		"OpenStackAnsibleEE":     "OpenStack Ansible EE",
		"GlanceAPI":              "Glance API",
		"glanceAPIs":             "Glance APIs",
		"customServiceConfig":    "Custom Service Config",
		"keystoneAuthURL":        "Keystone Auth URL",
		"sshKeySecretName":       "SSH Key Secret Name",
		"apiName":                "API Name",
		"apisSummary":            "APIs Summary",
		"replicas":               "Replicas",
	} {
		if got := words(name); got != want {
			t.Errorf("words(%s) = %q, want %q", name, got, want)
		}
	}
}

func TestControls(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	tests := map[string]struct {
		field apiextensionsv1.JSONSchemaProps
		want  []string
	}{
		"deploy":                     {apiextensionsv1.JSONSchemaProps{Type: "boolean"}, []string{ui + "booleanSwitch"}},
		"replicas":                   {apiextensionsv1.JSONSchemaProps{Type: "integer"}, []string{ui + "podCount"}},
		"backoffLimit":               {apiextensionsv1.JSONSchemaProps{Type: "integer"}, []string{ui + "number"}},
		"secret":                     {text, []string{kube + "Secret"}},
		"ansibleSSHPrivateKeySecret": {text, []string{kube + "Secret"}},
		"sshKeySecretName":           {text, []string{kube + "Secret"}},
		"inventoryConfigMapName":     {text, []string{kube + "ConfigMap"}},
		"storageClass":               {text, []string{kube + "StorageClass"}},
		"cellName":                   {text, []string{ui + "text"}},
		"enforcement": {apiextensionsv1.JSONSchemaProps{Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"Warn"`)}, {Raw: []byte(`"Hold"`)}}},
			[]string{ui + "select:Warn", ui + "select:Hold"}},
		"resources": {apiextensionsv1.JSONSchemaProps{Type: "object"}, []string{ui + "resourceRequirements"}},
		"nodes":     {apiextensionsv1.JSONSchemaProps{Type: "object"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, specControls(name, tt.field)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRightsForCertificatesAreLeftOut(t *testing.T) {
	kept := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"update"}},
	}
	all := append([]rbacv1.PolicyRule{
		{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"webhook-service-cert"}, Verbs: []string{"update"}},
	}, kept...)
	if diff := cmp.Diff(kept, withoutCertificates(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWebhookIsThatOfTheOperatorInItsPath(t *testing.T) {
	var hooks []admissionv1.ValidatingWebhook
	for _, path := range []string{"/validate-nova-cell-openstackdataplanenode", "/validate-dataplane-openstack-org-v1beta1-openstackdataplane", "/validate-core-openstack-org-v1beta1-openstackcontrolplane"} {
		hooks = append(hooks, admissionv1.ValidatingWebhook{Name: path, ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Path: &path}}})
	}
	var names []string
	for _, hook := range keep(hooks, []string{"nova", "core"}, func(w admissionv1.ValidatingWebhook) admissionv1.WebhookClientConfig { return w.ClientConfig }) {
		names = append(names, hook.Name)
	}
	if diff := cmp.Diff([]string{"/validate-nova-cell-openstackdataplanenode", "/validate-core-openstack-org-v1beta1-openstackcontrolplane"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRelatedImagesAreThoseThatTheManagerUses(t *testing.T) {
	manager := corev1.Container{Image: "m", Env: []corev1.EnvVar{
		{Name: "POD_NAMESPACE", Value: "x"}, {Name: "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT"}, {Name: "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT", Value: "c"},
	}}
	want := []v1alpha1.RelatedImage{{Name: "manager", Image: "m"}, {Name: "nova-compute", Image: "c"}}
	if diff := cmp.Diff(want, relatedImages(manager)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// crdText has a property that is called description, which is no description.
const crdText = `{"kind": "CustomResourceDefinition", "metadata": {"name": "x"}, "spec": {"versions": [{"schema": {"openAPIV3Schema": {
	"description": "Kind", "properties": {
		"description": {"description": "long", "type": "string"},
		"list": {"items": {"description": "long", "anyOf": [{"description": "long"}]}},
		"map": {"additionalProperties": {"description": "long"}}
}}}}]}}`

const crdTrimmed = `{"kind": "CustomResourceDefinition", "metadata": {"name": "x"}, "spec": {"versions": [{"schema": {"openAPIV3Schema": {
	"description": "Kind", "properties": {
		"description": {"type": "string"},
		"list": {"items": {"anyOf": [{}]}},
		"map": {"additionalProperties": {}}
}}}}]}}`

func TestDescriptionsGoOnlyWhenTheBundleIsTooLarge(t *testing.T) {
	whole, err := inlineSize(fromJSON(t, crdText))
	if err != nil {
		t.Fatal(err)
	}
	small, err := inlineSize(fromJSON(t, crdTrimmed))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		limit   int
		want    string
		trimmed bool
		refused string
	}{
		"what fits stays whole":                       {whole, crdText, false, ""},
		"what does not fit loses its descriptions":    {whole - 1, crdTrimmed, true, ""},
		"what does not fit without them is no bundle": {small - 1, crdTrimmed, true, "make one of fewer operators"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects := fromJSON(t, crdText)
			trimmed, err := fit(objects, tt.limit)
			mention(t, err, tt.refused)
			if trimmed != tt.trimmed {
				t.Errorf("trimmed = %t, want %t", trimmed, tt.trimmed)
			}
			if diff := cmp.Diff(fromJSON(t, tt.want), objects); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func fromJSON(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", ` + strings.TrimPrefix(text, "{"))); err != nil {
		t.Fatal(err)
	}
	return []*unstructured.Unstructured{obj}
}
