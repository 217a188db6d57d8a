package validate_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/test/needs"
)

// What a user of a namespace may try, see docs/security.md.

func textVars(text string) *apiextensionsv1.JSON {
	raw, _ := json.Marshal(text)
	return &apiextensionsv1.JSON{Raw: raw}
}

const remedy = "annotation edpm.openstack.org/host-key"

// weakening are variables that change how hosts are reached, by what they try.
var weakening = map[string]string{
	"ansible_ssh_args":                   "-o Strict{{''}}HostKeyChecking=no",
	"ansible_ssh_common_args":            "{{ x }}",
	"ansible_ssh_extra_args":             "-F /mnt/config",
	"ansible_sftp_extra_args":            "-o UserKnownHostsFile=/dev/null",
	"ansible_scp_extra_args":             "-o StrictHostKeyChecking=no",
	"ansible_ssh_executable":             "/mnt/ssh",
	"ansible_sftp_executable":            "/mnt/sftp",
	"ansible_scp_executable":             "/mnt/scp",
	"ansible_connection":                 "paramiko",
	"ansible_connection_path":            "/mnt/connection",
	"ansible_host_key_checking":          "False",
	"ansible_ssh_host_key_checking":      "{{ 1 == 2 }}",
	"ansible_paramiko_host_key_checking": "no",
	"ansible_control_path":               "/tmp/one-for-all",
	"ansible_control_path_dir":           "/mnt",
	"ansible_ssh_pkcs11_provider":        "/mnt/lib.so",
}

func refuses(t *testing.T, what string, got field.ErrorList, prefix, name string) {
	t.Helper()
	text := messages(got)
	if len(text) != 1 || !strings.HasPrefix(text[0], prefix) || !strings.Contains(text[0], name+" would change") || !strings.Contains(text[0], remedy) {
		t.Errorf("%s: want an error with field, variable and remedy, got %q", what, text)
	}
}

func TestNoVariableChangesHowHostsAreReached(t *testing.T) {
	for name, value := range weakening {
		mapping, _ := json.Marshal(map[string]string{name: value})
		quoted, _ := json.Marshal(value)
		for form, vars := range map[string]*apiextensionsv1.JSON{"mapping": {Raw: mapping}, "text": textVars(string(mapping))} {
			refuses(t, "ansibleVars as "+form, validate.AnsibleVars(at, vars), "["+name+"]: ", name)
		}
		refuses(t, "extraVars", validate.ExtraVars(at, map[string]apiextensionsv1.JSON{name: {Raw: quoted}}), "["+name+"]: ", name)
		refuses(t, "cmdLine", validate.CmdLine(at, "-e "+name+"="+string(quoted)), "", name)
		escaped := strings.Replace(name, "_", `\u005f`, 1)
		for form, inventory := range map[string]string{
			"INI of a host": "h1 " + name + "=" + string(quoted), "INI of a group": "h1\n[all:vars]\n" + name + " = " + string(quoted),
			"INI with quotes": "h1 " + name[:8] + `""` + name[8:] + "=" + string(quoted),
			"YAML of a host":  "all: {hosts: {h1: " + string(mapping) + "}}", "YAML of a group": "all:\n  children:\n    g:\n      vars:\n        " + name + ": " + string(quoted),
			"YAML with escapes": `all: {hosts: {h1: {"` + escaped + `": ` + string(quoted) + `}}}`,
			"a composed one":    "plugin: constructed\ncompose: " + string(mapping),
		} {
			refuses(t, "an inventory in "+form, validate.Inventory(at, inventory), "", name)
		}
	}
	for _, option := range []string{"-c paramiko", "-clocal", "--connection=local", "--conn local", "--ssh-common-args='-o x'", "--ssh-c x", "--sftp-extra-args x", "--scp-extra-args=x", "--ssh-extra-args x"} {
		if got := messages(validate.CmdLine(at, "-v "+option)); len(got) != 1 || !strings.Contains(got[0], remedy) {
			t.Errorf("cmdLine %q: want an error with the remedy, got %q", option, got)
		}
	}
}

