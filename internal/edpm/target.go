// Package edpm is the execution engine of edpm-operators: it brings hosts outside
// Kubernetes to the state that their owners want, by runs of Ansible.
//
// Every step, be it a service of phase 0 or nova on a compute, is the same
// thing: hosts that want hash H for step S. Owners (the controllers of nodes
// and of services) state what they want with Engine.Converge; the engine
// gathers hosts that can go together into one OpenStackAnsibleEE, each host
// exactly once per hash, and tells each owner what became of its own host.
//
// All that must outlive the manager is in the API: what succeeded is in the
// owners' ledgers, what is under way or failed in the OpenStackAnsibleEE
// objects. What is in memory can be lost at any time.
package edpm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// Step is one playbook that brings a host one step further.
type Step struct {
	// Name of the step, unique among the steps of its owner's kind.
	Name string
	// Playbook of the execution environment, or PlaybookContents, its text.
	Playbook         string
	PlaybookContents string
	// Removal reports whether the step takes a service off the host. It is rolled out
	// apart from the steps that put services there.
	Removal bool
	// Interrupts reports whether the step can restart a service that is in use. Where no one
	// says how many hosts may be unavailable, a host that has done the step before is one of
	// few on which it is done again at a time.
	Interrupts bool
	// TaskTimeoutSeconds is how long a task may take on a host; nil means the
	// default of the runner. It decides no outcome, and so is in no hash.
	TaskTimeoutSeconds *int32
}

// Strategy says how runs are rolled out over the hosts of a role.
type Strategy struct {
	// Deploy reports whether anything may be run.
	Deploy bool
	// BatchSize is the most hosts of one run; 0 means ansibleeev1.MaxTargets.
	BatchSize int
	// MaxUnavailable is the most hosts of the role that may be in a run or
	// failed at the same time; 0 means any number.
	MaxUnavailable int
	// MaxUnavailablePercent is the same as a share of the hosts of the role,
	// rounded up. It takes the place of MaxUnavailable unless it is 0.
	MaxUnavailablePercent int
	// UnavailableByDefault reports whether no one chose MaxUnavailablePercent.
	UnavailableByDefault bool
	// MaxFailures is the most failed hosts before no new host is started; nil means any number.
	MaxFailures *int32
	// Tags, SkipTags and Limit restrict runs as Ansible's options of the same names do.
	Tags, SkipTags, Limit string
	// Checks of the host between runs.
	Checks Checks
}

// unavailableLimit is the most hosts that may be unavailable in a role with that
// many members; 0 means any number.
func (s Strategy) unavailableLimit(members int) int {
	if s.MaxUnavailablePercent == 0 {
		return s.MaxUnavailable
	}
	return max(1, (members*s.MaxUnavailablePercent+99)/100)
}

// interruptedPercent is the share of the hosts of a role that may be unavailable for a step
// that interrupts a service, unless the role says another one.
const interruptedPercent = 5

// interrupting is the strategy for a step that interrupts a service.
func (s Strategy) interrupting() Strategy {
	if s.MaxUnavailable == 0 && s.MaxUnavailablePercent == 0 {
		s.MaxUnavailablePercent, s.UnavailableByDefault = interruptedPercent, true
	}
	return s
}

// hasLimits reports whether failed or unavailable hosts can hold others back.
func (s Strategy) hasLimits() bool {
	return s.MaxFailures != nil || s.MaxUnavailable > 0 || s.MaxUnavailablePercent > 0
}

// unavailableText is maxUnavailable as a person wrote it, or the default.
func (s Strategy) unavailableText() string {
	switch {
	case s.MaxUnavailablePercent == 0:
		return strconv.Itoa(s.MaxUnavailable)
	case s.UnavailableByDefault:
		return fmt.Sprintf("%d%% by default", s.MaxUnavailablePercent)
	}
	return fmt.Sprintf("%d%%", s.MaxUnavailablePercent)
}

// limited names the restriction to some tasks; empty when all tasks are run.
func (s Strategy) limited() string {
	if s.Tags == "" && s.SkipTags == "" {
		return ""
	}
	return fmt.Sprintf("tags=%s skip-tags=%s", s.Tags, s.SkipTags)
}

