package phase

import (
	"context"
	"time"
)

// schedule is when an object is looked at again in any case; zero means never.
type schedule struct{ after time.Duration }

type scheduleKey struct{}

// Again has the object looked at again after a time, if nothing wakes it before: for what
// time alone changes, such as a certificate that comes to its end.
func Again(ctx context.Context, after time.Duration) {
	if s, ok := ctx.Value(scheduleKey{}).(*schedule); ok {
		s.after = s.or(max(after, time.Second))
	}
}

// Soon has the object looked at again once its status is written: for what may be done only
// when the status says so.
func Soon(ctx context.Context) {
	if s, ok := ctx.Value(scheduleKey{}).(*schedule); ok {
		s.after = s.or(staleDelay)
	}
}

func withSchedule(ctx context.Context) (context.Context, *schedule) {
	s := &schedule{}
	return context.WithValue(ctx, scheduleKey{}, s), s
}

// or returns the shorter of two times of which zero means never.
func (s *schedule) or(other time.Duration) time.Duration {
	if s.after == 0 || other == 0 {
		return max(s.after, other)
	}
	return min(s.after, other)
}
