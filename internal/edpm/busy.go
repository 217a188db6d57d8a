package edpm

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// mostQuestions is how many hosts are asked at a time whether they are busy.
const mostQuestions = 8

// withoutBusy returns the pending targets of a batch whose run interrupts nothing. The others
// wait, and are looked at again when they say, or after the first delay of the backoff. Their places
// are free for other hosts meanwhile.
func (e *Engine) withoutBusy(ctx context.Context, batch []*pendingTarget) []*pendingTarget {
	busy, idle := e.askBusy(ctx, batch), make([]*pendingTarget, 0, len(batch))
	for i, o := range batch {
		if busy[i].With == "" {
			idle = append(idle, o)
			continue
		}
		e.mu.Lock()
		news := e.planner.postponeBusy(o, busy[i].With, e.Clock.Now().Add(cmp.Or(busy[i].Again, e.Backoff.Base)))
		e.enqueue(o.Group(), e.Debounce)
		e.mu.Unlock()
		if news {
			e.owners.wake(o.owner())
		}
	}
	return idle
}

// Busy is what a host does that a step would interrupt.
type Busy struct {
	// With is what it does, empty if it does nothing.
	With string
	// Again is when it is worth while to ask again; zero if that is not known.
	Again time.Duration
}

// askBusy returns what each of the hosts does that its run would interrupt.
func (e *Engine) askBusy(ctx context.Context, batch []*pendingTarget) []Busy {
	busy, slots := make([]Busy, len(batch)), make(chan struct{}, mostQuestions)
	var asked sync.WaitGroup
	for i, o := range batch {
		if !o.interrupts {
			continue
		}
		slots <- struct{}{}
		asked.Go(func() {
			busy[i] = e.owners.busy(ctx, o.owner())
			<-slots
		})
	}
	asked.Wait()
	return busy
}

// busy returns what the host of an owner does that a step would interrupt. One that cannot be
// read has other reasons to wait.
func (o owners) busy(ctx context.Context, id ownerID) Busy {
	kind := o.kinds[id.kind]
	if kind.Busy == nil {
		return Busy{}
	}
	obj := kind.New()
	if err := o.reader.Get(ctx, types.NamespacedName{Namespace: id.namespace, Name: id.name}, obj); err != nil {
		return Busy{}
	}
	return kind.Busy(ctx, obj)
}
