package openstackansibleee

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/recap"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// inputs is the phase that turns the spec into a Job.
func (s *scope) inputs(ctx context.Context) error {
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
	if s.run.Status.Hash[inputKey] != hash {
		if err := s.admissible(); err != nil {
			return err
		}
	}
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, hashAnnotation, hash)
	job.Spec.Template.Spec.Containers[0].Resources = resourcesOf(s.Resources, len(s.run.Spec.Targets))
	s.want = job
	return s.environment(ctx, hash)
}

// environment checks that what the environment is made from exists, before the
// Job is made: a Pod without it would never start.
func (s *scope) environment(ctx context.Context, hash string) error {
	if s.run.Status.Hash[inputKey] == hash {
		return nil
	}
	_, err := s.Inputs.EnvDigests(ctx, s.run.Namespace, s.run.Spec.Env, "")
	return inputs.Halt(condition.InputReadyCondition, err)
}

// admissible checks again, before a Job is made, what admission refuses: it may
// have been off when the run was written. A Job that was made already is not judged
// again by the rules of another version.
func (s *scope) admissible() error {
	if cmp.Or(s.run.Spec.Image, s.DefaultImage) == "" {
		return phase.Stalled(condition.InputReadyCondition, common.RunnerImageMissingReason, "%s", images.MissingRunner("spec.image"))
	}
	at, spec := field.NewPath("spec"), s.run.Spec
	errs := validate.ReachEnv(at.Child("env"), spec.Env)
	errs = append(errs, validate.Inventory(at.Child("inventory"), spec.Inventory)...)
	errs = append(errs, validate.ExtraVars(at.Child("extraVars"), spec.ExtraVars)...)
	errs = append(errs, validate.CmdLine(at.Child("cmdLine"), spec.CmdLine)...)
	if len(errs) > 0 {
		return phase.Stalled(condition.InputReadyCondition, ansibleeev1.InvalidSpecReason, "%v", errs.ToAggregate())
	}
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
		return apply.Halt(ansibleeev1.JobReadyCondition, apply.Check(s.Client, s.run, job))
	case once || job.Annotations[hashAnnotation] == hash:
		s.job = job
		return nil
	case !jobFinished(job):
		return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Waiting for the Job of the previous inputs to finish")
	}
	if err := s.deleteJob(ctx, job); err != nil {
		return err
	}
	return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Waiting until the Job of the previous inputs is deleted")
}

// final reports whether the inputs have run to their end: the Job may be gone.
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
	if err := s.stillWanted(ctx); err != nil {
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
		return s.unseenJob(ctx)
	}
	if apierrors.IsInvalid(err) {
		s.fail()
		s.started(hash)
		return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.InvalidSpecReason, "The API server rejects the Job: %v", err)
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

// stillWanted asks the API server whether the run is there and not being deleted.
// A leader with an old cache would start one that was withdrawn.
func (s *scope) stillWanted(ctx context.Context) error {
	now := &ansibleeev1.OpenStackAnsibleEE{}
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.run), now)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || now.UID != s.run.UID || !now.DeletionTimestamp.IsZero() {
		return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobCancelledReason, "The run is being deleted")
	}
	return nil
}

// jobPoll is how often a run looks whether its name is free: the Jobs of others
// are not in the cache, so that nothing requeues it.
const jobPoll = 30 * time.Second

// unseenJob decides about a Job of the name that the cache does not show: it is
// late, or the Job is another user's.
func (s *scope) unseenJob(ctx context.Context) error {
	job := &batchv1.Job{}
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.run), job)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	halt := phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Job %s is being created", s.want.Name)
	if err == nil && !errors.As(apply.Halt(ansibleeev1.JobReadyCondition, apply.Check(s.Client, s.run, job)), &halt) {
		return halt
	}
	halt.After = jobPoll
	return halt
}

// deleteJob deletes the Job of the run, and its Pods before it.
func (s *scope) deleteJob(ctx context.Context, job *batchv1.Job) error {
	err := s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", job.Name, err)
	}
	return nil
}

// outcome is the phase that reads the Job and the recap of its Pod.
func (s *scope) outcome(ctx context.Context) error {
	status := &s.run.Status
	if s.job == nil {
		return s.settled()
	}
	status.JobName, status.StartTime = s.job.Name, startOf(s.job)
	end, err := s.conclusion(ctx)
	if err != nil {
		return err
	}
	if end == nil {
		// A Pod that has ended is no longer ready, and the run has started all the same.
		if status.JobStatus != ansibleeev1.JobRunning {
			status.JobStatus = ansibleeev1.JobPending
		}
		if ptr.Deref(s.job.Status.Ready, 0) > 0 {
			status.JobStatus = ansibleeev1.JobRunning
		}
		return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "%s", progress(s.run))
	}
	if !s.final(s.job.Annotations[hashAnnotation]) {
		if err := s.dropInputs(ctx); err != nil {
			return err
		}
	}
	status.JobStatus, status.Hosts, status.CompletionTime = end.status, end.recap.Hosts, end.at
	s.started(s.job.Annotations[hashAnnotation])
	status.HostsSummary = summary(s.run)
	return s.verdict(status.JobStatus, end.recap, end.lost)
}

// settled repeats the result of a run that has finished. The Pod with the cause may
// be gone.
func (s *scope) settled() error {
	status := &s.run.Status
	if s.said != nil && s.said.Status == corev1.ConditionFalse && status.JobStatus == ansibleeev1.JobFailed {
		return phase.Stalled(ansibleeev1.JobReadyCondition, s.said.Reason, "%s", s.said.Message)
	}
	return s.verdict(status.JobStatus, recap.Recap{Hosts: status.Hosts}, nil)
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
	return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.JobFailedReason, "%s", failures(s.run, result.Hosts))
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
		if run.Converged(h) {
			converged++
		}
	}
	return fmt.Sprintf("%d/%d", converged, max(len(run.Spec.Targets), len(run.Status.Hosts)))
}

// failures names the first hosts that failed.
func failures(run *ansibleeev1.OpenStackAnsibleEE, hosts []ansibleeev1.HostStatus) string {
	const most = 3
	var bad []string
	n := 0
	for _, h := range hosts {
		if run.Converged(h) {
			continue
		}
		if n++; n <= most {
			bad = append(bad, fmt.Sprintf("%s (%s)", h.Name, cmp.Or(failedStep(run, h)+h.Message, "no message")))
		}
	}
	if n == 0 {
		return "The Job failed although no host did; see its log"
	}
	return fmt.Sprintf("%d of %d hosts failed: %s", n, len(hosts), strings.Join(bad, ", "))
}

// failedStep names the step of a run of several that a host has not done.
func failedStep(run *ansibleeev1.OpenStackAnsibleEE, h ansibleeev1.HostStatus) string {
	if done := run.StepsDone(h); done < len(run.Spec.Steps) {
		return "step " + run.Spec.Steps[done].Name + ": "
	}
	return ""
}
