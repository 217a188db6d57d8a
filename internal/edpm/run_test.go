package edpm

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// target is a complete target, to be changed by the cases.
func target(change func(*Target)) Target {
	t := Target{
		Namespace: "ns", Host: "h", OwnerKind: "Kind", OwnerUID: "uid", Step: Step{Name: "nova", Playbook: "edpm.operators.nova"},
		Role: "role", Cell: "cell1", Strategy: Strategy{Deploy: true, BatchSize: 10}, Image: "ee:1",
		SSHKeySecret: "key", SSHKeyDigest: "d1", NetworkAttachments: []string{"net"}, Env: []corev1.EnvVar{{Name: "E", Value: "v"}},
		MountDigests: map[string]string{"Secret/s": "d"},
		Vars:         map[string]any{"ansible_host": "10.0.0.1", "ansible_user": "root", "ansible_port": 22, "a": 1, "b": map[string]any{"c": 1, "d": 2}},
		Files:        map[string][]byte{"f": []byte("x")},
	}
	if change != nil {
		change(&t)
	}
	return t
}

func TestHashCoversWhatDecidesTheOutcome(t *testing.T) {
	base := target(nil)
	for name, change := range map[string]func(*Target){
		"a variable":                     func(t *Target) { t.Vars["a"] = 2 },
		"a new variable":                 func(t *Target) { t.Vars["n"] = nil },
		"a nested variable":              func(t *Target) { t.Vars["b"] = map[string]any{"c": 1, "d": 3} },
		"the address":                    func(t *Target) { t.Vars["ansible_host"] = "10.0.0.2" },
		"another Python":                 func(t *Target) { t.Vars["ansible_python_interpreter"] = "/usr/bin/python3" },
		"the content of a file":          func(t *Target) { t.Files["f"] = []byte("y") },
		"the name of a file":             func(t *Target) { t.Files = map[string][]byte{"g": []byte("x")} },
		"the content of what is mounted": func(t *Target) { t.MountDigests["Secret/s"] = "e" },
		"a mount":                        func(t *Target) { t.ExtraMounts = []ansibleeev1.ExtraMount{{ExtraVolType: "Ceph"}} },
		"the environment":                func(t *Target) { t.Env[0].Value = "w" },
		"another machine":                func(t *Target) { t.Replacement = "1" },
		"what the environment takes":     func(t *Target) { t.EnvDigests = map[string]string{"ConfigMap/c": "d"} },
		"the playbook":                   func(t *Target) { t.Step.Playbook = "edpm.operators.other" },
		"the text of the playbook":       func(t *Target) { t.Step.PlaybookContents = "- hosts: all" },
		"an image that a person chose":   func(t *Target) { t.ImageChosen = true },
	} {
		t.Run(name, func(t *testing.T) {
			if changed := target(change); changed.Hash() == base.Hash() {
				t.Error("the hash is the same, so nothing would run")
			}
		})
	}
}

func TestHashLeavesOutWhatDoesNot(t *testing.T) {
	base := target(nil)
	for name, c := range map[string]struct {
		change func(*Target)
		access bool // whether it changes how the host is reached
	}{
		"a default image, as an upgrade brings": {func(t *Target) { t.Image = "ee:2" }, false},
		"the user":                              {func(t *Target) { t.Vars["ansible_user"] = "stack" }, true},
		"the port":                              {func(t *Target) { t.Vars["ansible_port"] = 2222 }, true},
		"options of SSH":                        {func(t *Target) { t.Vars["ansible_ssh_common_args"] = "-J x" }, true},
		"how to become root":                    {func(t *Target) { t.Vars["ansible_become_password"] = "x" }, true},
		"the content of the key":                {func(t *Target) { t.SSHKeyDigest = "d2" }, true},
		"the name of the key's Secret":          {func(t *Target) { t.SSHKeySecret = "key2" }, false},
		"the jump host":                         {func(t *Target) { t.JumpHost = &common.JumpHost{Address: "bastion"} }, true},
		"network attachments":                   {func(t *Target) { t.NetworkAttachments = nil }, true},
		"where the run is made from":            {func(t *Target) { t.Topology = "zone-b" }, true},
		"the strategy":                          {func(t *Target) { t.Strategy = Strategy{Tags: "x", MaxUnavailable: 1} }, false},
		"the rerun token":                       {func(t *Target) { t.Rerun = "A" }, false},
		"the owner":                             {func(t *Target) { t.OwnerUID = "other" }, false},
		"the role":                              {func(t *Target) { t.Role = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := target(c.change)
			if changed.Hash() != base.Hash() {
				t.Error("the hash changed, so the host would be configured again")
			}
			if got := changed.Access() != base.Access(); got != c.access {
				t.Errorf("whether access changed is %v; want %v", got, c.access)
			}
		})
	}
}

