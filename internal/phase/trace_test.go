package phase

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// errPlay ends the play of TestATraceHasEachPhase.
var errPlay = errors.New("it broke")

type play struct{}

func (play) opening(context.Context) error { return nil }
func (play) drama(context.Context) error   { return errPlay }
func (play) finale(context.Context) error  { return nil }
func (play) pause(context.Context) error   { return Waiting(first, "Pause", "The curtain is down") }

func TestATraceHasEachPhaseThatRan(t *testing.T) {
	type span struct {
		Name   string
		Failed bool
	}
	for name, c := range map[string]struct {
		phases []Func
		fault  error
		want   []span
	}{
		"a fault":   {[]Func{play{}.opening, play{}.drama, play{}.finale}, errPlay, []span{{"opening", false}, {"drama", true}, {"reconcile NovaCell", true}}},
		"a waiting": {[]Func{play{}.pause, play{}.finale}, nil, []span{{"pause", false}, {"reconcile NovaCell", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			seen, before := tracetest.NewInMemoryExporter(), otel.GetTracerProvider()
			otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(seen)))
			t.Cleanup(func() { otel.SetTracerProvider(before) })
			if _, err := newStage(t).run(t, c.phases...); !errors.Is(err, c.fault) {
				t.Fatalf("the error is %v", err)
			}
			var spans []span
			for _, each := range seen.GetSpans() {
				spans = append(spans, span{each.Name, each.Status.Code == codes.Error})
			}
			if diff := cmp.Diff(c.want, spans); diff != "" {
				t.Errorf("the spans differ (-want +got):\n%s", diff)
			}
		})
	}
}
