package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// byDigest names every image that edpm-operators deploys by digest.
func byDigest() []string {
	at := "registry.example.org/image@sha256:" + strings.Repeat("0123", 16)
	env := []string{"IMG=" + at, "RUNNER_IMG=" + at}
	for _, name := range []string{"NOVA_COMPUTE", "NOVA_LIBVIRT", "NOVA_CONDUCTOR", "NOVA_API", "NOVA_SCHEDULER", "NOVA_NOVNC", "GLANCE_API",
		"OVN_CONTROLLER_AGENT", "EDPM_NEUTRON_METADATA_AGENT"} {
		env = append(env, "RELATED_IMAGE_"+name+"_IMAGE_URL_DEFAULT="+at)
	}
	return env
}

// output runs a script of the repository.
func output(t *testing.T, env []string, script string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), script, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = "../..", append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", script, args, err)
	}
	return out
}

func loose(t *testing.T, text []byte) []string {
	t.Helper()
	found, err := byTag(text)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestWhatIsDeployedCanBePinned(t *testing.T) {
	if found := loose(t, output(t, byDigest(), "hack/deploy.sh", "render")); len(found) > 0 {
		t.Errorf("with all digests given these are not pinned: %q", found)
	}
	found := loose(t, output(t, byDigest()[:1], "hack/deploy.sh", "render"))
	if len(found) != 11 || !strings.Contains(found[0], "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT is empty") {
		t.Errorf("without digests of the other images these are not pinned: %q; want the eleven variables", found)
	}
}

func TestABundleCanBePinned(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	dir := filepath.Join(t.TempDir(), "bundle")
	output(t, byDigest(), "hack/bundle.sh", "bundle", dir)
	csv, err := os.ReadFile(filepath.Join(dir, "manifests", "edpm-operators.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if found := loose(t, csv); len(found) > 0 {
		t.Errorf("with all digests given these are not pinned: %q", found)
	}
}
