package mustgather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// secret is the text that must not be anywhere.
const secret = "hunter2-sentinel"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func objects() []client.Object {
	run := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "run-1", Labels: map[string]string{"openstackansibleee_cr": "run"}}}
	run.Spec.Containers = []corev1.Container{{Name: "openstackansibleee", Env: []corev1.EnvVar{{Name: "ANSIBLE_BECOME_PASSWORD", Value: "spoken words"}}}}
	run.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "openstackansibleee"}}
	manager := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "edpm-operators-system", Name: "manager-1", Labels: managerLabels}}
	manager.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", RestartCount: 1}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "other"}}
	return []client.Object{
		run, manager, other,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "master-0"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "osp-secret"}, Data: map[string][]byte{"NovaPassword": []byte(secret), "empty": []byte("\n")}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "cm", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "x"}}, Data: map[string]string{"text": "by chance " + secret}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "e"}, Type: "Warning", Reason: "Failed", Message: "wrong: " + secret, LastTimestamp: metav1.NewTime(now)},
	}
}

// collect returns the files by name.
func collect(t *testing.T, funcs interceptor.Funcs) (map[string]string, []string) {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects()...).WithInterceptorFuncs(funcs).Build()
	dir := t.TempDir()
	problems, err := Collect(context.Background(), c, Dir(dir), Options{
		Namespaces: []string{"openstack"}, Now: now,
		Kinds: []Kind{{corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps"}, {schema.GroupVersionKind{Group: "", Version: "v1", Kind: "ConfigMap"}, "again"}},
		Logs: func(_ context.Context, pod *corev1.Pod, container string, previous bool) (io.ReadCloser, error) {
			if previous {
				return nil, errors.New("it is gone")
			}
			return io.NopCloser(strings.NewReader("log of " + pod.Name + "/" + container + ": " + secret + "\npassword=blank\n")), nil
		},
		Summaries: map[string]string{"status.txt": "all is well with " + secret},
	})
	if err != nil {
		t.Fatal(err)
	}
	return files(t, dir), problems
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCollect(t *testing.T) {
	found, problems := collect(t, interceptor.Funcs{})
	for name, want := range map[string]string{
		"README.txt":                                                  "No value of a Secret is in it",
		"secrets.txt":                                                 "openstack/osp-secret \n  NovaPassword has a value\n  empty is empty",
		"cluster/nodes/master-0.yaml":                                 "name: master-0",
		"namespaces/openstack/pods/run-1.yaml":                        "ANSIBLE_BECOME_PASSWORD",
		"namespaces/openstack/configmaps/cm.yaml":                     "by chance *****",
		"namespaces/openstack/events.txt":                             "2026-03-01T12:00:00Z Warning Failed /: wrong: *****",
		"namespaces/openstack/logs/run-1/openstackansibleee.log":      "log of run-1/openstackansibleee: *****",
		"namespaces/edpm-operators-system/logs/manager-1/manager.log": "log of manager-1/manager",
		"namespaces/edpm-operators-system/pods/manager-1.yaml":        "name: manager-1",
		"status.txt": "all is well",
	} {
		if !strings.Contains(found[name], want) {
			t.Errorf("%s does not say %q but %q", name, want, found[name])
		}
	}
	for name, text := range found {
		for _, hidden := range []string{secret, "spoken words", "blank", "last-applied", "managedFields"} {
			if strings.Contains(text, hidden) {
				t.Errorf("%s has %q:\n%s", name, hidden, text)
			}
		}
		if strings.Contains(name, "elsewhere") {
			t.Errorf("%s is of another namespace", name)
		}
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "it is gone") || !strings.Contains(found["README.txt"], problems[0]) {
		t.Errorf("problems are %v", problems)
	}
}

func TestCollectSaysWhatItMayNotRead(t *testing.T) {
	found, problems := collect(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1.SecretList); ok {
			return errors.New("forbidden")
		}
		return c.List(ctx, list, opts...)
	}})
	if len(problems) != 3 || !strings.Contains(found["README.txt"], "Secrets of namespace openstack cannot be read") {
		t.Errorf("problems are %v", problems)
	}
	if text := found["namespaces/openstack/logs/run-1/openstackansibleee.log"]; strings.Contains(text, "blank") {
		t.Errorf("what looks like a secret is not masked: %s", text)
	}
}

func TestCollectFailsWhenItCannotWrite(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Collect(context.Background(), c, Dir(file), Options{Now: now}); err == nil {
		t.Error("there is no error")
	}
}

func TestTar(t *testing.T) {
	var packed bytes.Buffer
	archive := NewTar(&packed, "gathered", now)
	for name, text := range map[string]string{"a/b.txt": "one", "../c.txt": "two"} {
		if err := archive.Add(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for r := tar.NewReader(unpacked); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || header.Mode != 0o600 {
			t.Fatalf("%+v: %v", header, err)
		}
		found[header.Name] = string(text)
	}
	if len(found) != 2 || found["gathered/a/b.txt"] != "one" || found["gathered/c.txt"] != "two" {
		t.Errorf("it has %v", found)
	}
}
