package controllers

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

func TestEveryKindWithConditionsIsCounted(t *testing.T) {
	files, err := filepath.Glob(envtest.File("config", "crd", "bases", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatal(err)
		}
		status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		if _, ok := status.Properties["conditions"]; ok {
			want = append(want, crd.Spec.Names.Kind)
		}
	}
	scheme, err := envtest.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range known() {
		objects, err := counted(scheme, operator)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range objects {
			got = append(got, reflect.TypeOf(kind).Elem().Name())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the kinds that are counted differ from those that are defined (-defined +counted):\n%s", diff)
	}
}
