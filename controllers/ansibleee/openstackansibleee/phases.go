package openstackansibleee

import (
	"context"
	"fmt"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/recap"
)

// inputs is the phase that turns the spec into a Job.
func (s *scope) inputs(context.Context) error {
	if s.run.Spec.Playbook != "" && s.run.Spec.PlaybookContents != "" {
		return phase.Stalled(condition.InputReadyCondition, ansibleeev1.InvalidSpecReason, "spec.playbook and spec.playbookContents exclude each other: remove one")
	}
	job, err := newJob(s.run, s.DefaultImage)
	if err != nil {
		return phase.Stalled(condition.InputReadyCondition, ansibleeev1.InvalidSpecReason, "%v", err)
	}
	hash, err := inputHash(s.run)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, hashAnnotation, hash)
	s.want = job
	s.run.Status.Conditions.MarkTrue(condition.InputReadyCondition, condition.InputReadyMessage)
	return nil
}

// ensureJob is the phase that makes sure that the Job for the current inputs
// exists, unless it has run already. A Job for other inputs is never cut short.
// A run with targets is never run twice: the engine starts another one instead.
func (s *scope) ensureJob(ctx context.Context) error {
	hash := s.want.Annotations[hashAnnotation]
	once := len(s.run.Spec.Targets) > 0
	if once && ended(s.run.Status.JobStatus) {
		return nil
	}
	job := &batchv1.Job{}
	err := s.Get(ctx, client.ObjectKeyFromObject(s.run), job)
	switch {
	case apierrors.IsNotFound(err) && s.final(hash):
		return nil
	case apierrors.IsNotFound(err) && s.run.Status.Hash[inputKey] == hash:
		return s.missingJob(ctx)
	case apierrors.IsNotFound(err):
		return s.createJob(ctx, hash)
	case err != nil:
		return err
	case !metav1.IsControlledBy(job, s.run):
		return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.InvalidSpecReason,
			"Job %s exists and belongs to something else: rename this object or remove the Job", job.Name)
	case once || job.Annotations[hashAnnotation] == hash:
		s.job = job
		return nil
	case !jobFinished(job):
		return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Waiting for the Job of the previous inputs to finish")
	}
	if err := s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the Job of the previous inputs: %w", err)
	}
	return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Waiting for the Job of the previous inputs to go")
}

// final tells whether the inputs have run to their end: the Job may be gone.
func (s *scope) final(hash string) bool {
	return s.run.Status.Hash[inputKey] == hash && ended(s.run.Status.JobStatus)
}

func ended(status ansibleeev1.JobStatus) bool {
	return status == ansibleeev1.JobSucceeded || status == ansibleeev1.JobFailed
}

const (
	// inputKey of status.hash is the hash of the inputs of the last Job.
	inputKey = "input"
	// rerunKey of status.hash is the rerun token that it honoured.
	rerunKey = "rerun"
)

// started notes what the last Job was made from.
func (s *scope) started(hash string) {
	s.run.Status.Hash = map[string]string{inputKey: hash}
	if token := rerunToken(s.run); token != "" {
		s.run.Status.Hash[rerunKey] = token
	}
}

func (s *scope) createJob(ctx context.Context, hash string) error {
	if err := s.place(ctx); err != nil {
		return err
	}
	if err := s.admit(ctx); err != nil {
		return err
	}
	if err := s.adoptInputs(ctx); err != nil {
		return err
	}
	if err := controllerutil.SetControllerReference(s.run, s.want, s.Scheme()); err != nil {
		return err
	}
	err := s.Create(ctx, s.want)
	if apierrors.IsAlreadyExists(err) {
		return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Job %s is being created", s.want.Name)
	}
	if apierrors.IsInvalid(err) {
		s.fail()
		s.started(hash)
		return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.InvalidSpecReason, "The API server refuses the Job: %v", err)
	}
	if err != nil {
		return fmt.Errorf("creating Job %s: %w", s.want.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Started Job", "hosts", len(s.run.Spec.Targets))
	s.job = s.want
	s.started(hash)
	s.run.Status.Hosts, s.run.Status.HostsSummary, s.run.Status.CompletionTime = nil, "", nil
	return nil
}

// ownInputs tells whether the inputs were made for this run alone, by the
// execution engine. Those that a person named are left as they are: else who may
// make a run could have any Secret deleted, by giving the run its name.
func (s *scope) ownInputs() bool {
	return len(s.run.Spec.Targets) > 0 && s.run.Spec.InputsSecretName == s.run.Name
}

// dropInputs deletes inputs that have served: they hold passwords.
func (s *scope) dropInputs(ctx context.Context) error {
	if !s.ownInputs() {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.run.Namespace, Name: s.run.Spec.InputsSecretName}}
	if err := client.IgnoreNotFound(s.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("deleting the inputs of the run: %w", err)
	}
	return nil
}

