package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/types"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// guest in a state that changed a minute ago.
func guest(state, task string) computeservice.Guest {
	return computeservice.Guest{ID: "g", Name: "guest", State: state, Task: task, Updated: ago(time.Minute)}
}

func locked() computeservice.Guest {
	g := guest("active", "")
	g.Locked = true
	return g
}

func since(g computeservice.Guest, d time.Duration) computeservice.Guest {
	g.Updated = ago(d)
	return g
}

// migrated is a migration of the guest off the host that changed some time ago.
func migrated(kind, status string, ours bool, d time.Duration) computeservice.Migration {
	return computeservice.Migration{ID: "m-" + status + d.String(), Guest: "g", Source: "h", Target: "other", Kind: kind, Status: status, Ours: ours, Changed: ago(d)}
}

func TestEachGuestIsJudgedByWhatNovaReports(t *testing.T) {
	const live, cold, stop = validate.DrainLive, validate.DrainCold, validate.DrainStop
	type migrations = []computeservice.Migration
	for title, c := range map[string]struct {
		mode       string
		guest      computeservice.Guest
		migrations migrations
		note       *Note
		want       Verdict
	}{
		"one that runs is moved while it runs":             {live, guest("active", ""), nil, nil, Verdict{State: Waiting, Call: LiveMigrate}},
		"one that is paused is, too":                       {live, guest("paused", ""), nil, nil, Verdict{State: Waiting, Call: LiveMigrate}},
		"one that is shut off is moved as it is":           {live, guest("stopped", ""), nil, nil, Verdict{State: Waiting, Call: Migrate}},
		"one that runs is moved cold":                      {cold, guest("active", ""), nil, nil, Verdict{State: Waiting, Call: Migrate}},
		"one that is paused is not moved cold":             {cold, guest("paused", ""), nil, nil, Verdict{State: Blocked, Text: "is paused: openstack server unpause g"}},
		"one that runs is shut down":                       {stop, guest("active", ""), nil, nil, Verdict{State: Waiting, Call: Shutdown}},
		"one that is shut off stays":                       {stop, guest("stopped", ""), nil, nil, Verdict{State: Settled}},
		"one that is locked is not moved":                  {live, locked(), nil, nil, Verdict{State: Blocked, Text: "is locked: openstack server unlock g"}},
		"one in ERROR is not moved":                        {live, guest("error", ""), nil, nil, Verdict{State: Blocked, Text: "is in ERROR: see its fault with openstack server show, and rebuild, reset or delete it"}},
		"one that is suspended is not moved":               {live, guest("suspended", ""), nil, nil, Verdict{State: Blocked, Text: "is suspended: openstack server resume g"}},
		"one that is rescued is not moved":                 {live, guest("rescued", ""), nil, nil, Verdict{State: Blocked, Text: "is rescued: openstack server unrescue g"}},
		"one whose resize is not confirmed is not moved":   {live, guest("resized", ""), nil, nil, Verdict{State: Blocked, Text: "has a resize that was not confirmed: openstack server resize confirm or revert g"}},
		"one of which nova knows nothing now is not moved": {live, guest("", ""), nil, nil, Verdict{State: Blocked, Text: "is in a cell whose database nova does not reach"}},
		"one that is being moved is left alone":            {live, guest("active", "migrating"), nil, nil, Verdict{State: Moving}},
		"one that is being shut down is left alone":        {stop, guest("active", "powering-off"), nil, nil, Verdict{State: Moving}},
		"one of which a snapshot is made waits":            {live, guest("active", "image_uploading"), nil, nil, Verdict{State: Waiting}},
		"one in a task for hours needs a person": {live, since(guest("active", "migrating"), 2*time.Hour), nil, nil,
			Verdict{State: Blocked, Stuck: true, Text: "is in task migrating since 2026-01-02T01:04:05Z: see the log of nova-compute, and openstack server set --state"}},
		"one whose migration has just begun is left alone": {live, guest("active", ""), migrations{migrated("live-migration", "accepted", true, 0)}, nil, Verdict{State: Moving}},
		"one whose migration stands still needs a person": {live, guest("active", "migrating"), migrations{migrated("live-migration", "running", true, 2*time.Hour)}, nil,
			Verdict{State: Blocked, Stuck: true, Text: "has a migration that is running since 2026-01-02T01:04:05Z: see the log of nova-compute on h, and openstack server migration abort"}},
		"one whose cold migration stands still needs a person": {cold, guest("active", "resize_migrating"), migrations{migrated("migration", "migrating", true, 2*time.Hour)}, nil,
			Verdict{State: Blocked, Stuck: true, Text: "has a migration that is migrating since 2026-01-02T01:04:05Z: see the logs of nova-compute on h and other, and openstack server set --state"}},
		"one whose migration is queued waits for the others": {live, guest("active", "migrating"), migrations{migrated("live-migration", "queued", true, 2*time.Hour)}, nil, Verdict{State: Moving}},
		"one that came back is moved again":                  {live, guest("active", ""), migrations{migrated("live-migration", "completed", true, time.Second)}, nil, Verdict{State: Waiting, Call: LiveMigrate}},
		"one that failed a moment ago is tried later": {live, guest("active", ""), migrations{migrated("live-migration", "error", true, 10*time.Second)}, nil,
			Verdict{State: Failed, Migration: "m-error10s", Text: "could not be moved", Retry: now.Add(50 * time.Second)}},
		"one that failed is tried again": {live, guest("active", ""), migrations{migrated("live-migration", "error", true, time.Minute)}, nil,
			Verdict{State: Failed, Call: LiveMigrate, Migration: "m-error1m0s", Text: "could not be moved", Retry: now}},
		"one that failed often is tried less often": {live, guest("active", ""), migrations{
			migrated("live-migration", "failed", true, 3*time.Minute), migrated("live-migration", "error", true, 9*time.Minute), migrated("live-migration", "cancelled", false, 20*time.Minute),
		}, nil, Verdict{State: Failed, Migration: "m-failed3m0s", Text: "could not be moved", Retry: now.Add(time.Minute)}},
		"one that failed yesterday is moved": {live, guest("active", ""), migrations{migrated("live-migration", "error", true, 24*time.Hour)}, nil, Verdict{State: Waiting, Call: LiveMigrate}},
		"one that nova refused a moment ago is tried later": {live, guest("active", ""), nil, &Note{Text: "nova refuses it", Attempts: 2, At: ago(time.Minute)},
			Verdict{State: Failed, Text: "nova refuses it", Retry: now.Add(time.Minute)}},
		"one that nova refused is tried again": {live, guest("active", ""), nil, &Note{Text: "nova refuses it", Attempts: 1, At: ago(time.Hour)},
			Verdict{State: Failed, Call: LiveMigrate, Text: "nova refuses it", Retry: ago(59 * time.Minute)}},
		"one that failed after it was refused says why it failed": {live, guest("active", ""), migrations{migrated("live-migration", "error", true, 10*time.Second)}, &Note{Text: "nova refuses it", Attempts: 1, At: ago(time.Hour)},
			Verdict{State: Failed, Migration: "m-error10s", Text: "could not be moved", Retry: now.Add(50 * time.Second)}},

		"one whose host is off is made again elsewhere":   {Evacuation, guest("active", ""), nil, nil, Verdict{State: Waiting, Call: Evacuate}},
		"one that was shut off is, too":                   {Evacuation, guest("stopped", ""), nil, nil, Verdict{State: Waiting, Call: Evacuate}},
		"one that is in ERROR since it was tried is, too": {Evacuation, guest("error", ""), nil, nil, Verdict{State: Waiting, Call: Evacuate}},
		"one with a task that does not end is, too":       {Evacuation, guest("active", "powering-off"), nil, nil, Verdict{State: Waiting, Call: Evacuate}},
		"one whose live migration does not end is, too":   {Evacuation, guest("active", "migrating"), migrations{migrated("live-migration", "running", true, 2*time.Hour)}, nil, Verdict{State: Waiting, Call: Evacuate}},
		"one that is locked is not made again elsewhere":  {Evacuation, locked(), nil, nil, Verdict{State: Blocked, Text: "is locked: openstack server unlock g"}},
		"one that was paused is not made again elsewhere": {Evacuation, guest("paused", ""), nil, nil,
			Verdict{State: Blocked, Text: "is paused, in which nova evacuates no guest: openstack server set --state error g, or delete it"}},
		"one that is shelved is not made again elsewhere": {Evacuation, guest("shelved", ""), nil, nil, Verdict{State: Blocked, Text: "is shelved: openstack server unshelve g"}},
		"one that is being made again is left alone":      {Evacuation, guest("active", "rebuilding"), migrations{migrated("evacuation", "pre-migrating", true, 0)}, nil, Verdict{State: Moving}},
		"one whose evacuation stands still needs a person": {Evacuation, guest("active", "rebuilding"), migrations{migrated("evacuation", "accepted", false, 2*time.Hour)}, nil,
			Verdict{State: Blocked, Stuck: true, Text: "has an evacuation that is accepted since 2026-01-02T01:04:05Z: see the log of nova-compute on other, and of the conductor"}},
		"one whose evacuation failed is tried again later": {Evacuation, guest("error", ""), migrations{migrated("evacuation", "error", true, 10*time.Second)}, nil,
			Verdict{State: Failed, Migration: "m-error10s", Text: "could not be moved", Retry: now.Add(50 * time.Second)}},
		"one that could not be moved before its host was off is made again": {Evacuation, guest("active", ""), migrations{migrated("live-migration", "error", true, time.Second)}, nil, Verdict{State: Waiting, Call: Evacuate}},
		"one that could not be made again once is moved":                    {live, guest("active", ""), migrations{migrated("evacuation", "error", true, time.Second)}, nil, Verdict{State: Waiting, Call: LiveMigrate}},
	} {
		h := Host{Name: "h", Mode: c.mode, Guests: []computeservice.Guest{c.guest}, Migrations: c.migrations, Notes: map[string]Note{}, Now: now}
		if c.note != nil {
			h.Notes["g"] = *c.note
		}
		c.want.Guest = c.guest
		if diff := cmp.Diff([]Verdict{c.want}, Judge(h)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

func TestAMigrationCountsUntilItHasEnded(t *testing.T) {
	arriving := migrated("live-migration", "running", false, 0)
	arriving.Source, arriving.Target = "other", "h"
	for title, c := range map[string]struct {
		mode      string
		migration computeservice.Migration
		want      []Verdict
	}{
		"a cold one of the drain is confirmed":                {"live", migrated("migration", "finished", true, time.Hour), []Verdict{{State: Moving, Call: Confirm}}},
		"one that is being confirmed":                         {"live", migrated("migration", "confirming", true, 0), []Verdict{{State: Moving}}},
		"one that was confirmed":                              {"live", migrated("migration", "confirmed", true, 0), nil},
		"a cold one of another user is not confirmed":         {"live", migrated("migration", "finished", false, 0), []Verdict{{State: Blocked, Text: "has a migration from h to other that was not confirmed: openstack server resize confirm or revert g"}}},
		"a resize is not confirmed":                           {"live", migrated("resize", "finished", true, 0), []Verdict{{State: Blocked, Text: "has a resize from h to other that was not confirmed: openstack server resize confirm or revert g"}}},
		"one to the host":                                     {"live", arriving, []Verdict{{State: Moving}}},
		"a cold one is confirmed after the end of the drain":  {"", migrated("migration", "finished", true, 0), []Verdict{{State: Moving, Call: Confirm}}},
		"a live one is not followed after the drain":          {"", migrated("live-migration", "running", true, 0), nil},
		"one to a host that is off does not end":              {Evacuation, arriving, nil},
		"an evacuation of another user":                       {Evacuation, migrated("evacuation", "accepted", false, 0), []Verdict{{State: Moving}}},
		"an evacuation that nova-compute has not cleaned up":  {Evacuation, migrated("evacuation", "done", true, 0), nil},
		"one of another user is not followed after the drain": {"", migrated("migration", "running", false, 0), nil},
	} {
		for i := range c.want {
			c.want[i].Guest.ID = "g"
		}
		if diff := cmp.Diff(c.want, Judge(Host{Name: "h", Mode: c.mode, Migrations: []computeservice.Migration{c.migration}, Now: now})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

func TestNoGuestIsMovedAfterTheEndOfTheDrain(t *testing.T) {
	if got := Judge(Host{Name: "h", Guests: []computeservice.Guest{guest("active", "")}, Now: now}); len(got) > 0 {
		t.Errorf("judged are %+v", got)
	}
}

// caller is nova: it refuses what is for a guest of which it knows why.
type caller struct {
	refuses map[string]string
	down    error
	calls   []string
}

func (c *caller) call(name, guest string) error {
	c.calls = append(c.calls, name+" "+guest)
	if why, refused := c.refuses[guest]; refused {
		return &computeservice.RefusedError{Message: why}
	}
	return c.down
}

func (c *caller) LiveMigrate(_ context.Context, guest string) error { return c.call("live", guest) }
func (c *caller) Migrate(_ context.Context, guest string) error     { return c.call("cold", guest) }
func (c *caller) Confirm(_ context.Context, guest string) error     { return c.call("confirm", guest) }
func (c *caller) Stop(_ context.Context, guest string) error        { return c.call("stop", guest) }
func (c *caller) Evacuate(_ context.Context, guest string) error    { return c.call("evacuate", guest) }

func (c *caller) Explain(_ context.Context, guest string) (why, group string, err error) {
	return "why " + guest + "?", "", c.call("explain", guest)
}

// hostOf has guests of the names, which run, and more that are being moved.
func hostOf(parallel, moving int, names ...string) Host {
	h := Host{Name: "h", Mode: validate.DrainLive, Parallel: parallel, Notes: map[string]Note{}, Now: now}
	for _, name := range names {
		h.Guests = append(h.Guests, computeservice.Guest{ID: name, Name: name, State: "active", Updated: now})
	}
	for i := range moving {
		h.Guests = append(h.Guests, computeservice.Guest{ID: fmt.Sprint("m", i), State: "active", Task: "migrating", Updated: now})
	}
	return h
}

func TestNoMoreGuestsAreMovedAtATimeThanIsSaid(t *testing.T) {
	for title, c := range map[string]struct {
		host  Host
		nova  caller
		calls string
	}{
		"none is moved":                         {hostOf(2, 0, "a", "b", "c"), caller{}, "live a,live b"},
		"one is moved":                          {hostOf(2, 1, "a", "b", "c"), caller{}, "live a"},
		"two are moved":                         {hostOf(2, 2, "a", "b", "c"), caller{}, ""},
		"more are moved than may be":            {hostOf(2, 3, "a", "b", "c"), caller{}, ""},
		"one that is refused takes no place":    {hostOf(2, 0, "a", "b", "c"), caller{refuses: map[string]string{"a": "no"}}, "live a,live b,live c"},
		"nova is not available after the first": {hostOf(2, 0, "a", "b"), caller{down: errors.New("down")}, "live a"},
	} {
		verdicts := Judge(c.host)
		err := Carry(t.Context(), &c.nova, c.host, verdicts)
		if got := strings.Join(c.nova.calls, ","); got != c.calls || !errors.Is(err, c.nova.down) {
			t.Errorf("%s: calls are %q, want %q; the error is %v", title, got, c.calls, err)
		}
	}
}

func TestAMigrationThatStandsStillTakesAPlace(t *testing.T) {
	h := hostOf(1, 1, "a")
	h.Guests[1].Updated = ago(2 * time.Hour)
	nova := &caller{}
	if err := Carry(t.Context(), nova, h, Judge(h)); err != nil || len(nova.calls) > 0 {
		t.Errorf("calls are %q (%v)", nova.calls, err)
	}
}

func TestHundredsOfGuestsAreNotRefusedInARow(t *testing.T) {
	var names []string
	nova := &caller{refuses: map[string]string{}}
	for i := range 100 {
		names = append(names, fmt.Sprintf("g%02d", i))
		nova.refuses[names[i]] = "no"
	}
	h := hostOf(2, 0, names...)
	if err := Carry(t.Context(), nova, h, Judge(h)); err != nil || len(nova.calls) != mostRefusals {
		t.Errorf("it was called %d times (%v), want %d", len(nova.calls), err, mostRefusals)
	}
	nova.calls = nil
	if err := Carry(t.Context(), nova, h, Judge(h)); err != nil || len(nova.calls) != mostRefusals || slices.Contains(nova.calls, "live g00") {
		t.Errorf("the second time it was called %q (%v), want the next ones", nova.calls, err)
	}
}

func TestAConfirmationTakesNoPlaceAndIsTriedAgainLater(t *testing.T) {
	h := hostOf(1, 1)
	h.Migrations = []computeservice.Migration{migrated("migration", "finished", true, 0)}
	nova := &caller{refuses: map[string]string{"g": "its host is down"}}
	for range 2 {
		verdicts := Judge(h)
		if err := Carry(t.Context(), nova, h, verdicts); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(nova.calls, ","); got != "confirm g" {
		t.Errorf("calls are %q, want one", got)
	}
	if text := Summarize(h, Judge(h)).Text; !strings.Contains(text, "g was moved, and nova does not confirm that: nova refuses to confirm it: its host is down (is tried again after 2026-01-02T03:05:05Z)") {
		t.Errorf("it says %q", text)
	}
}

func TestNovaIsAskedOnceWhyAMigrationFailed(t *testing.T) {
	h := hostOf(2, 0, "a")
	m := migrated("live-migration", "error", true, time.Second)
	m.Guest = "a"
	h.Migrations = []computeservice.Migration{m}
	nova := &caller{}
	for range 2 {
		verdicts := Judge(h)
		if err := Explain(t.Context(), nova, h, verdicts); err != nil || verdicts[0].Text != "could not be moved: why a?" {
			t.Errorf("it says %q (%v)", verdicts[0].Text, err)
		}
	}
	if len(nova.calls) != 1 {
		t.Errorf("calls are %q", nova.calls)
	}
}

func TestAFailureIsExplained(t *testing.T) {
	for title, c := range map[string]struct{ why, group, want string }{
		"nova does not say":            {"", "", "could not be moved: see openstack server event list"},
		"nova says":                    {"No PCI", "pair", "could not be moved: No PCI"},
		"no host is left":              {"No valid host was found.", "", "could not be moved: No valid host was found. No other host has room for it, or is allowed by its availability zone or the host that was requested for it"},
		"no host is left in its group": {"No valid host was found.", "pair (affinity)", "could not be moved: No valid host was found. No other host has room for it, or is allowed by its server group pair (affinity), its availability zone or the host that was requested for it"},
	} {
		if got := explanation(c.why, c.group); got != c.want {
			t.Errorf("%s: %q, want %q", title, got, c.want)
		}
	}
}

func TestTheConditionSaysHowFarTheDrainIs(t *testing.T) {
	blocked := func(name string) Verdict {
		return Verdict{Guest: computeservice.Guest{Name: name, ID: "1"}, State: Blocked, Text: "is locked"}
	}
	type outcome struct {
		Reason   condition.Reason
		Severity condition.Severity
		Text     string
		Lively   bool
	}
	off := Host{Name: "h", Mode: Evacuation, Migrations: []computeservice.Migration{migrated("evacuation", "done", true, 0), migrated("evacuation", "error", true, 1)}}
	for title, c := range map[string]struct {
		host     Host
		verdicts []Verdict
		want     outcome
	}{
		"nothing is left on a host that is off": {off, nil, outcome{Text: "nova has no instances on host h: 1 guests were evacuated"}},
		"guests are evacuated":                  {off, []Verdict{{State: Moving}}, outcome{novav1.EvacuatingReason, condition.SeverityInfo, "Host h has guests: 1 being moved", true}},
		"nothing is left":                       {Host{Name: "h"}, nil, outcome{Text: "nova has no instances on host h, and no migrations from or to it that have not ended"}},
		"guests are moved":                      {Host{Name: "h"}, []Verdict{{State: Moving}, {State: Moving}, {State: Waiting}}, outcome{novav1.DrainingReason, condition.SeverityInfo, "Host h has guests: 2 being moved, 1 waiting", true}},
		"one cannot be moved":                   {Host{Name: "h"}, []Verdict{{State: Moving}, blocked("a")}, outcome{novav1.GuestsRemainReason, condition.SeverityError, "Host h has guests: 1 being moved, 1 that cannot be moved: a 1 is locked", true}},
		"one is tried again": {Host{Name: "h"}, []Verdict{{Guest: computeservice.Guest{ID: "1"}, State: Failed, Text: "failed", Retry: now}},
			outcome{novav1.GuestsRemainReason, condition.SeverityWarning, "Host h has guests: 1 that cannot be moved: 1 failed (is tried again after 2026-01-02T03:04:05Z)", false}},
		"all are shut off": {Host{Name: "h"}, []Verdict{{State: Settled}}, outcome{Text: "All 1 guests of host h are shut off, and stay there: start them with openstack server start after the drain"}},
		"many cannot be moved": {Host{Name: "h"}, []Verdict{blocked("a"), blocked("b"), blocked("c"), blocked("d"), blocked("e"), blocked("f"), blocked("g")},
			outcome{novav1.GuestsRemainReason, condition.SeverityError, "Host h has guests: 7 that cannot be moved: a 1 is locked; b 1 is locked; c 1 is locked; d 1 is locked; e 1 is locked; and 2 more", false}},
	} {
		o := Summarize(c.host, c.verdicts)
		got := outcome{Text: o.Text, Lively: o.Lively}
		if o.Problem != nil {
			got.Reason, got.Severity = o.Problem.Reason, o.Problem.Severity
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

func TestGuestsAreCountedByWhatBecomesOfThem(t *testing.T) {
	h := hostOf(2, 2, "a", "b")
	h.Guests = append(h.Guests, locked())
	arriving := migrated("live-migration", "running", false, time.Minute)
	arriving.Guest, arriving.Source, arriving.Target = "new", "other", "h"
	h.Migrations = []computeservice.Migration{arriving}
	for mode, want := range map[string]novav1.GuestsStatus{
		validate.DrainLive: {Total: 5, Moving: 3, Waiting: 2, Remaining: 1},
		"":                 {Total: 5},
	} {
		h.Mode = mode
		if diff := cmp.Diff(want, Summarize(h, Judge(h)).Guests); diff != "" {
			t.Errorf("in mode %q (-want +got):\n%s", mode, diff)
		}
	}
}

func TestNotesAreForgotten(t *testing.T) {
	m := NewMemory()
	key, other := types.NamespacedName{Name: "n0"}, types.NamespacedName{Name: "n1"}
	m.Of(key, now)["g"] = Note{Attempts: 1, At: now}
	if len(m.Of(key, now.Add(time.Hour))) != 1 || len(m.Of(other, now)) != 0 {
		t.Error("a note is lost, or is that of another compute")
	}
	if len(m.Of(key, now.Add(relevantFor+time.Second))) != 0 {
		t.Error("an old note is kept")
	}
	m.Of(key, now)["g"] = Note{Attempts: 1, At: now}
	m.Forget(key)
	if len(m.Of(key, now)) != 0 {
		t.Error("a note is kept of a compute that is not drained")
	}
}
