package watch

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watcher is a controller that starts what it is given.
type watcher struct {
	controller.Controller
	started int
}

func (w *watcher) Watch(s source.Source) error {
	w.started++
	return s.Start(context.Background(), nil)
}

// synced is a source whose objects are read with a result.
type synced struct{ result error }

func (synced) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}
func (s synced) WaitForSync(context.Context) error { return s.result }

func TestOnce(t *testing.T) {
	c, watch, ctx, slow := &watcher{}, &Once{}, t.Context(), errors.New("timed out")
	if err := watch.Begin(ctx, c, synced{slow}); !errors.Is(err, slow) {
		t.Errorf("an error of the source is reported: %v", err)
	}
	stopping, stop := context.WithCancel(ctx)
	stop()
	if err := watch.Begin(stopping, c, synced{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was cut short is no success: %v", err)
	}
	for range 2 {
		if err := watch.Begin(ctx, c, synced{}); err != nil {
			t.Error(err)
		}
	}
	if c.started != 3 {
		t.Errorf("watched %d times, not again after each failure and never after that", c.started)
	}
}
