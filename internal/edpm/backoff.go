package edpm

import (
	"hash/fnv"
	"math"
	"time"
)

// Backoff says when a failed host is tried again.
type Backoff struct {
	// Base is the time before the second attempt; it doubles with each further one.
	Base time.Duration
	// Max is the longest time between two attempts.
	Max time.Duration
}

// jitter is how far, as a fraction, the time can deviate from the exact one.
const jitter = 0.2

// After returns the time to wait after the given attempt (from 1) of a run. The
// jitter depends on the name of the run, so that hosts that failed together are
// tried again together, in one run.
func (b Backoff) After(attempt int32, run string) time.Duration {
	exact := math.Min(float64(b.Base)*math.Pow(2, float64(attempt-1)), float64(b.Max))
	h := fnv.New32a()
	h.Write([]byte(run))
	deviation := (float64(h.Sum32())/float64(math.MaxUint32)*2 - 1) * jitter
	return time.Duration(exact * (1 + deviation)).Round(time.Second / 10)
}
