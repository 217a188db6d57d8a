package validate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// What a user of a namespace may try, see docs/security.md.

func textVars(text string) *apiextensionsv1.JSON {
	raw, _ := json.Marshal(text)
	return &apiextensionsv1.JSON{Raw: raw}
}

func TestNobodyTurnsOffThatHostKeysAreChecked(t *testing.T) {
	for name, value := range map[string]string{
		"ANSIBLE_HOST_KEY_CHECKING": "False", "ANSIBLE_SSH_HOST_KEY_CHECKING": " no ",
		"ANSIBLE_SSH_ARGS":        "-C -o StrictHostKeyChecking=no",
		"ANSIBLE_SSH_COMMON_ARGS": "-o userknownhostsfile=/dev/null", "ANSIBLE_SSH_EXTRA_ARGS": "-o GlobalKnownHostsFile=/tmp/a",
	} {
		got := messages(validate.Env(at, []corev1.EnvVar{{Name: name, Value: value}}))
		if len(got) != 1 || !strings.HasPrefix(got[0], "[0].value: ") || !strings.Contains(got[0], "annotation edpm.openstack.org/host-key") {
			t.Errorf("%s=%s in the environment: want an error with field and remedy, got %q", name, value, got)
		}
		mapping, _ := json.Marshal(map[string]string{strings.ToLower(name): value})
		for form, vars := range map[string]*apiextensionsv1.JSON{"mapping": {Raw: mapping}, "text": textVars(string(mapping))} {
			got := messages(validate.AnsibleVars(at, vars))
			if len(got) != 1 || !strings.HasPrefix(got[0], "["+strings.ToLower(name)+"]: ") {
				t.Errorf("%s in ansibleVars as %s: want an error with the name of the variable, got %q", name, form, got)
			}
		}
	}
	harmless := []corev1.EnvVar{
		{Name: "ANSIBLE_HOST_KEY_CHECKING", Value: "True"}, {Name: "ANSIBLE_VERBOSITY", Value: "0"},
		{Name: "ANSIBLE_SSH_ARGS", Value: "-C -o ControlMaster=auto -o ControlPersist=80s"},
	}
	if got := validate.Env(at, harmless); len(got) > 0 {
		t.Errorf("want no error, got %v", messages(got))
	}
	jump := &apiextensionsv1.JSON{Raw: []byte(`{"ansible_ssh_common_args": "-o ProxyJump=bastion"}`)}
	if got := validate.AnsibleVars(at, jump); len(got) > 0 {
		t.Errorf("a jump host is in order, got %v", messages(got))
	}
}

func TestTagsOfVariablesAreNotLostInSilence(t *testing.T) {
	for _, text := range []string{
		"a: !!python/object/apply:os.system [id]", "a:\n  b: [1, !vault '$ANSIBLE_VAULT;1.1;AES256 hunter2']", "a: !unsafe '{{ b }}'", "!own {a: 1}",
	} {
		got := messages(validate.AnsibleVars(at, textVars(text)))
		if len(got) != 1 || !strings.Contains(got[0], "would get lost") || strings.Contains(got[0], "hunter2") {
			t.Errorf("%q: want an error that names the tag and no value, got %q", text, got)
		}
	}
	for _, text := range []string{"a: !!str 1", "a: &x {b: 1}\nc: *x", "a: &x {b: 1}\nc: {<<: *x}", "a: 2026-11-21", ""} {
		if got := validate.AnsibleVars(at, textVars(text)); len(got) > 0 {
			t.Errorf("%q: want no error, got %v", text, messages(got))
		}
	}
}

func TestASmallTextDoesNotBecomeALargeOne(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i, names := 1, "abcdefghijklmnop"; i < len(names); i++ {
		before := "*" + string(names[i-1]) + "0"
		bomb += string(names[i]) + "0: &" + string(names[i]) + "0 [" + strings.Repeat(before+", ", 9) + before + "]\n"
	}
	start := time.Now()
	if got := messages(validate.AnsibleVars(at, textVars(bomb))); len(got) == 0 || !strings.Contains(got[0], "excessive aliasing") {
		t.Errorf("want the aliases refused, got %q", got)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v to find out", took)
	}
}

