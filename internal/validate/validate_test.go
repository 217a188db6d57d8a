package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

var at = field.NewPath("spec", "f")

// messages returns the errors without the path that all tests share.
func messages(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, strings.TrimPrefix(err.Error(), "spec.f"))
	}
	return all
}

func TestValues(t *testing.T) {
	rules := map[string]func(*field.Path, string) field.ErrorList{
		"Hostname": validate.Hostname, "Address": validate.Address, "IP": validate.IP, "HTTPURL": validate.HTTPURL,
		"User": validate.User, "Playbook": validate.Playbook, "Limit": validate.Limit, "Tags": validate.Tags,
		"ObjectName": validate.ObjectName, "Label": validate.Label,
	}
	long := strings.Repeat("a", 64)
	tests := map[string]struct{ good, bad []string }{
		"Hostname": {
			[]string{"", "edpm-compute-0", "Edpm-0.Example.COM", "3com", "a.b.c", strings.Repeat("a", 63)},
			[]string{"edpm_compute", "-a", "a-", "a..b", "a b", "10.0.0.1", "10.0.0.300", long, strings.Repeat("a.", 127) + "aa", "host:22", "a\n", "{{ name }}"},
		},
		"Address": {
			[]string{"", "192.168.122.100", "fd00::100", "edpm-compute-0.example.com"},
			[]string{"192.168.122.300", "1.2.3", "[fd00::1]", "192.168.122.100/24", "user@host", "host:22", "fe80::1%eth0", " a"},
		},
		"IP":      {[]string{"", "192.168.122.100", "fd00::100"}, []string{"192.168.122.100/24", "host", "1.2.3", "01.2.3.4"}},
		"HTTPURL": {[]string{"", "http://keystone:5000", "https://k.example.com/v3?a=b", "http://[fd00::1]:5000"}, []string{"keystone:5000", "ftp://a", "http://", "/v3", "https:/a"}},
		"User":    {[]string{"", "cloud-admin", "_a", "user@dom", `DOM\user`, "svc$"}, []string{"-oProxyCommand=x", "a b", "0user", "a;b"}},
		"Playbook": {
			[]string{"", "edpm.operators.install_os", "a.b.c.d", "site.yaml", "playbooks/site.yaml", "a/..b.yml"},
			[]string{"/etc/site.yaml", "../site.yaml", "a/../../site.yaml", "..", ".", "a//b.yaml", "./a.yaml", "-e", "a\nb.yaml"},
		},
		"Limit": {
			[]string{"", "all", "edpm-compute-0,edpm-compute-1", "edpm-compute-*:!edpm-compute-7", "a:&b", "edpm-compute-[0-3]", `~web\d+`, "fd00--1"},
			[]string{"@/etc/passwd", "a,@file", "-l", "a b", ",", ":", "!", "a,!", "a[0-3", "edpm-compute-[0:3]", "~(", "a,-b", "a\tb"},
		},
		"Tags":       {[]string{"", "install", "install,configure", "a:b"}, []string{"a b", ",a", "a,", "a,,b", "-t", "a,-t", "a\n"}},
		"ObjectName": {[]string{"", "a", "dataplane-ansible-ssh", "a.b"}, []string{"A", "a_b", "a/b", "-a", strings.Repeat("a", 254), "a\n"}},
		"Label":      {[]string{"", "cell1"}, []string{"a.b", "Cell1", long}},
	}
	for name, tt := range tests {
		for _, value := range tt.good {
			t.Run(fmt.Sprintf("%s accepts %.20q", name, value), func(t *testing.T) {
				if got := rules[name](at, value); len(got) > 0 {
					t.Errorf("want no error, got %v", messages(got))
				}
			})
		}
		for _, value := range tt.bad {
			t.Run(fmt.Sprintf("%s refuses %.20q", name, value), func(t *testing.T) {
				got := rules[name](at, value)
				if len(got) != 1 || got[0].Field != "spec.f" || got[0].BadValue != value || got[0].Detail == "" {
					t.Errorf("want one error with field, value and remedy, got %v", messages(got))
				}
			})
		}
	}
}

