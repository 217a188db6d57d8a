package openstackansibleee

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/tracing"
)

// record adds a span for a run that has just ended, from when its Job was started.
func record(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) {
	end := run.Status.CompletionTime
	if end == nil {
		return // it has begun again
	}
	var err error
	if run.Status.JobStatus == ansibleeev1.JobFailed {
		err = errors.New(phase.ReadyMessage(run))
	}
	start := ptr.Deref(run.Status.StartTime, run.CreationTimestamp)
	tracing.Record(ctx, "run", start.Time, end.Time, err,
		attribute.String("k8s.namespace.name", run.Namespace), attribute.String("k8s.object.name", run.Name),
		attribute.String("edpm.step", run.Spec.Step), attribute.String("edpm.hosts.converged", run.Status.HostsSummary))
}