// Target is one host that is wanted in a certain state.
type Target struct {
	Namespace string
	// Host is the name of the host in the inventory, and that of its owner unless
	// Owner has another one.
	Host, Owner string
	// OwnerKind is the kind of the owner, as registered with the engine.
	OwnerKind string
	OwnerUID  types.UID
	// Service that the owner brings to the host, where objects of its kind are for
	// different services: each is rolled out apart from the others. Empty where all
	// are for the same.
	Service string
	Step    Step

	Role, Cell string
	Strategy   Strategy
	// Rerun is a token: each new value causes one run with unchanged inputs.
	Rerun string
	// Tokens are all rerun tokens that the host has, by their source: the one in
	// force and those that it overrides.
	Tokens map[string]string
	// Replacement is a token: with each new value the host is another machine, on
	// which nothing was run yet.
	Replacement string
	// MaxAttempts for one hash, after which the engine gives up; 0 means never.
	MaxAttempts int32

	// Image of the execution environment.
	Image string
	// ImageChosen reports whether a person chose the image, so that a change of it
	// is a change of what is wanted. An upgrade of the operator, which brings
	// another default image, is not.
	ImageChosen bool

	SSHKeySecret string
	// SSHKeyDigest of the content of that Secret.
	SSHKeyDigest string
	// JumpHost through which the host is reached; nil means directly.
	JumpHost *common.JumpHost
	// JumpKeyDigest of the content of the Secret of the JumpHost.
	JumpKeyDigest string
	// EmptySince is since when the host has no guests; zero if it has, or that is not known. A
	// step that found guests before is tried again at once.
	EmptySince time.Time
	// HostKey that a person says the host has; empty means the one in the ledger.
	HostKey string

	NetworkAttachments []string
	// Topology that the runner Pod follows, in the namespace; empty means none.
	Topology    string
	Env         []corev1.EnvVar
	ExtraMounts []ansibleeev1.ExtraMount
	// MountDigests are digests of the content of what ExtraMounts mounts.
	MountDigests map[string]string
	// EnvDigests are digests of what Env takes from Secrets and ConfigMaps, and of
	// the ConfigMap ansibleeev1.DefaultEnvConfigMap; nil when there is neither.
	EnvDigests map[string]string

	// Vars of the host in the inventory.
	Vars map[string]any
	// Hints are more variables of the host, which do not decide what is on it afterwards: they
	// are in no hash.
	Hints map[string]any
	// Files that the playbook copies to the host, by name. They may be secret.
	Files map[string][]byte

	// check reports whether the host is only looked at. The engine makes such targets.
	check bool
}

// Key names a step of a host, or the checks of it. Owners of different kinds can have steps
// of the same name.
type Key struct {
	Namespace, Kind, Step, Host string
	Check                       bool
}

// Key of the target.
func (t *Target) Key() Key { return Key{t.Namespace, t.OwnerKind, t.Step.Name, t.Host, t.check} }

// Group names the targets that are rolled out together.
type Group struct {
	Namespace, Kind, Service, Role string
	Removal, Check                 bool
}

// Group of the target.
func (t *Target) Group() Group {
	return Group{t.Namespace, t.OwnerKind, t.Service, t.Role, t.Step.Removal, t.check}
}

// groupOf a run.
func groupOf(run *ansibleeev1.OpenStackAnsibleEE) Group {
	return Group{run.Namespace, run.Spec.OwnerKind, run.Spec.Service, run.Spec.Role, run.Spec.Removal, run.Spec.Check}
}

// keysOf a host of a run, one for each step.
func keysOf(run *ansibleeev1.OpenStackAnsibleEE, host string) []Key {
	var keys []Key
	for _, step := range run.StepNames() {
		keys = append(keys, Key{run.Namespace, run.Spec.OwnerKind, step, host, run.Spec.Check})
	}
	return keys
}

// in reports whether the key is of a step of the group, whatever role the host has.
func (k Key) in(g Group) bool { return k.Namespace == g.Namespace && k.Kind == g.Kind }

