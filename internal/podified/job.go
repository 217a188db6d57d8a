package podified

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete

const (
	// AppLabel with JobApp is on every Job that a Deployer makes, and on its pods.
	AppLabel = "app"
	// JobApp is the value of AppLabel.
	JobApp = "openstack-job"
	// nameAnnotation is the name of a Job without the hash.
	nameAnnotation = "edpm.openstack.org/job"
	// templateAnnotation is the hash of the pod template of a Job.
	templateAnnotation = "edpm.openstack.org/job-template"
	// jobSeconds is how long a Job that has succeeded stays, for its log to be read.
	jobSeconds = 24 * 3600
	// tokenSeparator is between the hash of the inputs of a Job and that of the token.
	tokenSeparator = "."
)

// Job prepares what the pods of a service need, such as the schema of a database. It
// runs once for each content of its image, commands and configuration.
type Job struct {
	// Name of the Job, to which a hash is appended, and of its configuration.
	Name string
	// Purpose completes "Waiting for Job x to ...".
	Purpose string
	Image   string
	// Commands run one after the other. As they may run again if the pod ends, they
	// must be idempotent.
	Commands [][]string
	// Config files by name, in the directory ConfigDir. They may be secret.
	Config    map[string][]byte
	ConfigDir string
	// Writable is a directory for temporary data.
	Writable string
	// User and group of the processes, unless the cluster chooses one.
	User               int64
	NodeSelector       map[string]string
	NetworkAttachments []string
	Resources          corev1.ResourceRequirements
	// Causes of failures next to those of databases.
	Causes []Cause
	// Left is what the container left as its termination message, as far as it may be shown,
	// once RunJob has seen that the Job has succeeded: a reason, and what it is about.
	Left struct{ Reason, Details string }
	// Finished, if set, is called with the pod that has succeeded, until it returns nil. The
	// Job runs again if that pod no longer exists.
	Finished func(context.Context, *corev1.Pod) error
}

// causes that the Job can name.
func (j *Job) causes() []Cause { return slices.Concat(j.Causes, causes) }

// Jobs are the hashes with which Jobs have succeeded last, by Job.Name. They are kept
// in the status of the owner: a Job that was deleted does not run again.
type Jobs map[string]string

// jobRun is one Job in one reconciliation.
type jobRun struct {
	*deployment
	*Job
	condition condition.Type
	hash      string
	want      *batchv1.Job
}

// RunJob returns nil once the Job has succeeded with the present inputs, and a
// *phase.Halt of the condition before. A Job never gives up: it is started again with
// increasing delays until it succeeds or its inputs change. Two Jobs of one name
// never run at once.
func (d *Deployer) RunJob(ctx context.Context, owner phase.Object, t condition.Type, done Jobs, job *Job) error {
	if job.Image == "" {
		return phase.Stalled(t, common.ImageMissingReason, "%s", images.Missing("Job "+job.Name))
	}
	r := d.newJobRun(owner, t, job, hashFor(owner, done, job))
	present, err := r.clear(ctx, done)
	if err != nil {
		return err
	}
	switch {
	case done[job.Name] == r.hash:
		return nil
	case present == nil:
		return r.start(ctx)
	case jobCondition(present, batchv1.JobComplete):
		if err := r.readMessage(ctx, present); err != nil {
			return err
		}
		done[job.Name] = r.hash
		return nil
	}
	return r.progress(ctx, present)
}

// HasSucceeded reports whether a Job has succeeded with the present inputs.
func HasSucceeded(owner client.Object, done Jobs, job *Job) bool {
	return done[job.Name] == hashFor(owner, done, job)
}

// hashFor is with what a Job is to succeed.
func hashFor(owner client.Object, done Jobs, job *Job) string {
	return hashWithToken(job.hash(), owner.GetAnnotations()[common.RerunAnnotation], done[job.Name])
}

func (d *Deployer) newJobRun(owner phase.Object, t condition.Type, job *Job, hash string) *jobRun {
	service := &Service{
		Name: job.Name, Component: JobApp, NodeSelector: job.NodeSelector, NetworkAttachments: job.NetworkAttachments,
		User: job.User, Config: job.Config, ConfigDir: job.ConfigDir, Pod: job.pod(),
	}
	p := &deployment{Deployer: d, Service: service.labelled(d.identity(owner, JobApp)), owner: owner}
	p.Labels[AppLabel] = JobApp
	r := &jobRun{deployment: p, Job: job, condition: t, hash: hash}
	r.want = r.job()
	return r
}