func TestAnotherKeyOfTheJumpHostIsAnotherAccess(t *testing.T) {
	with := func(digest string) string {
		behind := target(func(t *Target) { t.JumpHost, t.JumpKeyDigest = &common.JumpHost{Address: "bastion"}, digest })
		return behind.Access()
	}
	if with("d1") == with("d2") {
		t.Error("access is the same, so a failed host would wait for its next retry")
	}
}

// TestHashesInLedgersStayTheSame : another hash would run every step on every host
// after an upgrade of the operators.
func TestHashesInLedgersStayTheSame(t *testing.T) {
	base := target(nil)
	if got, want := base.Hash(), "b2d2e759c81d1cadb8f3ce676e8d890d"; got != want {
		t.Errorf("the hash is %s; ledgers have %s", got, want)
	}
	if got, want := base.Access()+" "+base.podKey(), "7e64dcce8748166c5bb353ef1ecfea1a 3b58a2a0870ab159cb83d4065e1b14be"; got != want {
		t.Errorf("access and the key of the Pod are %s; runs have %s", got, want)
	}
}

func TestHashIsTheSameWhateverTheOrderOfMaps(t *testing.T) {
	first := ""
	for range 50 {
		copied := target(func(t *Target) {
			vars := map[string]any{}
			for i := range 30 {
				vars[fmt.Sprint("v", i)] = map[string]any{"x": i, "y": i}
			}
			maps.Copy(t.Vars, vars)
		})
		hash := copied.Hash() + copied.Access() + copied.podKey()
		if first == "" {
			first = hash
		}
		if hash != first {
			t.Fatal("the same target has another hash")
		}
	}
}

func TestPodKeyKeepsApartWhatCannotShareAPod(t *testing.T) {
	base := target(nil)
	for name, change := range map[string]func(*Target){
		"owner kind": func(t *Target) { t.OwnerKind = "Other" }, "playbook": func(t *Target) { t.Step.Playbook = "x" },
		"contents": func(t *Target) { t.Step.PlaybookContents = "x" }, "cell": func(t *Target) { t.Cell = "cell2" },
		"image": func(t *Target) { t.Image = "ee:2" }, "key": func(t *Target) { t.SSHKeySecret = "x" },
		"attachments": func(t *Target) { t.NetworkAttachments = nil }, "jump host": func(t *Target) { t.JumpHost = &common.JumpHost{Address: "bastion"} }, "env": func(t *Target) { t.Env = nil },
		"mounts": func(t *Target) { t.ExtraMounts = []ansibleeev1.ExtraMount{{}} }, "tags": func(t *Target) { t.Strategy.Tags = "x" },
		"topology": func(t *Target) { t.Topology = "zone-b" },
	} {
		if changed := target(change); changed.podKey() == base.podKey() {
			t.Errorf("%s: targets that differ in it would share a Pod", name)
		}
	}
	same := target(func(t *Target) { t.Host, t.Vars, t.Files = "other", nil, nil })
	if same.podKey() != base.podKey() {
		t.Error("hosts that differ only in variables and files could share a Pod")
	}
}