func TestVariablesThatChangeNothingAreInOrder(t *testing.T) {
	vars := &apiextensionsv1.JSON{Raw: []byte(`{"ansible_connection": "ssh", "ansible_host_key_checking": true, "ansible_ssh_retries": 3, "ansible_pipelining": true, "ansible_user": "cloud-admin"}`)}
	if got := validate.AnsibleVars(at, vars); len(got) > 0 {
		t.Errorf("want no error, got %v", messages(got))
	}
	for _, inventory := range []string{"[all]\nlocalhost ansible_connection=local\n", "all: {hosts: {localhost: {ansible_connection: local}}}", "h1 ansible_host=10.0.0.1 ansible_port=22"} {
		if got := validate.Inventory(at, inventory); len(got) > 0 {
			t.Errorf("inventory %q: want no error, got %v", inventory, messages(got))
		}
	}
	if got := validate.CmdLine(at, "-v --check --diff -C -e edpm_x=1"); len(got) > 0 {
		t.Errorf("want no error, got %v", messages(got))
	}
}

func TestNoVariableOfTheEnvironmentChangesHowHostsAreReached(t *testing.T) {
	for name, value := range map[string]string{
		"ANSIBLE_HOST_KEY_CHECKING": "False", "ANSIBLE_SSH_HOST_KEY_CHECKING": " no ", "ANSIBLE_PARAMIKO_HOST_KEY_CHECKING": "0",
		"ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD": "True", "ANSIBLE_PARAMIKO_PROXY_COMMAND": "x",
		"ANSIBLE_SSH_ARGS":        "-C -o Strict''HostKeyChecking=no",
		"ANSIBLE_SSH_COMMON_ARGS": "-o userknownhostsfile=/dev/null", "ANSIBLE_SSH_EXTRA_ARGS": "-o GlobalKnownHostsFile=/tmp/a",
		"ANSIBLE_SFTP_EXTRA_ARGS": "-o HostKeyAlias=all", "ANSIBLE_SCP_EXTRA_ARGS": "-o KnownHostsCommand=/mnt/all",
		"ANSIBLE_TRANSPORT": "paramiko", "ANSIBLE_SSH_EXECUTABLE": "/mnt/ssh", "ANSIBLE_SFTP_EXECUTABLE": "/mnt/sftp", "ANSIBLE_SCP_EXECUTABLE": "/mnt/scp",
		"ANSIBLE_CONNECTION_PATH": "/mnt/c", "ANSIBLE_CONNECTION_PLUGINS": "/mnt", "ANSIBLE_PKCS11_PROVIDER": "/mnt/lib.so",
		"ANSIBLE_SSH_CONTROL_PATH": "/tmp/x", "ANSIBLE_SSH_CONTROL_PATH_DIR": "/mnt",
	} {
		refuses(t, name, validate.Env(at, []corev1.EnvVar{{Name: name, Value: value}}), "[0].value: ", name)
	}
	hidden := corev1.EnvVar{Name: "ANSIBLE_TRANSPORT", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}}}
	refuses(t, "a value from a Secret", validate.Env(at, []corev1.EnvVar{hidden}), "[0].value: ", hidden.Name)
	harmless := []corev1.EnvVar{
		{Name: "ANSIBLE_HOST_KEY_CHECKING", Value: "True"}, {Name: "ANSIBLE_VERBOSITY", Value: "0"}, {Name: "ANSIBLE_TRANSPORT", Value: "ssh"},
		{Name: "ANSIBLE_SSH_ARGS", Value: "-C -o ControlMaster=auto -o ControlPersist=80s"}, {Name: "ANSIBLE_SSH_COMMON_ARGS", Value: "-o ProxyJump=bastion"},
	}
	if got := validate.Env(at, harmless); len(got) > 0 {
		t.Errorf("want no error, got %v", messages(got))
	}
}