// hashWithToken returns the hash of the inputs of a Job and of the token by which a person asks
// to run it again, for example after a database was restored. A token that is removed asks for
// nothing: then it is the hash of what was done with it.
func hashWithToken(hash, token, done string) string {
	switch {
	case token != "":
		return hash + tokenSeparator + inputs.Digest(map[string][]byte{"token": []byte(token)})[:8]
	case strings.HasPrefix(done, hash+tokenSeparator):
		return done
	}
	return hash
}

// nameHash is what tells the names of Jobs apart: the hash, if there was no token.
func nameHash(hash string) string {
	if !strings.Contains(hash, tokenSeparator) {
		return hash
	}
	return inputs.Digest(map[string][]byte{"hash": []byte(hash)})
}

// hash of what decides what the Job does.
func (j *Job) hash() string {
	var commands strings.Builder
	for _, command := range j.Commands {
		fmt.Fprintf(&commands, "%q\n", command)
	}
	return inputs.Digest(map[string][]byte{
		"image": []byte(j.Image), "commands": []byte(commands.String()), "config": []byte(inputs.Digest(j.Config)),
	})[:32]
}

func (j *Job) pod() corev1.PodSpec {
	state := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure,
		Containers: []corev1.Container{{
			Name: "job", Image: j.Image, Command: []string{"/bin/bash", "-c", script(j.Commands)}, Resources: j.Resources,
			Env: []corev1.EnvVar{{Name: causesVariable, Value: patterns(j.causes())}},
			// Not FallbackToLogsOnError: a log can hold what a status must not.
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			VolumeMounts:             []corev1.VolumeMount{{Name: "state", MountPath: j.Writable}},
		}},
		Volumes: []corev1.Volume{{Name: "state", VolumeSource: state}},
	}
}

// job is what is wanted.
func (r *jobRun) job() *batchv1.Job {
	template := r.template()
	template.Spec.Affinity = nil // there is one pod
	meta := r.meta(names.WithHash(r.Job.Name, nameHash(r.hash), names.MaxLabel))
	meta.Annotations = map[string]string{nameAnnotation: r.Job.Name, templateAnnotation: digestOf(template)}
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](math.MaxInt32), TTLSecondsAfterFinished: ptr.To[int32](jobSeconds),
		// Never two pods at once: a schema must not be changed by both.
		PodReplacementPolicy: ptr.To(batchv1.Failed), Template: template,
	}}
}

func digestOf(template corev1.PodTemplateSpec) string {
	text, err := template.Marshal()
	if err != nil {
		return "" // it has nothing that cannot be written
	}
	return inputs.Digest(map[string][]byte{"template": text})[:32]
}

// clear deletes the Jobs of other inputs, and one that has not succeeded and is
// to run in another way, for example on another node. It returns the Job of the
// present inputs, nil if there is none, and waits until all others no longer exist. One
// of other inputs may have undone what was done with the present ones before.
func (r *jobRun) clear(ctx context.Context, done Jobs) (*batchv1.Job, error) {
	list := &batchv1.JobList{}
	if err := r.List(ctx, list, client.InNamespace(r.owner.GetNamespace()), client.MatchingFields{jobIndex: jobKey(string(r.owner.GetUID()), r.Job.Name)}); err != nil {
		return nil, fmt.Errorf("listing the Jobs of %s: %w", r.Job.Name, err)
	}
	var present *batchv1.Job
	for i := range list.Items {
		job := &list.Items[i]
		if r.valid(job) {
			present = job
			continue
		}
		if done[r.Job.Name] == r.hash {
			delete(done, r.Job.Name)
		}
		if err := r.deleteJob(ctx, job); err != nil {
			return nil, err
		}
		return nil, phase.Waiting(r.condition, podifiedv1.JobRunningReason, "Inputs changed: waiting for Job %s to be deleted", job.Name)
	}
	return present, nil
}

// valid reports whether a Job is that of the present inputs.
func (r *jobRun) valid(job *batchv1.Job) bool {
	if job.Name != r.want.Name || !job.DeletionTimestamp.IsZero() {
		return false
	}
	return jobCondition(job, batchv1.JobComplete) || job.Annotations[templateAnnotation] == r.want.Annotations[templateAnnotation]
}

// start writes the configuration and the Job.
func (r *jobRun) start(ctx context.Context) error {
	if err := r.networks(ctx); err != nil {
		return err
	}
	if err := r.claimJob(ctx); err != nil {
		return err
	}
	if err := r.writeConfig(ctx); err != nil {
		return r.halt(err)
	}
	if err := r.write(ctx, "Job", r.want, &batchv1.Job{}); err != nil {
		return err
	}
	return phase.Waiting(r.condition, podifiedv1.JobRunningReason, "Waiting for Job %s to %s", r.want.Name, r.Purpose)
}

