package computeservice

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

// The stories with a controller are in controllers/standing_test.go.

func TestAMigrationStandsStillIfNothingChangesThatShould(t *testing.T) {
	now := time.Unix(1e9, 0)
	for title, c := range map[string]struct {
		kind, status string
		since        time.Duration
		want         bool
	}{
		"a live one for long":                              {"live-migration", "running", 2 * time.Hour, true},
		"a live one that changed a moment ago":             {"live-migration", "running", time.Minute, false},
		"one that was accepted, and no one works on it":    {"live-migration", "accepted", 2 * time.Hour, true},
		"one that waits for others":                        {"live-migration", "queued", 2 * time.Hour, false},
		"one that has ended":                               {"live-migration", "completed", 2 * time.Hour, false},
		"one that failed":                                  {"migration", "error", 2 * time.Hour, false},
		"a cold one":                                       {"migration", "migrating", 2 * time.Hour, true},
		"a cold one that no one confirms":                  {"migration", "finished", 2 * time.Hour, true},
		"a cold one that no one has confirmed so far":      {"migration", "finished", time.Minute, false},
		"a resize that its owner does not confirm":         {"resize", "finished", 2 * time.Hour, false},
		"a resize that was confirmed, and does not end":    {"resize", "confirming", 2 * time.Hour, true},
		"an evacuation whose new host has died since then": {"evacuation", "pre-migrating", 2 * time.Hour, true},
	} {
		if got := (Migration{Kind: c.kind, Status: c.status, Changed: now.Add(-c.since)}).StandsStill(now); got != c.want {
			t.Errorf("%s: it stands still: %t", title, got)
		}
	}
}

func TestAHostIsWokenOnceForEachMigrationThatStandsStill(t *testing.T) {
	a := Migration{ID: "a", Source: "n0", Target: "n1", Status: "running"}
	b := Migration{ID: "b", Source: "n2", Target: "n0", Status: "running", Ours: true}
	further := a
	further.Status = "post-migrating"
	names := func(hosts map[string]bool) (names []string) {
		for host := range hosts {
			names = append(names, host)
		}
		slices.Sort(names)
		return names
	}
	s := &standing{}
	for _, step := range []struct {
		title string
		found []Migration
		want  []string
	}{
		{"none stands still", []Migration{}, nil},
		{"one does", []Migration{a}, []string{"n0", "n1"}},
		{"it still does", []Migration{a}, nil},
		{"nova does not answer", nil, nil},
		{"another one does, too", []Migration{a, b}, []string{"n0", "n2"}},
		{"the first one is in another state", []Migration{further, b}, []string{"n0", "n1"}},
		{"both have ended", []Migration{}, []string{"n0", "n1", "n2"}},
	} {
		if diff := cmp.Diff(step.want, names(s.keep(step.found))); diff != "" {
			t.Errorf("%s: woken are (-want +got):\n%s", step.title, diff)
		}
	}
	s.keep([]Migration{a, b})
	for host, want := range map[string][]Migration{"n0": {a}, "n1": {a}, "n2": {b}, "n3": {}} {
		if diff := cmp.Diff(want, s.of(host)); diff != "" {
			t.Errorf("%s: it shows (-want +got):\n%s", host, diff)
		}
	}
}

func TestNovaIsAskedSeldomForMigrationsThatStandStill(t *testing.T) {
	s, opts, start := &standing{}, Options{Interval: 30 * time.Second}, time.Unix(1e9, 0)
	times := 0
	for at := time.Duration(0); at < time.Hour; at += 5 * time.Second {
		if s.begin(opts, start.Add(at)) {
			times++
		}
	}
	if times != 12 {
		t.Errorf("nova is asked %d times in an hour, want 12", times)
	}
}

func TestMigrationsThatStandStillAreReadOfCellsThatAreReached(t *testing.T) {
	server := fakenova.Start("p")
	defer server.Close()
	up(server, "n0", "n1")
	server.Move("n0")
	server.Resize("n0", "n1")
	server.MigrateCold("n0", "n1")
	server.Migrate("n0")() // was confirmed
	server.Migrate("n0")   // was not
	server.Age(2 * time.Hour)
	server.Move("n0")
	o := New(t.Context(), Options{Interval: time.Minute, Soon: time.Minute, Timeout: time.Minute, Loopback: true})
	access := Access{AuthURL: server.URL, Region: "regionOne", User: "nova", UserDomain: "Default", ProjectDomain: "Default", Password: "p"}
	read := func(nova string) (statuses []string, isAnswer bool) {
		found, err := o.answer(t.Context(), o.stateOf(types.NamespacedName{Name: nova}), access, new(*api))
		if found.services == nil {
			t.Fatal(err)
		}
		for _, m := range found.standing {
			statuses = append(statuses, m.Kind+" "+m.Status)
		}
		return statuses, found.standing != nil
	}
	got, _ := read("first")
	if diff := cmp.Diff([]string{"live-migration running", "resize migrating", "migration finished"}, got); diff != "" {
		t.Errorf("found are (-want +got):\n%s", diff)
	}
	asked := server.Requests("GET /v2.1/os-migrations")
	if asked != 9 {
		t.Errorf("it took %d requests, want 9", asked)
	}
	server.Break(fakenova.CellDown)
	if got, isAnswer := read("second"); isAnswer || server.Requests("GET /v2.1/os-migrations") != asked {
		t.Errorf("a cell that is not reached has %v; want what is known to be kept", got)
	}
}

func up(server *fakenova.Server, hosts ...string) {
	server.Run(hosts...)
	server.Discover()
}
