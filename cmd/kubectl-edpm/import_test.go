package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

// nodeSetText is a NodeSet with one field that has no counterpart.
const nodeSetText = `apiVersion: dataplane.openstack.org/v1beta1
kind: OpenStackDataPlaneNodeSet
metadata: {name: edpm, namespace: openstack}
spec:
  preProvisioned: true
  services: [configure-os, nova]
  nodeTemplate:
    ansible:
      ansibleVars: {edpm_sshd_allowed_ranges: [192.0.2.0/24]}
  nodes:
    edpm-0: {hostName: edpm-0.example.com, ansible: {ansibleHost: 192.0.2.10}}
`

// importOf runs the command without a cluster.
func importOf(input string, args ...string) (out, notes string, err error) {
	var o, n bytes.Buffer
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(input), Out: &o, ErrOut: &n})
	root.SetArgs(append([]string{"import"}, args...))
	err = root.ExecuteContext(context.Background())
	return o.String(), n.String(), err
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestImportFailsUntilLinesAreAcknowledged(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.txt")
	out, _, err := importOf(nodeSetText, "-f", "-", "--report", report)
	if err == nil || !strings.Contains(err.Error(), "without a counterpart: 1; read them") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(out, "kind: OpenStackDataPlaneRole") {
		t.Errorf("objects are not written: %s", out)
	}
	if _, _, err := importOf(nodeSetText, "-f", "-", "--report", report, "--acknowledge", report); err != nil {
		t.Errorf("with its report it fails: %v", err)
	}
	more := strings.Replace(nodeSetText, "[192.0.2.0/24]", "[192.0.2.0/24], edpm_selinux_mode: enforcing", 1)
	if _, _, err := importOf(more, "-f", "-", "--acknowledge", report); err == nil || !strings.Contains(err.Error(), "without a counterpart: 1; read them") {
		t.Errorf("for a line that is not in the report the error is %v", err)
	}
}

func TestImportReadsDirectoriesAndWritesFiles(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "in", "set.yaml"), nodeSetText)
	writeFile(t, filepath.Join(dir, "in", "below", "config.yml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nova-extra-config}\ndata: {25-nova-extra.conf: '[compute]'}\n")
	writeFile(t, filepath.Join(dir, "in", "README.md"), "no object")
	writeFile(t, filepath.Join(dir, "in", "secret.json"), `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"b": "hunter2"}}`)
	output := filepath.Join(dir, "out")
	out, notes, _ := importOf("", "-f", filepath.Join(dir, "in"), "--output", output)
	files, err := filepath.Glob(filepath.Join(output, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
		text, err := os.ReadFile(file)
		if err != nil || yaml.Unmarshal(text, &map[string]any{}) != nil || bytes.Contains(text, []byte("hunter2")) {
			t.Errorf("%s is %s (%v)", file, text, err)
		}
	}
	if want := "000-openstackdataplanerole-edpm.yaml 001-novaexternalcompute-edpm-0.yaml 002-openstackdataplanenode-edpm-0.yaml"; strings.Join(names, " ") != want {
		t.Errorf("the files are %q; want %q", names, want)
	}
	if out != "" || !strings.Contains(notes, filepath.Join("below", "config.yml")+": ConfigMap/nova-extra-config: data[25-nova-extra.conf]: renamed: customServiceConfig\n") || strings.Contains(notes, "hunter2") {
		t.Errorf("it prints %q and %q", out, notes)
	}
	if _, _, err := importOf("", "-f", filepath.Join(dir, "in"), "--output", output); err == nil || !strings.Contains(err.Error(), "give an empty directory") {
		t.Errorf("where files exist the error is %v", err)
	}
}

func TestImportSaysWhatIsWrongWithItsArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"at least one of the flags in the group [filename from-cluster] is required": {},
		"[filename from-cluster] are set none of the others can be":                  {"-f", "-", "--from-cluster"},
		"--filename: ": {"-f", "/does/not/exist"},
		"--filename: standard input: document 1: is not a Kubernetes object": {"-f", "-"},
		"--acknowledge: ": {"-f", "-", "--acknowledge", "/does/not/exist"},
	} {
		if _, _, err := importOf("hunter2", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q the error is %v; want %q in it", args, err, want)
		}
	}
	if _, _, err := importOf("# nothing\n", "-f", "-"); err == nil || !strings.Contains(err.Error(), "the inputs have no OpenStackDataPlaneNodeSet") {
		t.Errorf("of nothing the error is %v", err)
	}
}

// The person can list the kinds of openstack-operator and get ConfigMaps: nothing else is asked of
// the cluster, neither a Secret nor a write.
func TestImportOnlyReadsTheCluster(t *testing.T) {
	env := shared.Env(t)
	k := newCluster(t)
	set := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(nodeSetText), &set.Object); err != nil {
		t.Fatal(err)
	}
	k.make(set)
	k.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "nova-extra-config"}, Data: map[string]string{"25-nova-extra.conf": "[compute]\ncpu_shared_set = 2\n"}})
	k.make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "importer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"dataplane.openstack.org"}, Resources: []string{"openstackdataplanenodesets", "openstackdataplaneservices", "openstackdataplanedeployments"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
	}})
	const account = "system:serviceaccount:openstack:importer"
	k.make(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "importer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "importer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: account}},
	})
	if err := env.WriteKubeconfig(k.kubeconfig, account); err != nil {
		t.Fatal(err)
	}
	out, err := k.run("", "import", "--from-cluster")
	if err == nil || !strings.Contains(err.Error(), "without a counterpart: 1; read them") {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{"cpu_shared_set = 2", "edpm_nova_host: edpm-0.example.com", "cluster: OpenStackDataPlaneNodeSet/edpm: spec.services[0]: taken over: step configure-os"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in %s", want, out)
		}
	}
}
