package drain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

func TestWhatEndsTheMigrationsOfAHostThatIsNotDrained(t *testing.T) {
	const confirm = "guest g has a migration from h to other that was not confirmed: openstack server resize confirm or revert g"
	incoming := migrated("live-migration", "preparing", false, time.Minute)
	incoming.Source, incoming.Target = "other", "h"
	unplaced := migrated("migration", "queued", true, 2*time.Hour)
	unplaced.Target = ""
	for title, c := range map[string]struct {
		migrations  []computeservice.Migration
		want        string
		needsPerson bool
	}{
		"there are none": {nil, "", false},
		"all have ended": {[]computeservice.Migration{migrated("live-migration", "completed", true, 0), migrated("resize", "confirmed", false, 0), migrated("evacuation", "done", true, 0)}, "", false},
		"a resize waits for its confirmation": {[]computeservice.Migration{migrated("resize", "finished", false, 0)},
			"guest g has a resize from h to other that was not confirmed: openstack server resize confirm or revert g", true},
		"one of the service user does, whom no drain confirms": {[]computeservice.Migration{migrated("migration", "finished", true, 0)}, confirm, true},
		"a guest is on its way to the host":                    {[]computeservice.Migration{incoming}, "guest g has a live-migration from other to h that is preparing: wait until it has ended", false},
		"nova has not chosen the new host":                     {[]computeservice.Migration{unplaced}, "guest g has a migration from h to its new host that is queued: wait until it has ended", false},
		"nothing changes for long": {[]computeservice.Migration{migrated("live-migration", "running", false, 2*time.Hour)},
			"guest g has a migration that is running since 2026-01-02T01:04:05Z: see the log of nova-compute on h, and openstack server migration abort", true},
		"there are many": {[]computeservice.Migration{incoming, incoming, incoming, incoming, incoming, incoming, migrated("migration", "finished", true, 0)},
			strings.Repeat("guest g has a live-migration from other to h that is preparing: wait until it has ended; ", 5) + "and 2 more", true},
	} {
		text, needsPerson := Open(Host{Name: "h", Migrations: c.migrations, Now: now})
		if diff := cmp.Diff(c.want, text); diff != "" || needsPerson != c.needsPerson {
			t.Errorf("%s: a person is needed: %t (-want +got):\n%s", title, needsPerson, diff)
		}
	}
}

func TestEvacuationsThatStandStillAreNamed(t *testing.T) {
	text := Standstill(Host{Name: "h", Now: now, Migrations: []computeservice.Migration{
		migrated("evacuation", "pre-migrating", true, 2*time.Hour), migrated("evacuation", "done", true, 3*time.Hour), migrated("live-migration", "running", true, 4*time.Hour),
	}})
	want := "g has an evacuation that is pre-migrating since 2026-01-02T01:04:05Z: see the log of nova-compute on other, and of the conductor"
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("an hour later (-want +got):\n%s", diff)
	}
	if text := Standstill(Host{Name: "h", Now: now, Migrations: []computeservice.Migration{migrated("evacuation", "accepted", true, time.Minute)}}); text != "" {
		t.Errorf("one that has just begun is named: %s", text)
	}
}

func TestGuestsThatCannotBeMovedWhileTheyRunAreKeptAndTheOthersMoved(t *testing.T) {
	stopped := guest("stopped", "")
	stopped.ID, stopped.Name = "o", "off"
	h := Host{Name: "h", Mode: validate.DrainLive, Immobile: "It is not configured.", Guests: []computeservice.Guest{guest("active", ""), stopped}, Now: now}
	verdicts := Judge(h)
	want := []Verdict{{Guest: guest("active", ""), State: Blocked, Text: immobile}, {Guest: stopped, State: Waiting, Call: Migrate}}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	text := "Host h has guests: 1 waiting, 1 that cannot be moved: guest g cannot be migrated while it runs. It is not configured."
	if diff := cmp.Diff(text, Summarize(h, verdicts).Text); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if h.Mode = validate.DrainCold; Judge(h)[0].Call != Migrate {
		t.Error("guests should be moved cold, which does not need it")
	}
}
