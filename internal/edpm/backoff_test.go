package edpm

import (
	"fmt"
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	b := Backoff{Base: 10 * time.Second, Max: 5 * time.Minute}
	for attempt, exact := range map[int32]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 5: 160 * time.Second,
		6: 5 * time.Minute, 7: 5 * time.Minute, 64: 5 * time.Minute, 2000: 5 * time.Minute,
	} {
		for i := range 200 {
			run := fmt.Sprint("run-", i)
			got := b.After(attempt, run)
			low, high := time.Duration(float64(exact)*0.8)-time.Second/10, time.Duration(float64(exact)*1.2)+time.Second/10
			if got < low || got > high {
				t.Fatalf("After(%d, %s) = %v; want between %v and %v", attempt, run, got, low, high)
			}
		}
	}
}

func TestBackoffOfOneRunIsTheSameForAllItsHosts(t *testing.T) {
	b := Backoff{Base: time.Minute, Max: time.Hour}
	if first, again := b.After(3, "run"), b.After(3, "run"); first != again {
		t.Errorf("After(3, run) = %v and then %v: hosts that failed together would part", first, again)
	}
	seen := map[time.Duration]bool{}
	for i := range 50 {
		seen[b.After(3, fmt.Sprint("run-", i))] = true
	}
	if len(seen) < 25 {
		t.Errorf("50 runs have only %d different times: there is no jitter", len(seen))
	}
}

func TestBackoffNeverGoesBackwards(t *testing.T) {
	if got := (Backoff{}).After(1, "run"); got != 0 {
		t.Errorf("After of the zero Backoff = %v; want 0", got)
	}
	b := Backoff{Base: time.Second, Max: time.Hour}
	for attempt := int32(1); attempt < 40; attempt++ {
		if got := b.After(attempt, "run"); got <= 0 {
			t.Fatalf("After(%d) = %v; want more than 0", attempt, got)
		}
	}
}
