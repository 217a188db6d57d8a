package podified

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// longestCronJob is the longest name of a CronJob: it is a part of those of its Jobs.
const longestCronJob = 52

// CronJob is a Job that runs at the times of a schedule. Its name is its own, without a
// hash.
type CronJob struct {
	Job
	Schedule string
	// Suspend runs none.
	Suspend bool
}

// RunCronJob returns nil if the last Job of the CronJob has succeeded or none has run
// with the present inputs, and else a *phase.Halt of the condition, which is only
// information while the Job runs. As other Jobs, one never gives up; the next one
// waits for it. Deployer.Watch wakes kinds that have CronJobs.
func (d *Deployer) RunCronJob(ctx context.Context, owner phase.Object, t condition.Type, c *CronJob) error {
	r := d.newJobRun(owner, t, &c.Job, c.Job.hash())
	want := r.cronJob(c)
	if err := r.networks(ctx); err != nil {
		return r.halt(err)
	}
	if err := r.claimCronJob(ctx, want); err != nil {
		return err
	}
	if err := r.writeConfig(ctx); err != nil {
		return r.halt(err)
	}
	present := &batchv1.CronJob{}
	if err := r.write(ctx, "CronJob", want, present, apply.Own); err != nil {
		return err
	}
	last, err := r.last(ctx, present)
	if err != nil || last == nil || jobCondition(last, batchv1.JobComplete) {
		return err
	}
	return r.progress(ctx, last)
}

func (r *jobRun) cronJob(c *CronJob) *batchv1.CronJob {
	template := batchv1.JobTemplateSpec{ObjectMeta: r.want.ObjectMeta, Spec: r.want.Spec}
	template.Name, template.Namespace = "", ""
	return &batchv1.CronJob{ObjectMeta: r.meta(cronJobName(c.Name)), Spec: batchv1.CronJobSpec{
		Schedule: c.Schedule, Suspend: ptr.To(c.Suspend), ConcurrencyPolicy: batchv1.ForbidConcurrent,
		SuccessfulJobsHistoryLimit: ptr.To[int32](1), FailedJobsHistoryLimit: ptr.To[int32](1), JobTemplate: template,
	}}
}

func cronJobName(name string) string {
	if len(name) <= longestCronJob {
		return name
	}
	return names.WithHash(name, inputs.Digest(map[string][]byte{"name": []byte(name)}), longestCronJob)
}

// claimCronJob checks that the name is free or ours. The cache does not have the
// CronJobs of others.
func (r *jobRun) claimCronJob(ctx context.Context, want *batchv1.CronJob) error {
	present := &batchv1.CronJob{}
	err := r.Get(ctx, client.ObjectKeyFromObject(want), present)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, client.ObjectKeyFromObject(want), present)
	}
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return apply.Halt(r.condition, r.check(present))
}

// last is the Job that was created last with the present inputs, nil if there is none.
// One of other inputs that has not succeeded is deleted: what it lacks may be there now.
func (r *jobRun) last(ctx context.Context, cronJob *batchv1.CronJob) (*batchv1.Job, error) {
	list := &batchv1.JobList{}
	if err := r.List(ctx, list, client.InNamespace(cronJob.Namespace), client.MatchingFields{jobIndex: string(cronJob.UID)}); err != nil {
		return nil, fmt.Errorf("listing the Jobs of CronJob %s: %w", cronJob.Name, err)
	}
	var last *batchv1.Job
	for i := range list.Items {
		job := &list.Items[i]
		switch {
		case job.Annotations[templateAnnotation] == r.want.Annotations[templateAnnotation]:
			if last == nil || last.CreationTimestamp.Before(&job.CreationTimestamp) {
				last = job
			}
		case !jobCondition(job, batchv1.JobComplete):
			if err := r.deleteJob(ctx, job); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}

// KeepCronJobs deletes the CronJobs of the owner, and with them their Jobs, but those of
// the names.
func (d *Deployer) KeepCronJobs(ctx context.Context, owner client.Object, names ...string) error {
	list := &batchv1.CronJobList{}
	if err := d.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingFields{cronJobIndex: string(owner.GetUID())}); err != nil {
		return fmt.Errorf("listing CronJobs: %w", err)
	}
	var failed error
	for i := range list.Items {
		if c := &list.Items[i]; !slices.ContainsFunc(names, func(name string) bool { return cronJobName(name) == c.Name }) {
			failed = errors.Join(failed, apply.Delete(ctx, d.Client, owner, c, apply.Own))
		}
	}
	return failed
}