func pendingOf(t Target) *pendingTarget {
	return &pendingTarget{Target: t, hash: t.Hash(), access: t.Access(), podKey: t.podKey(), serial: 3, attempt: 2}
}

func TestRunName(t *testing.T) {
	long := strings.Repeat("long-role-name.", 16)
	for name, c := range map[string]struct{ role, step, prefix string }{
		"role and step":           {"compute", "nova", "compute-nova-"},
		"no role":                 {"", "nova-cleanup", "nova-cleanup-"},
		"dots become dashes":      {"a.b", "c.d", "a-b-c-d-"},
		"a long role is cut":      {long, "nova", "long-role-name-long-role-name-"},
		"a long step is cut":      {"r", strings.Repeat("s", 63), "r-sss"},
		"a cut ends in no dash":   {strings.Repeat("x", 51) + ".y", "nova", strings.Repeat("x", 51) + "-"},
		"a digit can come first":  {"1st", "nova", "1st-nova-"},
		"a role of 253 is enough": {strings.Repeat("r", 253), "nova", "rrr"},
	} {
		t.Run(name, func(t *testing.T) {
			o := pendingOf(target(func(t *Target) { t.Role, t.Step.Name = c.role, c.step }))
			got := runName([]*pendingTarget{o})
			if problems := validation.IsDNS1123Label(got); len(problems) > 0 {
				t.Errorf("%q is no name of a Job: %v", got, problems)
			}
			if !strings.HasPrefix(got, c.prefix) {
				t.Errorf("the name is %q; want it to start with %q", got, c.prefix)
			}
			if again := runName([]*pendingTarget{o}); again != got {
				t.Errorf("the name is %q and then %q", got, again)
			}
		})
	}
}

func TestRunNameIsMadeOfWhatTheRunDoes(t *testing.T) {
	base := runName([]*pendingTarget{pendingOf(target(nil))})
	for name, change := range map[string]func(*pendingTarget){
		"hash": func(o *pendingTarget) { o.hash = "x" }, "serial": func(o *pendingTarget) { o.serial++ }, "attempt": func(o *pendingTarget) { o.attempt++ },
		"access": func(o *pendingTarget) { o.access = "x" }, "rerun": func(o *pendingTarget) { o.Rerun = "A" }, "owner": func(o *pendingTarget) { o.OwnerUID = "x" },
		"host": func(o *pendingTarget) { o.Host = "x" }, "pod": func(o *pendingTarget) { o.podKey = "x" },
	} {
		o := pendingOf(target(nil))
		change(o)
		if runName([]*pendingTarget{o}) == base {
			t.Errorf("%s: runs that differ in it have the same name", name)
		}
	}
	if two := runName([]*pendingTarget{pendingOf(target(nil)), pendingOf(target(func(t *Target) { t.Host = "i" }))}); two == base {
		t.Error("a run with one host more has the same name")
	}
}

