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

func TestGuestsThatTheHostCannotHaveMovedAreKeptAndTheOthersMoved(t *testing.T) {
	stopped := guest("stopped", "")
	stopped.ID, stopped.Name = "o", "off"
	const noLive, noCold = "Live migration is not configured.", "Cold migration is not configured."
	kept := func(g computeservice.Guest, text string) Verdict {
		return Verdict{Guest: g, State: Blocked, Text: text}
	}
	moved := func(g computeservice.Guest, call Call) Verdict { return Verdict{Guest: g, State: Waiting, Call: call} }
	running := guest("active", "")
	for title, c := range map[string]struct {
		mode      string
		obstacles map[Call]string
		want      []Verdict
		text      string
	}{
		"nothing keeps them": {validate.DrainLive, map[Call]string{LiveMigrate: "", Migrate: ""}, []Verdict{moved(running, LiveMigrate), moved(stopped, Migrate)}, "2 waiting"},
		"live migration is not possible": {validate.DrainLive, map[Call]string{LiveMigrate: noLive}, []Verdict{kept(running, "cannot be migrated while it runs"), moved(stopped, Migrate)},
			"1 waiting, 1 that cannot be moved: guest g cannot be migrated while it runs. " + noLive},
		"cold migration is not possible": {validate.DrainLive, map[Call]string{Migrate: noCold}, []Verdict{moved(running, LiveMigrate), kept(stopped, "cannot be migrated cold")},
			"1 waiting, 1 that cannot be moved: off o cannot be migrated cold. " + noCold},
		"neither is possible": {validate.DrainLive, map[Call]string{LiveMigrate: noLive, Migrate: noCold}, []Verdict{kept(running, "cannot be migrated while it runs"), kept(stopped, "cannot be migrated cold")},
			"2 that cannot be moved: guest g cannot be migrated while it runs; off o cannot be migrated cold. " + noLive + ". " + noCold},
		"all are to be migrated cold, and cannot be": {validate.DrainCold, map[Call]string{Migrate: noCold}, []Verdict{kept(running, "cannot be migrated cold"), kept(stopped, "cannot be migrated cold")},
			"2 that cannot be moved: guest g cannot be migrated cold; off o cannot be migrated cold. " + noCold},
		"all are migrated cold, which needs no live migration": {validate.DrainCold, map[Call]string{LiveMigrate: noLive}, []Verdict{moved(running, Migrate), moved(stopped, Migrate)}, "2 waiting"},
	} {
		h := Host{Name: "h", Mode: c.mode, Obstacles: c.obstacles, Guests: []computeservice.Guest{running, stopped}, Now: now}
		verdicts := Judge(h)
		if diff := cmp.Diff(c.want, verdicts); diff != "" {
			t.Errorf("%s: verdicts (-want +got):\n%s", title, diff)
		}
		if diff := cmp.Diff("Host h has guests: "+c.text, Summarize(h, verdicts).Text); diff != "" {
			t.Errorf("%s: message (-want +got):\n%s", title, diff)
		}
	}
}