// write writes a child of a kind.
func (r *jobRun) write(ctx context.Context, kind string, want, present client.Object, options ...apply.Option) error {
	err := apply.Child(ctx, r.Client, r.Manager, r.owner, want, present, options...)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return phase.Stalled(r.condition, podifiedv1.RefusedReason, "The API server rejects %s %s: %v", kind, want.GetName(), err)
	}
	return apply.Halt(r.condition, err)
}

// claimJob checks, past the cache, which does not have the Jobs of others, that the
// name is free.
func (r *jobRun) claimJob(ctx context.Context) error {
	job := &batchv1.Job{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(r.want), job)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := apply.Check(r.Client, r.owner, job); err != nil {
		return apply.Halt(r.condition, err)
	}
	return phase.Waiting(r.condition, podifiedv1.JobRunningReason, "Waiting for Job %s to %s", r.want.Name, r.Purpose) // the cache is late
}

// halt turns a halt of another condition into one of that of the Job.
func (r *jobRun) halt(err error) error {
	if halt := (*phase.Halt)(nil); errors.As(err, &halt) {
		halt.Type = r.condition
	}
	return err
}

// progress says how far a Job is.
func (r *jobRun) progress(ctx context.Context, job *batchv1.Job) error {
	if jobCondition(job, batchv1.JobFailed) {
		return phase.Stalled(r.condition, podifiedv1.JobFailedReason, "Job %s (%s) failed. Delete it to retry", job.Name, r.Purpose)
	}
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingFields{jobPodIndex: job.Name}); err != nil {
		return fmt.Errorf("listing the pods of Job %s: %w", job.Name, err)
	}
	for i := range pods.Items {
		if trouble := troubleOf(&pods.Items[i], r.causes()); trouble.Reason != "" {
			return phase.Failing(r.condition, trouble.Reason, "Job %s (%s) keeps failing: %s. Retrying automatically. See kubectl logs job/%[1]s", job.Name, r.Purpose, trouble.Text)
		}
	}
	return phase.Waiting(r.condition, podifiedv1.JobRunningReason, "Waiting for Job %s to %s", job.Name, r.Purpose)
}

// readMessage keeps what a Job that has succeeded left. It reads past the cache, which may
// not show yet how the pod has ended.
func (r *jobRun) readMessage(ctx context.Context, job *batchv1.Job) error {
	if r.Finished == nil && !slices.ContainsFunc(r.Causes, func(c Cause) bool { return c.Detailed }) {
		return nil
	}
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return fmt.Errorf("listing the pods of Job %s: %w", job.Name, err)
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			if ended := container.State.Terminated; ended != nil && ended.ExitCode == 0 {
				r.Left.Reason, r.Left.Details = splitMessage(ended.Message)
				if r.Finished != nil {
					return r.Finished(ctx, &pod)
				}
			}
		}
	}
	if r.Finished == nil {
		return nil
	}
	if err := r.deleteJob(ctx, job); err != nil {
		return err
	}
	return phase.Waiting(r.condition, podifiedv1.JobRunningReason, "Waiting for Job %s to %s: it runs again, because its pod no longer exists", job.Name, r.Purpose)
}

// KeepJobs deletes the Jobs of the owner but those of the names, and forgets them:
// what is wanted again later runs again.
func (d *Deployer) KeepJobs(ctx context.Context, owner client.Object, done Jobs, names ...string) error {
	list := &batchv1.JobList{}
	if err := d.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingFields{jobIndex: string(owner.GetUID())}); err != nil {
		return fmt.Errorf("listing Jobs: %w", err)
	}
	for i := range list.Items {
		if job := &list.Items[i]; !slices.Contains(names, job.Annotations[nameAnnotation]) {
			if err := d.deleteJob(ctx, job); err != nil {
				return err
			}
		}
	}
	maps.DeleteFunc(done, func(name, _ string) bool { return !slices.Contains(names, name) })
	return nil
}

// deleteJob deletes a Job, which then stays until its pods no longer exist.
func (d *Deployer) deleteJob(ctx context.Context, job *batchv1.Job) error {
	if !job.DeletionTimestamp.IsZero() {
		return nil
	}
	err := d.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", job.Name, err)
	}
	return nil
}

func jobCondition(job *batchv1.Job, t batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
