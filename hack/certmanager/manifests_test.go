package certmanager

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

// definition returns a resource definition of cert-manager, as its module has it.
func definition(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", name))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// complaints are what the schema of a definition says of an object.
func complaints(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, text []byte) string {
	t.Helper()
	schema := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, schema, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		t.Fatal(err)
	}
	var obj map[string]any
	if err := yaml.Unmarshal(text, &obj); err != nil {
		t.Fatal(err)
	}
	if errs := validation.ValidateCustomResource(nil, obj, validator); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

func TestManifestsAreThoseOfCertManager(t *testing.T) {
	text, err := os.ReadFile("../../config/overlays/cert-manager/certificate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	issuer, certificate, found := bytes.Cut(text, []byte("\n---\n"))
	if !found {
		t.Fatal("there should be an Issuer and a Certificate")
	}
	i, c := &certmanagerv1.Issuer{}, &certmanagerv1.Certificate{}
	if err := yaml.UnmarshalStrict(issuer, i); err != nil {
		t.Errorf("the Issuer: %v", err)
	}
	if err := yaml.UnmarshalStrict(certificate, c); err != nil {
		t.Errorf("the Certificate: %v", err)
	}
	if i.GroupVersionKind() != certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.IssuerKind) || i.Spec.SelfSigned == nil {
		t.Errorf("the Issuer is %+v", i)
	}
	if c.GroupVersionKind() != certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.CertificateKind) || c.Spec.IssuerRef.Name != i.Name || c.Spec.IssuerRef.Kind != i.Kind || c.Namespace != i.Namespace {
		t.Errorf("the Certificate is %+v; want one of the Issuer", c)
	}
	for name, text := range map[string][]byte{"cert-manager.io_issuers.yaml": issuer, "cert-manager.io_certificates.yaml": certificate} {
		if says := complaints(t, definition(t, name), text); says != "" {
			t.Errorf("%s says %s", name, says)
		}
	}
	wrong := bytes.Replace(certificate, []byte("rotationPolicy: Always"), []byte("rotationPolicy: Daily"), 1)
	if complaints(t, definition(t, "cert-manager.io_certificates.yaml"), wrong) == "" {
		t.Error("the schema says nothing of a wrong Certificate: it checks nothing")
	}
}
