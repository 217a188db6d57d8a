package inputs

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func fromConfigMap(name, key string, optional bool) corev1.EnvVar {
	ref := &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
	if optional {
		ref.Optional = ptr.To(true)
	}
	return corev1.EnvVar{Name: "E", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}}
}

func TestEnvNames(t *testing.T) {
	secret := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}
	got := EnvNames([]corev1.EnvVar{
		{Name: "PLAIN", Value: "v"}, fromConfigMap("c", "k", false), fromConfigMap("c", "l", true),
		{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: secret}},
		{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
	})
	if diff := cmp.Diff([]string{"ConfigMap/c", "Secret/s"}, got); diff != "" {
		t.Errorf("the names differ (-want +got):\n%s", diff)
	}
}

func TestDigestsOfAnEnvironment(t *testing.T) {
	configMap := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data}
	}
	c := fake.NewClientBuilder().WithObjects(
		configMap("c", map[string]string{"k": "1", "empty": ""}), configMap("all", map[string]string{"A": "1", "B": "2"}),
	).Build()
	r := &Reader{configMaps: newConfigMaps(c, c)}
	of := func(key, value string) string { return Digest(map[string][]byte{key: []byte(value)}) }
	for name, c := range map[string]struct {
		env     []corev1.EnvVar
		envFrom string
		want    map[string]string
		missing *MissingError
	}{
		"no references":             {env: []corev1.EnvVar{{Name: "A", Value: "v"}}},
		"a value":                   {env: []corev1.EnvVar{fromConfigMap("c", "k", false)}, want: map[string]string{"ConfigMap/c/k": of("k", "1")}},
		"an empty value":            {env: []corev1.EnvVar{fromConfigMap("c", "empty", false)}, want: map[string]string{"ConfigMap/c/empty": of("empty", "")}},
		"a missing key":             {env: []corev1.EnvVar{fromConfigMap("c", "x", false)}, missing: &MissingError{"ConfigMap", "c", "x"}},
		"a missing ConfigMap":       {env: []corev1.EnvVar{fromConfigMap("x", "k", false)}, missing: &MissingError{"ConfigMap", "x", ""}},
		"an optional key":           {env: []corev1.EnvVar{fromConfigMap("c", "x", true)}},
		"an optional ConfigMap":     {env: []corev1.EnvVar{fromConfigMap("x", "k", true)}},
		"all entries":               {envFrom: "all", want: map[string]string{"ConfigMap/all": Digest(map[string][]byte{"A": []byte("1"), "B": []byte("2")})}},
		"all entries of no such":    {envFrom: "x"},
		"an optional one that is":   {env: []corev1.EnvVar{fromConfigMap("c", "k", true)}, want: map[string]string{"ConfigMap/c/k": of("k", "1")}},
		"one that is, one that not": {env: []corev1.EnvVar{fromConfigMap("c", "k", false), fromConfigMap("c", "x", false)}, missing: &MissingError{"ConfigMap", "c", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.EnvDigests(context.Background(), "ns", c.env, c.envFrom)
			missing := (*MissingError)(nil)
			if errors.As(err, &missing) != (c.missing != nil) || c.missing != nil && *missing != *c.missing || c.missing == nil && err != nil {
				t.Errorf("the error is %v; want %v", err, c.missing)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the digests differ (-want +got):\n%s", diff)
			}
		})
	}
}
