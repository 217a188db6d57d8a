package openstackansibleee

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/attachments"
)

const (
	runnerDir = "/runner"
	sshKey    = "ssh-privatekey"
	// jumpDir has the key of the jump host.
	jumpDir = runnerDir + "/jump"
	// keepSeconds is how long a Job that is not preserved stays.
	keepSeconds = 600
	// deadlineSeconds for each step ends a run that hangs.
	deadlineSeconds = 2 * 3600
	defaultUID      = 1001
	taskTimeout     = "ANSIBLE_TASK_TIMEOUT"
)

// newJob returns the Job of a run, or an error that says which field of the
// spec is wrong.
func newJob(run *ansibleeev1.OpenStackAnsibleEE, image string) (*batchv1.Job, error) {
	env, err := environment(run)
	if err != nil {
		return nil, err
	}
	uid := ptr.Deref(run.Spec.UID, defaultUID)
	pod := corev1.PodSpec{
		RestartPolicy:                cmp.Or(run.Spec.RestartPolicy, corev1.RestartPolicyNever),
		ServiceAccountName:           run.Spec.ServiceAccountName,
		AutomountServiceAccountToken: ptr.To(false),
		EnableServiceLinks:           ptr.To(false),
		DNSConfig:                    run.Spec.DNSConfig,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: &uid, RunAsGroup: &uid, FSGroup: &uid,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if run.Spec.DNSConfig != nil && len(run.Spec.DNSConfig.Nameservers) > 0 {
		pod.DNSPolicy = corev1.DNSNone
	}
	container := corev1.Container{
		Name: cmp.Or(run.Spec.Name, "openstackansibleee"), Image: cmp.Or(run.Spec.Image, image),
		ImagePullPolicy: corev1.PullIfNotPresent, Args: arguments(run), Env: env,
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: cmp.Or(run.Spec.EnvConfigMapName, ansibleeev1.DefaultEnvConfigMap)},
			Optional:             ptr.To(true),
		}}},
		// Not FallbackToLogsOnError: a log can hold what a status must not.
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	pod.Volumes, container.VolumeMounts = volumes(run)
	pod.Containers = []corev1.Container{container}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: run.Name, Namespace: run.Namespace, Labels: podLabels(run)},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To(ptr.Deref(run.Spec.BackoffLimit, 6)), ActiveDeadlineSeconds: ptr.To(deadlineSeconds * int64(max(1, len(run.Spec.Steps)))),
			TTLSecondsAfterFinished: ttl(run),
			// Never two Pods at once: a host must not be configured by both.
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels(run), Annotations: podAnnotations(run)},
				Spec:       pod,
			},
		},
	}, nil
}

func ttl(run *ansibleeev1.OpenStackAnsibleEE) *int32 {
	if ptr.Deref(run.Spec.PreserveJobs, true) {
		return nil
	}
	return ptr.To[int32](keepSeconds)
}

func podLabels(run *ansibleeev1.OpenStackAnsibleEE) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, run.Labels)
	maps.Copy(labels, map[string]string{"app": ansibleeev1.RunnerApp, ansibleeev1.RunnerLabel: "true", "openstackansibleee_cr": run.Name})
	return labels
}

func podAnnotations(run *ansibleeev1.OpenStackAnsibleEE) map[string]string {
	annotations := map[string]string{}
	if len(run.Spec.NetworkAttachments) > 0 {
		annotations[attachments.Annotation] = attachments.Value(run.Namespace, run.Spec.NetworkAttachments)
	}
	if len(run.Spec.Targets) > 0 {
		hosts := make([]string, 0, len(run.Spec.Targets))
		for _, t := range run.Spec.Targets {
			hosts = append(hosts, t.Host)
		}
		annotations[common.HostsAnnotation] = strings.Join(hosts, ",")
	}
	return annotations
}

func arguments(run *ansibleeev1.OpenStackAnsibleEE) []string {
	args := run.Spec.Args
	if len(args) == 0 {
		args = []string{"ansible-runner", "run", runnerDir, "-p", cmp.Or(run.Spec.Playbook, "playbook.yaml")}
	}
	for _, a := range args {
		if a == "-i" || a == "--ident" {
			return args
		}
	}
	return append(args[:len(args):len(args)], "-i", run.Name)
}

