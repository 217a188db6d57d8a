package hook_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

// rules refuse every key of a ConfigMap that begins with "bad", and warn of
// every new one that begins with "odd".
var rules = hook.Rules[*corev1.ConfigMap]{
	Kind: schema.GroupKind{Kind: "ConfigMap"},
	Errors: func(m *corev1.ConfigMap) field.ErrorList {
		var errs field.ErrorList
		for key, value := range m.Data {
			if strings.HasPrefix(key, "bad") {
				errs = append(errs, field.Invalid(field.NewPath("data").Key(key), value, "call it good"))
			}
		}
		return errs
	},
	Warnings: func(_ context.Context, old, m *corev1.ConfigMap) []string {
		if _, odd := m.Data["odd"]; odd && old == nil {
			return []string{"odd"}
		}
		return nil
	},
}

func configMap(data ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{}}
	for _, key := range data {
		m.Data[key] = "v"
	}
	return m
}

func TestCreate(t *testing.T) {
	tests := map[string]struct {
		obj      *corev1.ConfigMap
		warnings []string
		refused  string
	}{
		"what is in order is accepted":     {configMap("good"), nil, ""},
		"what is odd comes with a warning": {configMap("odd"), []string{"odd"}, ""},
		"what is wrong is refused":         {configMap("bad", "odd"), nil, `ConfigMap "m" is invalid: data[bad]: Invalid value: "v": call it good`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			warnings, err := rules.ValidateCreate(t.Context(), tt.obj)
			verdict(t, err, tt.refused)
			if diff := cmp.Diff(tt.warnings, []string(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	leaving := configMap("bad")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	tests := map[string]struct {
		old, obj *corev1.ConfigMap
		refused  string
	}{
		"what becomes wrong is refused":                       {configMap(), configMap("bad"), `ConfigMap "m" is invalid: data[bad]: Invalid value: "v": call it good`},
		"what was wrong before does not hold up other fields": {configMap("bad"), configMap("bad", "good"), ""},
		"what is wrong in addition is refused alone":          {configMap("bad"), configMap("bad", "bad2"), `ConfigMap "m" is invalid: data[bad2]: Invalid value: "v": call it good`},
		"what is being deleted is let go":                     {configMap(), leaving, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := rules.ValidateUpdate(t.Context(), tt.old, tt.obj)
			verdict(t, err, tt.refused)
		})
	}
}

func TestDeleteIsAlwaysAllowed(t *testing.T) {
	_, err := rules.ValidateDelete(t.Context(), configMap("bad"))
	verdict(t, err, "")
}

func verdict(t *testing.T, err error, refused string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
		if !apierrors.IsInvalid(err) {
			t.Errorf("want an error that the API server words as invalid, got %T", err)
		}
	}
	if diff := cmp.Diff(refused, got); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
}
