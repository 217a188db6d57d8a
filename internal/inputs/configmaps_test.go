package inputs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// counting counts what is read by name, past the cache.
type counting struct {
	client.Reader
	reads []string
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	c.reads = append(c.reads, key.Name)
	return c.Reader.Get(ctx, key, obj, opts...)
}

func configMapOf(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Data:       map[string]string{"t": value}, BinaryData: map[string][]byte{"b": {0, 1}},
	}
}

// reader is a Reader of a cluster, and what it reads past the cache.
func reader(objects ...client.Object) (*Reader, client.Client, *counting) {
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	live := &counting{Reader: c}
	return &Reader{configMaps: newConfigMaps(c, live)}, c, live
}

func TestAConfigMapIsReadOncePerVersion(t *testing.T) {
	r, c, live := reader(configMapOf("c", "one"))
	read := func(want string) {
		t.Helper()
		for range 3 {
			got, err := r.ConfigMap(t.Context(), "ns", "c")
			if diff := cmp.Diff(map[string][]byte{"t": []byte(want), "b": {0, 1}}, got); err != nil || diff != "" {
				t.Errorf("%v; the data differ (-want +got):\n%s", err, diff)
			}
		}
	}
	read("one")
	changed := configMapOf("c", "two")
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	read("two")
	if len(live.reads) != 2 {
		t.Errorf("it is read %d times; want once for each of two versions", len(live.reads))
	}
}

func TestAMissingConfigMapCostsNoRequest(t *testing.T) {
	r, c, live := reader(configMapOf("c", "one"))
	missing := (*MissingError)(nil)
	if _, err := r.ConfigMap(t.Context(), "other", "c"); !errors.As(err, &missing) || !strings.Contains(err.Error(), `ConfigMap "c" does not exist`) {
		t.Errorf("the error in another namespace is %v", err)
	}
	if len(live.reads) > 0 {
		t.Errorf("%v are read", live.reads)
	}
	if _, err := r.ConfigMap(t.Context(), "ns", "c"); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), configMapOf("c", "")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ConfigMap(t.Context(), "ns", "c"); !errors.As(err, &missing) || len(r.configMaps.kept) > 0 {
		t.Errorf("after it was deleted the error is %v and %d are kept", err, len(r.configMaps.kept))
	}
}

// TestContentIsKeptAsLongAsThereIsRoom : whoever names many large ConfigMaps costs
// the manager requests, not memory.
func TestContentIsKeptAsLongAsThereIsRoom(t *testing.T) {
	var objects []client.Object
	large := strings.Repeat("x", 900<<10)
	for i := range 60 {
		objects = append(objects, configMapOf(fmt.Sprint("c", i), large))
	}
	r, _, live := reader(objects...)
	for range 2 {
		for i := range 60 {
			if _, err := r.ConfigMap(t.Context(), "ns", fmt.Sprint("c", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := 0
	for _, c := range r.configMaps.kept {
		size += c.size
	}
	if size != r.configMaps.size || size > maxKept || size < maxKept-2*(900<<10)-4096 {
		t.Errorf("%d bytes are kept and %d counted; at most %d may be", size, r.configMaps.size, maxKept)
	}
	if len(live.reads) <= 60 {
		t.Errorf("%d reads: all are kept", len(live.reads))
	}
}

func TestTheClientReadsConfigMapsByName(t *testing.T) {
	r, c, live := reader(configMapOf("c", "one"), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}})
	through := r.Client(c)
	got := &corev1.ConfigMap{}
	if err := through.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, got); err != nil || got.Data["t"] != "one" || got.UID != "" && got.Namespace != "ns" {
		t.Errorf("it is %+v, %v", got, err)
	}
	if diff := cmp.Diff(configMapOf("c", "one"), got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")); diff != "" {
		t.Errorf("the object differs (-want +got):\n%s", diff)
	}
	got.Data["t"], got.BinaryData["b"][0] = "changed by the caller", 7
	if data, err := r.ConfigMap(t.Context(), "ns", "c"); err != nil || string(data["t"]) != "one" || data["b"][0] != 0 {
		t.Errorf("a caller has changed what is kept to %q, %v", data, err)
	}
	if err := through.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "none"}, got); !apierrors.IsNotFound(err) {
		t.Errorf("the error of a missing one is %v", err)
	}
	if err := through.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "s"}, &corev1.Service{}); err != nil {
		t.Errorf("another kind: %v", err)
	}
	if diff := cmp.Diff([]string{"c"}, live.reads); diff != "" {
		t.Errorf("what is read differs (-want +got):\n%s", diff)
	}
}

func TestAConfigMapThatWasAppliedIsNotRead(t *testing.T) {
	r, c, live := reader()
	through := r.Client(c)
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": "c"}, "data": map[string]any{"t": "one"},
	}}
	if err := through.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("m")); err != nil {
		t.Fatal(err)
	}
	if data, err := r.ConfigMap(t.Context(), "ns", "c"); err != nil || string(data["t"]) != "one" || len(live.reads) > 0 {
		t.Errorf("it is %q, %v after reading %v; want it without a request", data, err, live.reads)
	}
	if err := c.Update(t.Context(), configMapOf("c", "two")); err != nil {
		t.Fatal(err)
	}
	if data, err := r.ConfigMap(t.Context(), "ns", "c"); err != nil || string(data["t"]) != "two" || len(live.reads) != 1 {
		t.Errorf("after a change it is %q, %v after reading %v; want it read once", data, err, live.reads)
	}
	other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "ns", "name": "s"}}}
	if err := through.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(other), client.FieldOwner("m")); err != nil || len(r.configMaps.kept) != 1 {
		t.Errorf("%d are kept after a Secret was applied, %v", len(r.configMaps.kept), err)
	}
}
