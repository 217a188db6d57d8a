package tracing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// collector receives spans over the network, as a real one does.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	mu      sync.Mutex
	service string
	spans   map[string]*tracev1.Span
}

func (c *collector) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range req.ResourceSpans {
		for _, about := range of.Resource.Attributes {
			if about.Key == "service.name" {
				c.service = about.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans[span.Name] = span
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// newCollector starts one, and names it in the environment.
func newCollector(t *testing.T) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &collector{spans: map[string]*tracev1.Span{}}, grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	return c
}

// fakeManager runs what is added to it until it is stopped.
type fakeManager struct {
	manager.Manager
	added []manager.Runnable
}

func (m *fakeManager) Add(r manager.Runnable) error {
	m.added = append(m.added, r)
	return nil
}

// stop runs everything with a context that has ended.
func (m *fakeManager) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range m.added {
		if err := r.Start(ctx); err != nil {
			t.Error(err)
		}
	}
}

// get makes a request with the transport of a client of the API server.
func get(ctx context.Context, t *testing.T, config *rest.Config, path string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func TestACollectorGetsWhatWasDoneAndTheRequestsThatWereMadeForIt(t *testing.T) {
	c, mgr := newCollector(t), &fakeManager{}
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	config := &rest.Config{Host: api.URL}
	SetupTransport(config)
	if err := SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}

	ctx, end := Start(t.Context(), "reconcile Thing")
	get(ctx, t, config, "/api/things")
	end(errors.New("it went wrong"))
	get(t.Context(), t, config, "/api/watched")
	began := time.Now().Add(-time.Minute).Truncate(time.Second)
	Record(t.Context(), "run", began, began.Add(time.Second), nil)
	mgr.stop(t)

	if c.service != "edpm-operators" || len(c.spans) != 3 {
		t.Fatalf("service %q sent %v; want edpm-operators and three spans: none for a request of nobody's", c.service, c.spans)
	}
	root, request, run := c.spans["reconcile Thing"], c.spans["GET /api/things"], c.spans["run"]
	if root == nil || request == nil || run == nil {
		t.Fatalf("the spans are %v", c.spans)
	}
	if !cmp.Equal(request.ParentSpanId, root.SpanId) {
		t.Error("the request is not part of the reconciliation")
	}
	if root.Status.Code != tracev1.Status_STATUS_CODE_ERROR || root.Status.Message != "it went wrong" {
		t.Errorf("the status of the reconciliation is %v; want the error", root.Status)
	}
	if took := run.EndTimeUnixNano - run.StartTimeUnixNano; took != uint64(time.Second) || run.StartTimeUnixNano != uint64(began.UnixNano()) {
		t.Errorf("the run took %d ns; want a second", took)
	}
}

func TestNothingIsSentUnlessACollectorIsNamed(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"no variable": {},
		"turned off":  {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range env {
				t.Setenv(key, value)
			}
			config, mgr := &rest.Config{}, &fakeManager{}
			SetupTransport(config)
			if err := SetupWithManager(t.Context(), mgr); err != nil || len(mgr.added) > 0 || config.WrapTransport != nil {
				t.Errorf("SetupWithManager = %v, and adds %d; want nothing", err, len(mgr.added))
			}
		})
	}
}

func TestAWrongVariableIsAnError(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/does/not/exist")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "no pair")
	if err := SetupWithManager(t.Context(), &fakeManager{}); err == nil || !strings.Contains(err.Error(), "OTEL_") {
		t.Errorf("SetupWithManager = %v; want an error that names the variables", err)
	}
}