func TestAPasswordInAURLIsNotShown(t *testing.T) {
	got := validate.HTTPURL(at, "ftp://nova:hunter2@host/")
	if len(got) != 1 || strings.Contains(got[0].Error(), "hunter2") || got[0].BadValue != "ftp://***@host/" {
		t.Errorf("want the password masked, got %v", messages(got))
	}
}

const (
	varsRemedy      = `write one "name: value" per line`
	inventoryRemedy = `write a YAML mapping of groups, for example "all: {hosts: {edpm-compute-0: {ansible_host: 192.168.122.100}}}"`
	playbookRemedy  = `write a YAML list of plays, each beginning with "- hosts:" or "- import_playbook:"`
)

func masked(problem, remedy string) []string {
	return []string{`: Invalid value: "***": ` + problem + ": " + remedy}
}

func TestHostKey(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	for value, want := range map[string]string{
		"":                                "",
		key:                               key,
		" " + key + " root@host\n":        key,
		"SHA256:abc":                      "refused",
		key + "\n" + key:                  "refused",
		"no-pty " + key:                   "refused",
		"192.168.122.100 " + key:          "refused",
		strings.Replace(key, "I", "J", 1): "refused",
	} {
		got, err := validate.HostKey(field.NewPath("k"), value)
		if err != nil && (want != "refused" || !strings.Contains(err.Error(), "ssh_host_ed25519_key.pub")) || err == nil && got != want {
			t.Errorf("the key %q gives %q and %v, want %q", value, got, err, want)
		}
	}
}

func TestAnsibleVars(t *testing.T) {
	const either = "must be a mapping of variable names to values, or a string with a YAML mapping"
	tests := map[string]struct {
		raw  string
		want []string
	}{
		"a mapping is in order":              {`{"a": {"b": [1]}}`, nil},
		"an empty mapping is in order":       {`{}`, nil},
		"null is in order":                   {`null`, nil},
		"text of a mapping is in order":      {`"a: 1\nb:\n  c: [1]\n"`, nil},
		"text with only comments is one too": {`"# nothing yet\n"`, nil},
		"empty text is in order":             {`""`, nil},
		"a list is none":                     {`["secret"]`, masked("is a list", either)},
		"a number is none":                   {`12`, masked("is a single value", either)},
		"text of a list is none":             {`"\n- secret\n"`, masked("line 2: is a list, not a mapping", varsRemedy)},
		"text of one word is none":           {`"secret"`, masked("line 1: is a single value, not a mapping", varsRemedy)},
		"text that is no YAML is none":       {`"a: 1\nb: secret: c\n"`, masked("line 2: mapping values are not allowed in this context", varsRemedy)},
		"a tab is named by its line":         {`"a:\n\t- secret\n"`, masked("line 2: found character that cannot start any token", varsRemedy)},
		"a repeated key is named":            {`"secret: 1\nb: 2\nsecret: 3\n"`, masked(`line 3: mapping key "secret" already defined at line 1`, varsRemedy)},
		"a password like an alias is hidden": {`"pw: *hunter2\n"`, masked("unknown anchor *** referenced", varsRemedy)},
		"a second document is none":          {`"a: 1\n---\nb: 2\n"`, masked("line 2: a second document begins, but only one is allowed", varsRemedy)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := messages(validate.AnsibleVars(at, &apiextensionsv1.JSON{Raw: []byte(tt.raw)}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("AnsibleVars (-want +got):\n%s", diff)
			}
		})
	}
	if got := validate.AnsibleVars(at, nil); got != nil {
		t.Errorf("no variables are in order, got %v", got)
	}
}

