package openstackansibleee

import (
	"context"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

func TestARunThatFailedIsATraceOfItsOwn(t *testing.T) {
	seen, before := tracetest.NewInMemoryExporter(), otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(seen)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })

	start := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	run := &ansibleeev1.OpenStackAnsibleEE{Status: ansibleeev1.OpenStackAnsibleEEStatus{
		JobStatus: ansibleeev1.JobFailed, StartTime: &start, CompletionTime: ptr.To(metav1.NewTime(start.Add(time.Minute))),
	}}
	run.Status.Conditions.MarkFalse(condition.ReadyCondition, ansibleeev1.JobFailedReason, condition.SeverityError, "1 of 2 hosts failed")
	record(context.Background(), run)

	spans := seen.GetSpans()
	if len(spans) != 1 {
		t.Fatalf("there are %d spans; want one", len(spans))
	}
	if s := spans[0]; s.EndTime.Sub(s.StartTime) != time.Minute || s.Status.Code != codes.Error || s.Status.Description != "1 of 2 hosts failed" || s.Parent.IsValid() {
		t.Errorf("the span took %s, is %v, and has the parent %v; want a minute, the condition's message, and none", s.EndTime.Sub(s.StartTime), s.Status, s.Parent)
	}
}

func TestARunThatBeginsAnewIsNoTrace(t *testing.T) {
	record(context.Background(), &ansibleeev1.OpenStackAnsibleEE{}) // has no end
}
