package edpm

import (
	"fmt"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// maxInputs is the most bytes that the inputs of a run may have: a Secret holds
// 1 MiB, its encoding and metadata included.
const maxInputs = 900 << 10

func size(data map[string][]byte) int {
	n := 0
	for k, v := range data {
		n += len(k) + len(v)
	}
	return n
}

// runName is made of what the run does, and fits the 63 characters of a Job's name.
func runName(batch []*pendingTarget) string {
	type part struct {
		Target ansibleeev1.Target
		Pod    string
	}
	parts := make([]part, 0, len(batch))
	for _, o := range batch {
		t := o.target()
		t.Machine = "" // names stay as they were before runs had machines
		parts = append(parts, part{t, o.podKey})
	}
	prefix := batch[0].Step.Name
	if then := batch[0].then; len(then) > 0 {
		prefix += "-to-" + then[len(then)-1].Name
	}
	if role := batch[0].Role; role != "" {
		prefix = role + "-" + prefix
	}
	if batch[0].check {
		prefix = "check-" + prefix
	}
	prefix = strings.Trim(strings.ToLower(strings.ReplaceAll(prefix, ".", "-")), "-")
	return names.WithHash(prefix, digest(parts), names.MaxLabel)
}

// stepNames of a pending target, with a separator between them.
func (o *pendingTarget) stepNames(separator string) string {
	steps := []string{o.Step.Name}
	for _, s := range o.then {
		steps = append(steps, s.Name)
	}
	return strings.Join(steps, separator)
}

// labels of a run.
func labels(o *pendingTarget) map[string]string {
	l := map[string]string{
		common.StepLabel: names.Fit(o.stepNames("."), names.MaxLabel),
		common.RoleLabel: names.Fit(o.Role, names.MaxLabel),
	}
	if o.check {
		l[common.CheckLabel] = "true"
	}
	return l
}

func newInputs(name string, first *pendingTarget, data map[string][]byte) *corev1.Secret {
	l := labels(first)
	l[common.RunInputsLabel] = "true"
	immutable := true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: first.Namespace, Labels: l},
		Immutable:  &immutable,
		Data:       data,
	}
}

func newAnsibleEE(name string, batch []*pendingTarget) *ansibleeev1.OpenStackAnsibleEE {
	first := batch[0]
	noRetry := int32(0) // the engine retries hosts, not whole runs
	aee := &ansibleeev1.OpenStackAnsibleEE{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: first.Namespace, Labels: labels(first),
			Finalizers: []string{common.ResultsFinalizer},
		},
		Spec: ansibleeev1.OpenStackAnsibleEESpec{
			Image: first.Image,
			Env:   first.Env, ExtraMounts: first.ExtraMounts, NetworkAttachments: first.NetworkAttachments,
			SSHKeySecretName: first.SSHKeySecret, JumpHost: first.JumpHost, InputsSecretName: name, BackoffLimit: &noRetry,
			TaskTimeoutSeconds: first.Step.TaskTimeoutSeconds,
			AnsibleTags:        first.Strategy.Tags, AnsibleSkipTags: first.Strategy.SkipTags,
			Step: first.stepNames(","), Role: first.Role, OwnerKind: first.OwnerKind, Service: first.Service, Removal: first.Step.Removal,
			Check: first.check,
		},
	}
	if steps, _ := first.steps(); len(steps) > 1 {
		for _, s := range steps {
			aee.Spec.Steps = append(aee.Spec.Steps, ansibleeev1.RunStep{Name: s.Name, Playbook: s.Playbook})
		}
	} else {
		aee.Spec.Playbook, aee.Spec.PlaybookContents = first.Step.Playbook, first.Step.PlaybookContents
	}
	if first.Topology != "" {
		aee.Spec.TopologyRef = &topologyv1.TopologyRef{Name: first.Topology}
	}
	for _, o := range batch {
		aee.Spec.Targets = append(aee.Spec.Targets, o.target())
	}
	return aee
}

// newRun returns what matters of an object for one step of one of its hosts.
func newRun(aee *ansibleeev1.OpenStackAnsibleEE, step, host string) *run {
	r := &run{name: aee.Name, step: step, finished: aee.Finished(), object: aee}
	r.target, _ = aee.StepTarget(step, host)
	r.limited = Strategy{Tags: aee.Spec.AnsibleTags, SkipTags: aee.Spec.AnsibleSkipTags}.limited()
	var reached bool
	r.result, r.known, reached = aee.StepHost(step, host)
	if aee.Status.CompletionTime != nil {
		r.end = aee.Status.CompletionTime.Time
	}
	r.problem = problem(aee)
	r.void = r.finished && (!reached || jobReason(aee) == ansibleeev1.JobNotStartedReason)
	if _, any := aee.Host(host); r.finished && !any && !neverPlayed(aee) {
		r.lost = withoutResult(aee)
	}
	return r
}

// neverPlayed reports whether the run said why it did not run any play. None of
// its hosts is the cause.
func neverPlayed(aee *ansibleeev1.OpenStackAnsibleEE) bool {
	return jobReason(aee) == ansibleeev1.JobFailedReason
}