// harmless are the options of the plugins that change neither the program nor the
// trust: address, login, retries and times, and what is done with files.
var harmless = []string{
	"inventory_hostname", "delegated_vars['ansible_host']", "delegated_vars['ansible_ssh_host']",
	"ansible_host", "ansible_ssh_host", "ansible_paramiko_host", "ansible_port", "ansible_ssh_port", "ansible_user", "ansible_ssh_user", "ansible_paramiko_user",
	"ansible_password", "ansible_ssh_pass", "ansible_ssh_password", "ansible_paramiko_pass", "ansible_paramiko_password", "ansible_sshpass_prompt",
	"ansible_private_key_file", "ansible_ssh_private_key_file", "ansible_pipelining", "ansible_ssh_pipelining",
	"ansible_ssh_retries", "ansible_ssh_timeout", "ansible_ssh_transfer_method", "ansible_scp_if_ssh", "ansible_sftp_batch_mode", "ansible_ssh_use_tty",
	"ansible_paramiko_use_rsa_sha2_algorithms",
	"ANSIBLE_REMOTE_PORT", "ANSIBLE_REMOTE_USER", "ANSIBLE_PARAMIKO_REMOTE_USER", "ANSIBLE_PRIVATE_KEY_FILE", "ANSIBLE_PIPELINING", "ANSIBLE_SSH_PIPELINING",
	"ANSIBLE_SSH_RETRIES", "ANSIBLE_TIMEOUT", "ANSIBLE_SSH_TIMEOUT", "ANSIBLE_SSH_TRANSFER_METHOD", "ANSIBLE_SCP_IF_SSH", "ANSIBLE_SFTP_BATCH_MODE", "ANSIBLE_SSH_USETTY",
	"ANSIBLE_SSHPASS_PROMPT", "ANSIBLE_PARAMIKO_USE_RSA_SHA2_ALGORITHMS", "ANSIBLE_PARAMIKO_BANNER_TIMEOUT", "ANSIBLE_PARAMIKO_LOOK_FOR_KEYS", "ANSIBLE_PARAMIKO_PTY",
	"ANSIBLE_PARAMIKO_RECORD_HOST_KEYS", "ANSIBLE_USE_PERSISTENT_CONNECTIONS",
}

// TestEveryOptionOfTheConnectionIsKnown asks Ansible for the options of its
// connection plugins: a new one has to be refused or found harmless.
func TestEveryOptionOfTheConnectionIsKnown(t *testing.T) {
	needs.Ansible(t, "ansible-doc")
	cmd := exec.CommandContext(t.Context(), "ansible-doc", "-t", "connection", "-j", "ssh", "paramiko_ssh")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	type names []struct{ Name string }
	var plugins map[string]struct {
		Doc struct {
			Options map[string]struct{ Vars, Env names }
		}
	}
	if err := json.Unmarshal(out, &plugins); err != nil || len(plugins["ssh"].Doc.Options) < 10 {
		t.Fatalf("found %d options of ssh: %v", len(plugins["ssh"].Doc.Options), err)
	}
	for plugin, p := range plugins {
		for option, o := range p.Doc.Options {
			for _, v := range o.Vars {
				got := validate.HostVars(at, map[string]any{v.Name: "-o StrictHostKeyChecking=no"})
				if len(got) == 0 && !slices.Contains(harmless, v.Name) {
					t.Errorf("option %s of %s: variable %s is neither refused nor known as harmless", option, plugin, v.Name)
				}
			}
			for _, v := range o.Env {
				got := validate.Env(at, []corev1.EnvVar{{Name: v.Name, Value: "-o StrictHostKeyChecking=no"}})
				if len(got) == 0 && !slices.Contains(harmless, v.Name) {
					t.Errorf("option %s of %s: %s of the environment is neither refused nor known as harmless", option, plugin, v.Name)
				}
			}
		}
	}
}

func TestTagsOfVariablesAreNotLostInSilence(t *testing.T) {
	for _, text := range []string{
		"a: !!python/object/apply:os.system [id]", "a:\n  b: [1, !vault '$ANSIBLE_VAULT;1.1;AES256 hunter2']", "a: !unsafe '{{ b }}'", "!own {a: 1}",
	} {
		got := messages(validate.AnsibleVars(at, textVars(text)))
		if len(got) != 1 || !strings.Contains(got[0], "would be lost") || strings.Contains(got[0], "hunter2") {
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
		if len(got) != 1 || !strings.Contains(text, `"900 KiB"`) && !strings.Contains(text, `"901 KiB"`) || !strings.Contains(text, "at most") || len(text) > 400 {
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
		"/", "/runner", "/runner/", "/runner/ssh", "/runner/ssh/ssh-privatekey", "/runner/jump", "/runner/jump/ssh-privatekey", "/runner/.jump/known_hosts", "/runner/config", "/runner/config/known_hosts", "/runner/.known_hosts",
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
				t.Errorf("%q: the error contains the text: %s", text, message)
			}
		}
	})
}
