package validate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reachRemedy is what to do instead of setting how hosts are reached.
const reachRemedy = "remove it; give the key of a host that was reinstalled in annotation edpm.openstack.org/host-key of its node"

// The values by which a variable changes nothing.
var (
	truths     = []string{"true", "yes", "on", "1", "y", "t"}
	connection = []string{"ssh", "ansible.builtin.ssh"}
)

// reachVars are the variables of Ansible that decide with which program, plugin,
// arguments and socket hosts are reached, and whether their keys are checked
// (options of the connection plugins ssh and paramiko_ssh, ansible-core 2.14), with
// the values that are allowed. The names are refused and not some values: a value
// can be a template that no one but Ansible evaluates.
var reachVars = map[string][]string{
	"ansible_connection":                 connection,
	"ansible_connection_path":            nil,
	"ansible_control_path":               nil,
	"ansible_control_path_dir":           nil,
	"ansible_host_key_checking":          truths,
	"ansible_paramiko_host_key_checking": truths,
	"ansible_scp_executable":             nil,
	"ansible_scp_extra_args":             nil,
	"ansible_sftp_executable":            nil,
	"ansible_sftp_extra_args":            nil,
	"ansible_ssh_args":                   nil,
	"ansible_ssh_common_args":            nil,
	"ansible_ssh_executable":             nil,
	"ansible_ssh_extra_args":             nil,
	"ansible_ssh_host_key_checking":      truths,
	"ansible_ssh_pkcs11_provider":        nil,
}

// reachEnv are the same of the environment.
var reachEnv = map[string][]string{
	"ANSIBLE_CONNECTION_PATH":            nil,
	"ANSIBLE_CONNECTION_PLUGINS":         nil,
	"ANSIBLE_HOST_KEY_CHECKING":          truths,
	"ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD": nil,
	"ANSIBLE_PARAMIKO_HOST_KEY_CHECKING": truths,
	"ANSIBLE_PARAMIKO_PROXY_COMMAND":     nil,
	"ANSIBLE_PKCS11_PROVIDER":            nil,
	"ANSIBLE_SCP_EXECUTABLE":             nil,
	"ANSIBLE_SFTP_EXECUTABLE":            nil,
	"ANSIBLE_SSH_CONTROL_PATH":           nil,
	"ANSIBLE_SSH_CONTROL_PATH_DIR":       nil,
	"ANSIBLE_SSH_EXECUTABLE":             nil,
	"ANSIBLE_SSH_HOST_KEY_CHECKING":      truths,
	"ANSIBLE_TRANSPORT":                  connection,
	"EDPM_JUMP_HOST":                     nil,
}

// sshArgsEnv hold arguments of ssh. They are free, since the entry point of the
// runner puts those first by which hosts are trusted, and ssh takes the first; that
// they would have no effect is said.
var sshArgsEnv = regexp.MustCompile(`^ANSIBLE_(SSH_((COMMON|EXTRA)_)?|SFTP_EXTRA_|SCP_EXTRA_)ARGS$`)

// trust are the options of ssh that decide which hosts it talks to.
var trust = regexp.MustCompile(`(?i)StrictHostKeyChecking|KnownHosts|HostKeyAlias|VerifyHostKeyDNS|CheckHostIP|NoHostAuthentication`)

// unquoted is a text without what a shell takes away: Strict”HostKeyChecking.
var unquoted = strings.NewReplacer(`'`, "", `"`, "", `\`, "")

// reaches checks that a variable does not change how a host is reached.
func reaches(path *field.Path, rules map[string][]string, name string, value any) field.ErrorList {
	allowed, known := rules[name]
	if !known || slices.Contains(allowed, strings.ToLower(strings.TrimSpace(fmt.Sprint(value)))) {
		return nil
	}
	return refused(path, name)
}

func refused(path *field.Path, name string) field.ErrorList {
	return field.ErrorList{field.Forbidden(path, name+" would change how hosts are reached and which of their keys are trusted: "+reachRemedy)}
}

// HostVars checks the variables of a host: none may change how it is reached.
func HostVars(path *field.Path, vars map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		errs = append(errs, reaches(path.Key(name), reachVars, name, vars[name])...)
	}
	return errs
}

// ExtraVars checks the extra variables of a run, which come before all others.
func ExtraVars(path *field.Path, vars map[string]apiextensionsv1.JSON) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		errs = append(errs, reaches(path.Key(name), reachVars, name, strings.Trim(string(vars[name].Raw), `"`))...)
	}
	return errs
}

// ReachEnv checks that no variable of the environment changes how hosts are reached.
func ReachEnv(path *field.Path, env []corev1.EnvVar) field.ErrorList {
	var errs field.ErrorList
	for i, v := range env {
		errs = append(errs, reachEnvVar(path.Index(i).Child("value"), v)...)
	}
	return errs
}

// reachEnvVar checks one variable of the environment. What is read from elsewhere
// is not known here.
func reachEnvVar(path *field.Path, v corev1.EnvVar) field.ErrorList {
	value := v.Value
	if v.ValueFrom != nil {
		value = "(valueFrom)"
	}
	if sshArgsEnv.MatchString(v.Name) && trust.MatchString(unquoted.Replace(value)) {
		return refused(path, v.Name)
	}
	return reaches(path, reachEnv, v.Name, value)
}

// assigned finds variables in the text of an inventory, in INI or YAML, or in
// arguments, once quotes are taken out.
var assigned = regexp.MustCompile(`(ansible_\w+)\s*[=:]\s*([^\s,}]*)`)

// reachText checks a text that assigns variables and that only Ansible parses. In
// an inventory that a person writes for a run of their own a host may be the runner
// itself, to which no one connects.
func reachText(path *field.Path, text string) field.ErrorList {
	for _, found := range assigned.FindAllStringSubmatch(unquoted.Replace(text), -1) {
		if found[1] == "ansible_connection" && found[2] == "local" {
			continue
		}
		if errs := reaches(path, reachVars, found[1], found[2]); len(errs) > 0 {
			return errs
		}
	}
	return nil
}

// reachDocument checks the names of an inventory in YAML, which can be written in
// more ways than a text shows.
func reachDocument(path *field.Path, n *yaml.Node) field.ErrorList {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1].Value
		if name == "ansible_connection" && value == "local" {
			continue
		}
		if errs := reaches(path, reachVars, name, value); len(errs) > 0 {
			return errs
		}
	}
	for _, child := range n.Content {
		if errs := reachDocument(path, child); len(errs) > 0 {
			return errs
		}
	}
	return nil
}

// reachOption are options of ansible-playbook that do what the variables do, which
// it takes abbreviated as well.
var reachOption = regexp.MustCompile(`(?:^|\s)(-c|--conn[a-z]*|--(?:ssh|sftp|scp)-[a-z-]*)`)

// CmdLine checks the further arguments of ansible-playbook.
func CmdLine(path *field.Path, text string) field.ErrorList {
	if found := reachOption.FindStringSubmatch(unquoted.Replace(text)); found != nil {
		return refused(path, found[1])
	}
	return reachText(path, text)
}