// jobReason is why the Job has not succeeded.
func jobReason(aee *ansibleeev1.OpenStackAnsibleEE) condition.Reason {
	if ready := aee.Status.Conditions.Get(ansibleeev1.JobReadyCondition); ready != nil {
		return ready.Reason
	}
	return ""
}

// withoutResult counts the hosts that the run has no result for.
func withoutResult(aee *ansibleeev1.OpenStackAnsibleEE) int {
	n := 0
	for _, t := range aee.Spec.Targets {
		if _, known := aee.Host(t.Host); !known {
			n++
		}
	}
	return n
}

// fits reports whether the Pod of the run is the one that the target wants.
func (t *Target) fits(aee *ansibleeev1.OpenStackAnsibleEE) bool {
	have, want := aee.Spec, newAnsibleEE(aee.Name, []*pendingTarget{{Target: *t}}).Spec
	for _, step := range have.Steps {
		if step.Name == t.Step.Name {
			have.Playbook = step.Playbook
		}
	}
	same := equality.Semantic.DeepEqual
	return have.Playbook == want.Playbook && have.PlaybookContents == want.PlaybookContents &&
		(have.Image == want.Image || want.Image == "") && have.SSHKeySecretName == want.SSHKeySecretName &&
		have.AnsibleTags == want.AnsibleTags && have.AnsibleSkipTags == want.AnsibleSkipTags &&
		same(have.JumpHost, want.JumpHost) && same(have.NetworkAttachments, want.NetworkAttachments) && same(have.TopologyRef, want.TopologyRef) &&
		same(have.Env, want.Env) && same(have.ExtraMounts, want.ExtraMounts)
}

// problem is what a run complains of; empty when it gets on.
func problem(aee *ansibleeev1.OpenStackAnsibleEE) string {
	ready := aee.Status.Conditions.Get(condition.ReadyCondition)
	if ready == nil || ready.Severity == condition.SeverityInfo || ready.Severity == condition.SeverityNone {
		return ""
	}
	return ready.Message
}

// steps names the step, and those that stand where it does, with the verb that follows.
func (s State) steps(one, many string) string {
	if len(s.More) == 0 {
		return fmt.Sprintf("Step %s %s", s.Step, one)
	}
	return fmt.Sprintf("Steps %s %s", strings.Join(append([]string{s.Step}, s.More...), ", "), many)
}

// nextRetry is when a target that failed is tried again, nil for any other.
func (s State) nextRetry() *metav1.Time {
	if !s.hasFailed() {
		return nil
	}
	return &metav1.Time{Time: s.Retry.Truncate(time.Second)}
}

// Describe says in words where a target stands.
func (s State) Describe() string {
	switch s.Phase {
	case Running:
		if s.Message != "" {
			return fmt.Sprintf("%s stuck in %s: %s", s.steps("is", "are"), s.Run, s.Message)
		}
		return fmt.Sprintf("%s running in %s", s.steps("is", "are"), s.Run)
	case Failed:
		return fmt.Sprintf("Step %s failed in %s (attempt %d, next at %s): %s", s.Step, s.Run, s.Attempt, s.Retry.UTC().Format(time.RFC3339), s.Message)
	case RetriesExhausted:
		return fmt.Sprintf("Step %s failed in %s (attempt %d, the last): %s", s.Step, s.Run, s.Attempt, s.Message)
	case Refused:
		return fmt.Sprintf("Step %s was refused in %s, and is tried again when its inputs change: %s", s.Step, s.Run, s.Message)
	case HostBusy:
		return fmt.Sprintf("Step %s waits for what it would interrupt: %s", s.Step, s.Message)
	case HostNotEmpty:
		return fmt.Sprintf("Step %s waits for an empty host, as %s found: %s", s.Step, s.Run, s.Message)
	case RolloutHeld:
		return fmt.Sprintf("Step %s is held: %s", s.Step, s.Message)
	case TooLarge:
		return fmt.Sprintf("Step %s cannot be run: %s", s.Step, s.Message)
	case Paused:
		return fmt.Sprintf("Step %s is due, but deploy is false: set deploy to true to run it", s.Step)
	case Excluded:
		return fmt.Sprintf("Step %s is due, but ansibleLimit does not match this host: change or remove it", s.Step)
	case Limited:
		return fmt.Sprintf("%s in %s restricted by tags; remove ansibleTags and ansibleSkipTags to run the rest", s.steps("ran", "ran, the first"), s.Run)
	case Pending:
		return fmt.Sprintf("Step %s waits for a run", s.Step)
	}
	return "Every step has run with the current inputs"
}

// lastOf returns the run of each step of each host that was created last.
func lastOf(runs []ansibleeev1.OpenStackAnsibleEE) map[Key]*run {
	last := map[Key]*run{}
	for i := range runs {
		for _, t := range runs[i].Spec.Targets {
			for _, key := range keysOf(&runs[i], t.Host) {
				if r := newRun(&runs[i], key.Step, key.Host); !r.void && r.after(last[key]) {
					last[key] = r
				}
			}
		}
	}
	return last
}

// after reports whether a run of a step on a host was created after another one, if there is one.
func (r *run) after(old *run) bool {
	return old == nil || !r.object.CreationTimestamp.Before(&old.object.CreationTimestamp) &&
		(old.target.OwnerUID != r.target.OwnerUID || old.target.Serial < r.target.Serial)
}
