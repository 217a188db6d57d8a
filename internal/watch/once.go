package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Once is the watch of a kind that may not be there yet when the manager starts.
type Once struct {
	mu    sync.Mutex
	begun bool
}

// seen is how long the objects of a kind may take to be read for the first time.
const seen = 30 * time.Second

// Begin has the controller watch the source, once, and returns when what there is has
// been seen: nothing that happens later is missed. After an error the next call begins
// with its own source, as controller-runtime ends one whose objects were not read in time.
func (o *Once) Begin(ctx context.Context, c controller.Controller, events source.SyncingSource) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun {
		return nil
	}
	if err := c.Watch(events); err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, seen)
	defer cancel()
	if err := events.WaitForSync(ctx); err != nil {
		return fmt.Errorf("reading what there is: %w", err)
	}
	o.begun = ctx.Err() == nil // no error is reported when the manager stops
	return ctx.Err()
}