func TestLongTextsAreRefusedWithWhatIsTooLongAndHowLongItMayBe(t *testing.T) {
	long := strings.Repeat("x", 900<<10)
	for name, got := range map[string]field.ErrorList{
		"a variable of the environment": validate.Env(at, []corev1.EnvVar{{Name: "A", Value: long}}),
		"a text for the environment":    validate.EnvText(at, long),
		"variables":                     validate.AnsibleVars(at, &apiextensionsv1.JSON{Raw: []byte(`{"a": "` + long + `"}`)}),
		"variables as text":             validate.AnsibleVars(at, textVars("a: "+long)),
	} {
		text := strings.Join(messages(got), "\n")
		if len(got) != 1 || !strings.Contains(text, `"900 KiB"`) && !strings.Contains(text, `"901 KiB"`) || !strings.Contains(text, "write at most") || len(text) > 400 {
			t.Errorf("%s: want a short error with size and limit, got %.400q", name, text)
		}
	}
	if got := validate.EnvText(at, long[:validate.MaxEnvBytes]); len(got) > 0 {
		t.Errorf("what just fits is in order, got %v", messages(got))
	}
}

func TestProjectedVolumesHaveOneSourceEachAndNoCredentials(t *testing.T) {
	projected := func(sources ...ansibleeev1.ExtraProjectionSource) []ansibleeev1.ExtraMount {
		return []ansibleeev1.ExtraMount{{Volumes: []ansibleeev1.ExtraVolume{{Name: "v", Projected: &ansibleeev1.ExtraProjection{Sources: sources}}}}}
	}
	secret := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}
	config := &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "../a"}}
	for name, tt := range map[string]struct {
		source ansibleeev1.ExtraProjectionSource
		want   string
	}{
		// What is left of a serviceAccountToken once the API server has dropped it.
		"nothing":             {ansibleeev1.ExtraProjectionSource{}, "a runner gets no token"},
		"two":                 {ansibleeev1.ExtraProjectionSource{Secret: secret, DownwardAPI: &corev1.DownwardAPIProjection{}}, "exactly one"},
		"a name that is none": {ansibleeev1.ExtraProjectionSource{ConfigMap: config}, "same namespace"},
		"no name":             {ansibleeev1.ExtraProjectionSource{Secret: &corev1.SecretProjection{}}, "is empty"},
	} {
		got := messages(validate.ExtraMounts(at, projected(tt.source)))
		if len(got) != 1 || !strings.HasPrefix(got[0], "[0].volumes[0].projected.sources[0]") || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s: want an error with %q, got %q", name, tt.want, got)
		}
	}
	if got := validate.ExtraMounts(at, projected(ansibleeev1.ExtraProjectionSource{Secret: secret})); len(got) > 0 {
		t.Errorf("a Secret is in order, got %v", messages(got))
	}
}

func TestMountsDoNotHideWhatTheRunRestsOn(t *testing.T) {
	for _, path := range []string{
		"/", "/runner", "/runner/", "/runner/ssh", "/runner/ssh/ssh-privatekey", "/runner/config", "/runner/config/known_hosts", "/runner/.known_hosts",
		"/runner/inventory", "/runner/inventory/hosts.yaml", "/runner/artifacts/x", "/tmp", "/dev", "/dev/termination-log",
		"/etc/../runner/ssh", "/runner//ssh", "/runner/./ssh", "runner/ssh", "/a:b", "/a\nb", "..", "/a/..",
	} {
		mount := ansibleeev1.ExtraMount{
			Volumes: []ansibleeev1.ExtraVolume{{Name: "v", EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			Mounts:  []corev1.VolumeMount{{Name: "v", MountPath: path}},
		}
		if got := validate.ExtraMounts(at, []ansibleeev1.ExtraMount{mount}); len(got) == 0 {
			t.Errorf("a mount at %q should be refused", path)
		}
	}
	for _, subPath := range []string{"..", "../a", "a/../../b", "/etc/passwd", "./a", "-a", "a\x00b"} {
		mount := ansibleeev1.ExtraMount{
			Volumes: []ansibleeev1.ExtraVolume{{Name: "v", EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			Mounts:  []corev1.VolumeMount{{Name: "v", MountPath: "/mnt", SubPath: subPath}},
		}
		if got := validate.ExtraMounts(at, []ansibleeev1.ExtraMount{mount}); len(got) == 0 {
			t.Errorf("the sub-path %q should be refused", subPath)
		}
	}
}

// FuzzTextsThatMayHoldSecrets looks for texts that crash the rules, and for errors
// that tell more of a text than where it is wrong.
func FuzzTextsThatMayHoldSecrets(f *testing.F) {
	for _, seed := range []string{"a: 1", "- hosts: all", "a: [hunter2", "? hunter2\n: &a *a", "!!binary hunter2", "a: *hunter2", "%TAG ! hunter2", "\x00", "a:\n\thunter2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text += "\nhunter2hunter2: ["
		for _, errs := range []field.ErrorList{
			validate.AnsibleVars(at, textVars(text)), validate.Inventory(at, text), validate.PlaybookText(at, text),
		} {
			if message := strings.Join(messages(errs), "\n"); strings.Contains(message, "hunter2hunter2") {
				t.Errorf("%q: the error tells of the text: %s", text, message)
			}
		}
	})
}