func TestNewAnsibleEE(t *testing.T) {
	a, b := pendingOf(target(nil)), pendingOf(target(func(t *Target) { t.Host, t.Rerun = "i", "A" }))
	a.Strategy.Tags, a.Strategy.SkipTags, a.Strategy.Limit, a.Topology = "t", "s", "h", "zone-a"
	a.Step.TaskTimeoutSeconds = ptr.To[int32](30)
	got := newAnsibleEE("run-1", []*pendingTarget{a, b})
	want := ansibleeev1.OpenStackAnsibleEESpec{
		Playbook: "edpm.operators.nova", Image: "ee:1", Env: a.Env, NetworkAttachments: []string{"net"},
		SSHKeySecretName: "key", InputsSecretName: "run-1", BackoffLimit: ptr.To[int32](0), AnsibleTags: "t", AnsibleSkipTags: "s",
		TaskTimeoutSeconds: ptr.To[int32](30), TopologyRef: &topologyv1.TopologyRef{Name: "zone-a"}, Step: "nova", Role: "role", OwnerKind: "Kind",
		Targets: []ansibleeev1.Target{
			{Host: "h", OwnerUID: "uid", Hash: a.hash, Access: a.access, Serial: 3, Attempt: 2},
			{Host: "i", OwnerUID: "uid", Hash: b.hash, Access: b.access, Serial: 3, Attempt: 2, Rerun: "A"},
		},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("the spec differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{common.ResultsFinalizer}, got.Finalizers); diff != "" {
		t.Errorf("the finalizers differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{common.StepLabel: "nova", common.RoleLabel: "role"}, got.Labels); diff != "" {
		t.Errorf("the labels differ (-want +got):\n%s", diff)
	}
	secret := newInputs("run-1", a, map[string][]byte{"inventory": []byte("x")})
	if !ptr.Deref(secret.Immutable, false) || secret.Labels[common.RunInputsLabel] != "true" || secret.Name != "run-1" {
		t.Errorf("the inputs are %+v; want an immutable Secret run-1 with its label", secret.ObjectMeta)
	}
}

func TestTheTimeLimitOfATaskCausesNoRun(t *testing.T) {
	base, limited := target(nil), target(func(t *Target) { t.Step.TaskTimeoutSeconds = ptr.To[int32](30) })
	if base.Hash() != limited.Hash() || base.Access() != limited.Access() {
		t.Error("a target with a time limit has another hash")
	}
	if base.podKey() == limited.podKey() {
		t.Error("targets with different time limits share a run")
	}
}

func TestARunWithoutATopologyRefersToNone(t *testing.T) {
	if ref := newAnsibleEE("run-1", []*pendingTarget{pendingOf(target(nil))}).Spec.TopologyRef; ref != nil {
		t.Errorf("the run refers to %+v", ref)
	}
}

func TestLabelsAreLabelValues(t *testing.T) {
	o := pendingOf(target(func(t *Target) { t.Role, t.Step.Name = strings.Repeat("r", 62)+".example.com", strings.Repeat("s", 63) }))
	o.then = []nextStep{{Step: Step{Name: "another"}}}
	for label, value := range labels(o) {
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
			t.Errorf("%s: %q: %v", label, value, errs)
		}
	}
}

func TestDescribeNamesTheStepTheRunAndTheRemedy(t *testing.T) {
	for want, s := range map[string]State{
		"Step nova is running in r1": {Phase: Running, Step: "nova", Run: "r1"},
		"Step nova failed in r1 (attempt 2, next at 2026-03-01T12:00:00Z): boom": {
			Phase: Failed, Step: "nova", Run: "r1", Attempt: 2, Retry: noon, Message: "boom",
		},
		"Step nova failed in r1 (attempt 5, the last): boom": {Phase: RetriesExhausted, Step: "nova", Run: "r1", Attempt: 5, Message: "boom"},
		"Step nova was refused in r1, and is tried again when its inputs change: boom": {
			Phase: Refused, Step: "nova", Run: "r1", Attempt: 1, Message: "boom",
		},
		"Step nova is held: why":                 {Phase: RolloutHeld, Step: "nova", Message: "why"},
		"set deploy to true":                     {Phase: Paused, Step: "nova"},
		"ansibleLimit does not match this host":  {Phase: Excluded, Step: "nova"},
		"remove ansibleTags and ansibleSkipTags": {Phase: Limited, Step: "nova", Run: "r1"},
		"Step nova waits for a run":              {Phase: Pending, Step: "nova"},
		"Every step has run":                     {Phase: Converged},
	} {
		if got := s.Describe(); !strings.Contains(got, want) {
			t.Errorf("%s is described as %q; want %q in it", s.Phase, got, want)
		}
	}
}
