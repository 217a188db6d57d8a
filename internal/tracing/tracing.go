// Package tracing sends traces of what the manager does to an OpenTelemetry
// collector, where one is named.
//
// Everything is set as OpenTelemetry's own specification has it, by variables of
// the environment, https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/,
// and nothing by flags: traces are on when OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// service is the name that a collector sees, unless OTEL_SERVICE_NAME has another.
const service = "edpm-operators"

// goodbye is how long the last spans may take to be sent.
const goodbye = 5 * time.Second

// Enabled reports whether the environment names a collector.
func Enabled() bool {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	return endpoint != "" && os.Getenv("OTEL_SDK_DISABLED") != "true"
}

// SetupTransport makes requests to the API server part of the traces of what they
// are made for. Those that are made for nothing in particular, as watches, make none.
func SetupTransport(config *rest.Config) {
	if !Enabled() {
		return
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next,
			otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanFromContext(r.Context()).IsRecording() }),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Path }))
	})
}

// SetupWithManager sends traces for as long as the manager runs. A collector that
// cannot be reached is no error: spans are dropped, and the log says so. An error
// means that the environment says something impossible.
func SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	if !Enabled() {
		return nil
	}
	provider, err := newProvider(ctx)
	if err != nil {
		return fmt.Errorf("setting up traces from the variables OTEL_*: %w", err)
	}
	otel.SetTracerProvider(provider)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { ctrl.Log.WithName("tracing").Error(err, "Failed to send traces") }))
	return mgr.Add(everywhere(func(ctx context.Context) error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		return provider.Shutdown(last)
	}))
}

// everywhere runs in every manager, whoever leads.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

func newProvider(ctx context.Context) (*sdktrace.TracerProvider, error) {
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, err
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}

func tracer() trace.Tracer {
	return otel.Tracer("github.com/edpm-operators/edpm-operators")
}

// Start begins a span and returns the function that ends it, with the error that
// it ended with. Without a collector both do nothing.
func Start(ctx context.Context, name string, about ...attribute.KeyValue) (context.Context, func(error)) {
	ctx, span := tracer().Start(ctx, name, trace.WithAttributes(about...))
	return ctx, func(err error) {
		fail(span, err)
		span.End()
	}
}

// Record adds a span for something that continued elsewhere from start to end.
func Record(ctx context.Context, name string, start, end time.Time, err error, about ...attribute.KeyValue) {
	_, span := tracer().Start(ctx, name, trace.WithTimestamp(start), trace.WithAttributes(about...))
	fail(span, err)
	span.End(trace.WithTimestamp(end))
}

func fail(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
}