// environment of the runner. The image's entry point turns the RUNNER_
// variables into files.
func environment(run *ansibleeev1.OpenStackAnsibleEE) ([]corev1.EnvVar, error) {
	env := []corev1.EnvVar{{Name: "ANSIBLE_FORKS", Value: strconv.Itoa(max(5, len(run.Spec.Targets)))}}
	add := func(name, value string) {
		if value != "" {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	add("RUNNER_PLAYBOOK", cmp.Or(run.Spec.PlaybookContents, stepsPlaybook(run)))
	if n := len(run.Spec.Steps); n > 0 {
		add("EDPM_RUN_STEPS", strconv.Itoa(n))
	}
	add("RUNNER_INVENTORY", run.Spec.Inventory)
	add("RUNNER_CMDLINE", cmdLine(run))
	if len(run.Spec.ExtraVars) > 0 {
		vars, err := yaml.Marshal(run.Spec.ExtraVars)
		if err != nil {
			return nil, fmt.Errorf("spec.extraVars: %w", err)
		}
		add("RUNNER_EXTRA_VARS", string(vars))
	}
	if run.Spec.SSHKeySecretName != "" {
		add("ANSIBLE_PRIVATE_KEY_FILE", runnerDir+"/ssh/"+sshKey)
	}
	if jump := run.Spec.JumpHost; jump != nil {
		text, err := json.Marshal(jump)
		if err != nil {
			return nil, fmt.Errorf("spec.jumpHost: %w", err)
		}
		add("EDPM_JUMP_HOST", string(text))
	}
	seconds := run.Spec.TaskTimeoutSeconds
	if seconds != nil {
		add(taskTimeout, strconv.Itoa(int(*seconds)))
	}
	for _, e := range run.Spec.Env {
		if seconds == nil || e.Name != taskTimeout { // that of the step wins
			env = append(env, e)
		}
	}
	return env, nil
}

func cmdLine(run *ansibleeev1.OpenStackAnsibleEE) string {
	parts := []string{}
	if run.Spec.Check {
		parts = append(parts, "--check")
	}
	for _, option := range []struct{ flag, value string }{
		{"--tags", run.Spec.AnsibleTags}, {"--skip-tags", run.Spec.AnsibleSkipTags}, {"--limit", run.Spec.AnsibleLimit},
	} {
		if option.value != "" {
			parts = append(parts, option.flag, shellQuote(option.value))
		}
	}
	if run.Spec.CmdLine != "" {
		parts = append(parts, run.Spec.CmdLine)
	}
	return strings.Join(parts, " ")
}

// shellQuote makes one word of a value, as the runner splits like a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }

// volumes of the runner: a writable /runner and /tmp, the key, the inputs of
// the run and the extra mounts.
func volumes(run *ansibleeev1.OpenStackAnsibleEE) ([]corev1.Volume, []corev1.VolumeMount) {
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	vols := []corev1.Volume{{Name: "runner", VolumeSource: empty}, {Name: "tmp", VolumeSource: empty}}
	mounts := []corev1.VolumeMount{{Name: "runner", MountPath: runnerDir}, {Name: "tmp", MountPath: "/tmp"}}
	if name := run.Spec.SSHKeySecretName; name != "" {
		vols = append(vols, secretVolume("ssh-key", name, sshKey))
		mounts = append(mounts, corev1.VolumeMount{Name: "ssh-key", MountPath: runnerDir + "/ssh", ReadOnly: true})
	}
	if jump := run.Spec.JumpHost; jump != nil {
		vols = append(vols, secretVolume("jump-key", jump.SSHPrivateKeySecret, sshKey))
		mounts = append(mounts, corev1.VolumeMount{Name: "jump-key", MountPath: jumpDir, ReadOnly: true})
	}
	if name := run.Spec.InputsSecretName; name != "" {
		vols = append(vols, secretVolume("inputs", name))
		mounts = append(mounts,
			corev1.VolumeMount{Name: "inputs", MountPath: runnerDir + "/config", ReadOnly: true},
			corev1.VolumeMount{Name: "inputs", MountPath: runnerDir + "/inventory/hosts.yaml", SubPath: "inventory", ReadOnly: true})
	}
	for _, extra := range run.Spec.ExtraMounts {
		for _, v := range extra.Volumes {
			vols = append(vols, v.Volume())
		}
		mounts = append(mounts, extra.Mounts...)
	}
	return vols, mounts
}

func secretVolume(name, secret string, keys ...string) corev1.Volume {
	source := &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o440)}
	for _, k := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: k, Path: k})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: source}}
}

// rerunToken is the token on the run, or the last one that was honoured: taking
// it away asks for nothing.
func rerunToken(run *ansibleeev1.OpenStackAnsibleEE) string {
	return cmp.Or(run.Annotations[common.RerunAnnotation], run.Status.Hash[rerunKey])
}

// inputHash changes when the Job has to be run again: when a person has changed
// the spec or the token. Another version of the operator, which may make another
// Job of the same spec, is no reason.
func inputHash(run *ansibleeev1.OpenStackAnsibleEE) (string, error) {
	text, err := json.Marshal([]any{run.Spec, rerunToken(run)})
	if err != nil {
		return "", fmt.Errorf("hashing the spec: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