// index of the group's runs.
func (g Group) index() string {
	return fmt.Sprintf("%s/%s/%s/%t/%t", g.Kind, g.Service, g.Role, g.Removal, g.Check)
}

// String names the group in messages.
func (g Group) String() string {
	what := strings.TrimSpace(g.Kind + " " + g.Service)
	if g.Removal {
		what = "removals of " + what
	}
	if g.Check {
		what = "checks of " + what
	}
	return fmt.Sprintf("%s of role %s", what, g.Role)
}

// index of the runs on the host for owners of the kind.
func (k Key) index() string { return k.Kind + "/" + k.Host }

// isRefused reports whether a target that failed in its last run fails each time in a
// run as it would be now: in the same Pod, with the same inputs. A removal is tried
// as often as it may be.
func (t *Target) isRefused(s State, last *run) bool {
	return s.Phase == Failed && s.refused && !s.fixed && t.MaxAttempts == 0 && t.fits(last.object)
}

// Hash of everything that decides the outcome on the host: playbook, variables,
// content of files, of mounted Secrets and ConfigMaps and of those that the
// environment is made from, and chosen image. How the host is logged in to, and
// from where, is not part of it.
func (t *Target) Hash() string {
	image := ""
	if t.ImageChosen {
		image = t.Image
	}
	files := map[string]string{}
	for name, content := range t.Files {
		files[name] = contentKey(content)
	}
	_, outcome := splitVars(t.Vars)
	parts := map[string]any{
		"playbook": t.Step.Playbook, "contents": t.Step.PlaybookContents, "image": image,
		"vars": outcome, "files": files, "env": t.Env, "mounts": t.ExtraMounts, "mounted": t.MountDigests,
	}
	if len(t.EnvDigests) > 0 { // else hashes that ledgers have stay what they were
		parts["environment"] = t.EnvDigests
	}
	if t.Replacement != "" {
		parts["replacement"] = t.Replacement
	}
	return digest(parts)
}

// Access is a hash of how the host is logged in to, and from where. When it changes, a failed
// host is tried again at once.
func (t *Target) Access() string {
	access, _ := splitVars(t.Vars)
	parts := map[string]any{"vars": access, "key": t.SSHKeyDigest, "attachments": t.NetworkAttachments}
	if t.HostKey != "" {
		parts["hostKey"] = t.HostKey
	}
	return digest(t.placed(parts))
}

// podKey is equal for targets that can share a Pod.
func (t *Target) podKey() string {
	parts := map[string]any{
		"owner": t.OwnerKind, "playbook": t.Step.Playbook, "contents": t.Step.PlaybookContents, "cell": t.Cell,
		"image": t.Image, "key": t.SSHKeySecret, "attachments": t.NetworkAttachments,
		"env": t.Env, "mounts": t.ExtraMounts, "limited": t.Strategy.limited(),
	}
	if t.Step.TaskTimeoutSeconds != nil {
		parts["taskTimeout"] = *t.Step.TaskTimeoutSeconds
	}
	return digest(t.placed(parts))
}

// placed adds the Topology and the jump host to what a digest is made of. Without them
// nothing is added, so that digests that runs have stored stay what they were.
func (t *Target) placed(parts map[string]any) map[string]any {
	if t.Topology != "" {
		parts["topology"] = t.Topology
	}
	if t.JumpHost != nil {
		parts["jumpHost"], parts["jumpKey"] = t.JumpHost, t.JumpKeyDigest
	}
	return parts
}

// splitVars tells the variables that only say how to log in from the others.
// The address is among the others: another address is another host.
func splitVars(vars map[string]any) (access, outcome map[string]any) {
	access, outcome = map[string]any{}, map[string]any{}
	for name, value := range vars {
		if name == "ansible_user" || name == "ansible_port" || strings.HasPrefix(name, "ansible_ssh_") || strings.HasPrefix(name, "ansible_become") {
			access[name] = value
		} else {
			outcome[name] = value
		}
	}
	return access, outcome
}

// digest of a value that can always be marshalled; maps are sorted by key.
func digest(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("marshalling a target: %v", err)) // vars come from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// contentKey names a file by its content.
func contentKey(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}