func TestInventory(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"none is in order":                   {"", nil},
		"YAML is in order":                   {"all:\n  hosts:\n    a: {ansible_host: 10.0.0.1}\n", nil},
		"YAML after a marker and a comment":  {"# hosts\n---\nall: {}\n", nil},
		"JSON is in order":                   {`{"all": {"hosts": {}}}`, nil},
		"INI with a section is left alone":   {"[computes]\na ansible_host=10.0.0.1\n", nil},
		"INI with a host is left alone":      {"a ansible_host=10.0.0.1\n", nil},
		"INI with a host and port likewise":  {"a:2222\nb\n", nil},
		"INI after a comment is left alone":  {"; hosts\na:22 x=y: z\n", nil},
		"YAML with a wrong indent is none":   {"all:\n  hosts:\n a: b\n", masked("line 2: did not find expected key", inventoryRemedy)},
		"a YAML list is none":                {"---\n- a\n", masked("line 2: is a list, not a mapping", inventoryRemedy)},
		"JSON that does not end is none":     {"{\"all\": {", masked("line 1: did not find expected node content", inventoryRemedy)},
		"a key without a space after colons": {"all:\n  vars: {x: 1}\n  hosts: a: b\n", masked("line 3: mapping values are not allowed in this context", inventoryRemedy)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, messages(validate.Inventory(at, tt.text))); diff != "" {
				t.Errorf("Inventory (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlaybookText(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"none is in order":             {"", nil},
		"a list of plays is in order":  {"---\n- hosts: all\n  tasks: []\n- import_playbook: a.b.c\n", nil},
		"custom tags are in order":     {"- hosts: all\n  vars: {pw: !vault x, raw: !unsafe '{{ x }}'}\n", nil},
		"only a comment is none":       {"# later\n", masked("line 1: is empty, not a list of plays", playbookRemedy)},
		"an empty list is none":        {"[]\n", masked("line 1: is a list, not a list of plays", playbookRemedy)},
		"a single play is none":        {"\nhosts: all\n", masked("line 2: is a mapping, not a list of plays", playbookRemedy)},
		"a text is none":               {"echo secret\n", masked("line 1: is a single value, not a list of plays", playbookRemedy)},
		"each wrong play is named":     {"- hosts: all\n- secret\n- [a]\n", append(masked("line 2: is a single value, not a play", playbookRemedy), masked("line 3: is a list, not a play", playbookRemedy)...)},
		"a syntax error names a line":  {"- hosts: all\n  tasks:\n  - x: {\n", masked("line 3: did not find expected node content", playbookRemedy)},
		"two documents are not a list": {"- hosts: a\n---\n- hosts: b\n", masked("line 2: a second document begins, but only one is allowed", playbookRemedy)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, messages(validate.PlaybookText(at, tt.text))); diff != "" {
				t.Errorf("PlaybookText (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceConfig(t *testing.T) {
	if got := validate.ServiceConfig(at, identity.HostCompute, "[DEFAULT]\ndebug = True\n"); got != nil {
		t.Errorf("want no error, got %v", messages(got))
	}
	got := validate.ServiceConfig(at, identity.HostCompute, "[DEFAULT]\ndebug True\n[database\nconnection = mysql://u:hunter2@h\n")
	if len(got) != 2 || !strings.Contains(got[0].Detail, "line 2 ") || got[0].BadValue != "debug True" || !strings.Contains(got[1].Detail, "line 3 ") {
		t.Errorf("want an error for line 2 and 3, got %v", messages(got))
	}
	if strings.Contains(got.ToAggregate().Error(), "hunter2") {
		t.Errorf("a secret is shown: %v", messages(got))
	}
	many := messages(validate.ServiceConfig(at, identity.HostCompute, "[a]\n"+strings.Repeat("x\n", 30)))
	if len(many) != 11 || !strings.Contains(many[10], "and 20 more lines") {
		t.Errorf("want ten errors and the number of the rest, got %v", many)
	}
}

func TestServiceConfigOfAnotherService(t *testing.T) {
	check := func(text string) field.ErrorList { return validate.ServiceConfig(at, identity.HostCompute, text) }
	before := check("[DEFAULT]\nhost = a\ntransport_url = rabbit://u:hunter2@h\n")
	if got := before.ToAggregate().Error(); !strings.Contains(got, "spec.f: Forbidden: line 2: [DEFAULT] host ") || !strings.Contains(got, "line 3: [DEFAULT] transport_url ") || strings.Contains(got, "hunter2") {
		t.Errorf("want both lines forbidden without their values, got %s", got)
	}
	for text, want := range map[string]int{
		"[DEFAULT]\nhost = a\ntransport_url = rabbit://u:hunter2@h\ndebug = true\n": 0,
		"[DEFAULT]\nhost = b\ntransport_url = rabbit://u:hunter2@h\n":               1,
		"[DEFAULT]\nhost = a\ntransport_url = rabbit://u:hunter3@h\n":               1,
		"[DEFAULT]\ndebug = true\n":                                                 0,
	} {
		if got := validate.Ratchet(before, check(text)); len(got) != want {
			t.Errorf("want %d errors once it was stored, got %v for %q", want, messages(got), text)
		}
	}
}

func TestServiceConfigWarnings(t *testing.T) {
	got := validate.ServiceConfigWarnings(at, "[DEFAULT]\ntransport_url = rabbit://u:hunter2@h\ndebug = True\n")
	if len(got) != 1 || !strings.HasPrefix(got[0], "spec.f: line 2: [DEFAULT] transport_url") || strings.Contains(got[0], "hunter2") {
		t.Errorf("want a warning about line 2 without its value, got %q", got)
	}
	if got := validate.ServiceConfigWarnings(at, "nonsense"); got != nil {
		t.Errorf("a snippet that is refused has no warnings, got %q", got)
	}
}

func TestEnv(t *testing.T) {
	got := messages(validate.Env(at, []corev1.EnvVar{{Name: "ANSIBLE_FORKS"}, {Name: "a b"}, {Name: "ANSIBLE_ENABLE_TASK_DEBUGGER", Value: "true"}}))
	want := []string{
		`[1].name: Invalid value: "a b": is not the name of an environment variable: use letters, digits and "_", for example ANSIBLE_FORKS`,
		`[2].name: Invalid value: "ANSIBLE_ENABLE_TASK_DEBUGGER": would make a failed run wait for keyboard input: remove it`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Env (-want +got):\n%s", diff)
	}
}

func TestObjectNamesRefusesAnEmptyEntry(t *testing.T) {
	got := messages(validate.ObjectNames(at, []string{"a", ""}))
	if len(got) != 1 || !strings.HasPrefix(got[0], `[1]: Invalid value: "": is empty: remove the entry`) {
		t.Errorf("want the empty entry refused, got %v", got)
	}
}

// mounts returns a group with one ConfigMap volume per name and the mounts.
func mounts(volumes []string, list ...corev1.VolumeMount) ansibleeev1.ExtraMount {
	group := ansibleeev1.ExtraMount{Mounts: list}
	for _, name := range volumes {
		group.Volumes = append(group.Volumes, ansibleeev1.ExtraVolume{Name: name, ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "cm"},
		}})
	}
	return group
}

func TestExtraMounts(t *testing.T) {
	one := func(path string) []ansibleeev1.ExtraMount {
		return []ansibleeev1.ExtraMount{mounts([]string{"v"}, corev1.VolumeMount{Name: "v", MountPath: path})}
	}
	const unclean = `is not a clean absolute path: start with "/" and do not use "..", ".", "//", ":" or a trailing "/", for example /etc/ceph`
	hides := func(path, what string) []string {
		return []string{fmt.Sprintf(`[0].mounts[0].mountPath: Invalid value: %q: would hide or change %s, which the run uses itself: mount elsewhere, for example under /etc`, path, what)}
	}
	invalid := func(where, value, detail string) []string {
		return []string{fmt.Sprintf("%s: Invalid value: %q: %s", where, value, detail)}
	}
	tests := map[string]struct {
		groups []ansibleeev1.ExtraMount
		want   []string
	}{
		"a directory of its own is in order":           {one("/etc/ceph"), nil},
		"a further inventory is in order":              {one("/runner/inventory/more.yaml"), nil},
		"a project is in order":                        {one("/runner/project"), nil},
		"a name that begins like a reserved one":       {one("/runner/ssh-extra"), nil},
		"a relative path is refused":                   {one("etc/ceph"), invalid("[0].mounts[0].mountPath", "etc/ceph", unclean)},
		"a path with .. is refused":                    {one("/etc/../ceph"), invalid("[0].mounts[0].mountPath", "/etc/../ceph", unclean)},
		"a path with a slash at the end is refused":    {one("/etc/ceph/"), invalid("[0].mounts[0].mountPath", "/etc/ceph/", unclean)},
		"a path with a colon is refused":               {one("/etc/a:b"), invalid("[0].mounts[0].mountPath", "/etc/a:b", unclean)},
		"the root is refused":                          {one("/"), hides("/", "/runner/inventory/hosts.yaml")},
		"the runner directory is refused":              {one("/runner"), hides("/runner", "/runner/inventory/hosts.yaml")},
		"the key is refused":                           {one("/runner/ssh"), hides("/runner/ssh", "/runner/ssh")},
		"a file next to the key is refused":            {one("/runner/ssh/config"), hides("/runner/ssh/config", "/runner/ssh")},
		"the inventory is refused":                     {one("/runner/inventory/hosts.yaml"), hides("/runner/inventory/hosts.yaml", "/runner/inventory/hosts.yaml")},
		"the directory of the inventory is refused":    {one("/runner/inventory"), hides("/runner/inventory", "/runner/inventory/hosts.yaml")},
		"the directory for temporary files is refused": {one("/tmp"), hides("/tmp", "/tmp")},
		"a directory in it is in order":                {one("/tmp/cache"), nil},
		"a volume that the run has itself is refused":  {[]ansibleeev1.ExtraMount{mounts([]string{"ssh-key"})}, invalid("[0].volumes[0].name", "ssh-key", "is the name of a volume that the run adds itself: choose another")},
		"the inputs are refused":                       {one("/runner/config/a"), hides("/runner/config/a", "/runner/config")},
		"a mount of a volume that is not there":        {[]ansibleeev1.ExtraMount{mounts([]string{"v"}, corev1.VolumeMount{Name: "w", MountPath: "/a"})}, invalid("[0].mounts[0].name", "w", "is not among the volumes of the same entry of extraMounts: add it there, or correct the name")},
		"a sub-path that leads out is refused":         {[]ansibleeev1.ExtraMount{mounts([]string{"v"}, corev1.VolumeMount{Name: "v", MountPath: "/a", SubPath: "../b"})}, invalid("[0].mounts[0].subPath", "../b", `is not a relative path: do not use a leading "/" or "..", for example ceph.conf`)},
		"a volume name used in two groups is refused":  {[]ansibleeev1.ExtraMount{mounts([]string{"v"}), mounts([]string{"v"})}, invalid("[1].volumes[0].name", "v", "is the name of a volume above: give each volume of the Pod its own name")},
		"a path used twice is refused":                 {append(one("/a"), mounts([]string{"w"}, corev1.VolumeMount{Name: "w", MountPath: "/a"})), invalid("[1].mounts[0].mountPath", "/a", "is mounted above: give each mount its own path")},
		"a mount without a path is refused":            {one(""), []string{"[0].mounts[0].mountPath: Required value: set it to the directory or file in the runner Pod, for example /etc/ceph"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, messages(validate.ExtraMounts(at, tt.groups))); diff != "" {
				t.Errorf("ExtraMounts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExtraMountsChecksWhatVolumesReferTo(t *testing.T) {
	volumes := []ansibleeev1.ExtraVolume{
		{Name: "a", Secret: &corev1.SecretVolumeSource{SecretName: "S"}},
		{Name: "b", ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "C"}}},
		{Name: "c", PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "P"}},
	}
	var fields []string
	for _, err := range validate.ExtraMounts(at, []ansibleeev1.ExtraMount{{Volumes: volumes}}) {
		fields = append(fields, err.Field)
	}
	want := []string{
		"spec.f[0].volumes[0].secret.secretName", "spec.f[0].volumes[1].configMap.name",
		"spec.f[0].volumes[2].persistentVolumeClaim.claimName",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestRatchet(t *testing.T) {
	known, fresh := field.Invalid(at, "a", "r"), field.Invalid(at, "b", "r")
	got := messages(validate.Ratchet(field.ErrorList{known}, field.ErrorList{known, fresh}))
	if diff := cmp.Diff([]string{`: Invalid value: "b": r`}, got); diff != "" {
		t.Errorf("only the new error should remain (-want +got):\n%s", diff)
	}
	if got := validate.Ratchet(field.ErrorList{known}, field.ErrorList{known}); len(got) > 0 {
		t.Errorf("want no error, got %v", messages(got))
	}
}