// adoptInputs makes the Secret with the inputs go when the run goes.
func (s *scope) adoptInputs(ctx context.Context) error {
	if !s.ownInputs() {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.run.Namespace, Name: s.run.Spec.InputsSecretName}}
	bare := secret.DeepCopy()
	if err := controllerutil.SetOwnerReference(s.run, secret, s.Scheme()); err != nil {
		return err
	}
	err := s.Patch(ctx, secret, client.MergeFrom(bare))
	if apierrors.IsNotFound(err) {
		s.fail() // nobody creates it again for this run
		return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.InvalidSpecReason, "Secret %s with the inputs of the run does not exist", secret.Name)
	}
	return err
}

// outcome is the phase that reads the Job and the recap of its Pod.
func (s *scope) outcome(ctx context.Context) error {
	status := &s.run.Status
	if s.job == nil {
		return s.verdict(status.JobStatus, recap.Recap{Hosts: status.Hosts}, nil)
	}
	status.JobName, status.StartTime = s.job.Name, s.job.Status.StartTime
	if !jobFinished(s.job) {
		status.JobStatus = ansibleeev1.JobPending
		if ptr.Deref(s.job.Status.Ready, 0) > 0 {
			status.JobStatus = ansibleeev1.JobRunning
		}
		return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "%s", progress(s.run))
	}
	result, rerr := s.readRecap(ctx)
	if rerr != nil && !isRecapError(rerr) {
		return rerr
	}
	if !s.final(s.job.Annotations[hashAnnotation]) {
		if err := s.dropInputs(ctx); err != nil {
			return err
		}
	}
	status.JobStatus = ansibleeev1.JobFailed
	if jobCondition(s.job, batchv1.JobComplete) {
		status.JobStatus = ansibleeev1.JobSucceeded
	}
	status.Hosts, status.CompletionTime = result.Hosts, endOf(s.job)
	s.started(s.job.Annotations[hashAnnotation])
	status.HostsSummary = summary(s.run)
	return s.verdict(status.JobStatus, result, rerr)
}

// verdict is the condition of a finished run.
func (s *scope) verdict(job ansibleeev1.JobStatus, result recap.Recap, rerr error) error {
	switch {
	case job == ansibleeev1.JobSucceeded:
		s.run.Status.Conditions.MarkTrue(ansibleeev1.JobReadyCondition, "Job completed")
		return nil
	case result.Error != "":
		return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.JobFailedReason, "No play was run: %s; see the log of Job %s", result.Error, s.run.Name)
	case rerr != nil:
		return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.JobLostReason, "%v; see the log and events of Job %s", rerr, s.run.Name)
	}
	return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.JobFailedReason, "%s", failures(result.Hosts))
}

func progress(run *ansibleeev1.OpenStackAnsibleEE) string {
	if n := len(run.Spec.Targets); n > 0 {
		return fmt.Sprintf("Job in progress on %d hosts", n)
	}
	return "Job in progress"
}

func summary(run *ansibleeev1.OpenStackAnsibleEE) string {
	converged := 0
	for _, h := range run.Status.Hosts {
		if h.Converged() {
			converged++
		}
	}
	return fmt.Sprintf("%d/%d", converged, max(len(run.Spec.Targets), len(run.Status.Hosts)))
}

// failures names the first hosts that failed.
func failures(hosts []ansibleeev1.HostStatus) string {
	const most = 3
	var bad []string
	n := 0
	for _, h := range hosts {
		if h.Converged() {
			continue
		}
		if n++; n <= most {
			bad = append(bad, fmt.Sprintf("%s (%s)", h.Name, orDefault(h.Message, "no message")))
		}
	}
	if n == 0 {
		return "The Job failed although no host did; see its log"
	}
	return fmt.Sprintf("%d of %d hosts failed: %s", n, len(hosts), strings.Join(bad, ", "))
}
