package computeservice

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/migrations"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// StuckAfter is how long nothing changes of a migration, or of a guest with a task, before a
	// person has to look at it. nova notes the progress of live migrations every few seconds, but
	// not that of disks that cold migrations copy.
	StuckAfter = time.Hour
	// standingPause is in how many intervals nova is asked for migrations that stand still.
	standingPause = 10
	// mostStanding bounds how many migrations of each status are read for that. More of them are in
	// no state for long unless something is wrong with all.
	mostStanding = 100
)

// StandsStill reports whether nothing has changed of a migration for so long that a person has to
// look at it. One that is queued waits for others. One that is finished waits for its confirmation:
// by those who asked for a resize, which is their matter, or for a cold migration.
func (m Migration) StandsStill(now time.Time) bool {
	switch {
	case !m.IsOpen(), m.Status == "queued", m.Status == "finished" && m.Kind != ColdMigration:
		return false
	}
	return now.Sub(m.Changed) > StuckAfter
}

// standing are the migrations that stand still, as they were when nova was asked for them last.
type standing struct {
	// known reports whether nova has been asked since the manager was started, and next is when it
	// is asked again.
	known      bool
	next       time.Time
	migrations []Migration // sorted by id
}

// begin reports whether it is time to ask nova, and if so sets when it is asked next.
func (s *standing) begin(opts Options, now time.Time) bool {
	if now.Before(s.next) {
		return false
	}
	s.next = now.Add(standingPause * opts.Interval)
	return true
}

// keep keeps an answer of nova, nil for none, and returns the hosts of the migrations that are not in
// both this one and the one before.
func (s *standing) keep(found []Migration) map[string]bool {
	if found == nil {
		return nil
	}
	hosts := map[string]bool{}
	for _, lists := range [][2][]Migration{{s.migrations, found}, {found, s.migrations}} {
		for _, m := range lists[0] {
			if !slices.Contains(lists[1], m) {
				hosts[m.Source], hosts[m.Target] = true, true
			}
		}
	}
	s.known, s.migrations = true, found
	return hosts
}

// of returns the migrations from or to a host. Of those that the operators ask for, the host that
// their guest leaves has to say something.
func (s *standing) of(host string) []Migration {
	return slices.DeleteFunc(slices.Clone(s.migrations), func(m Migration) bool {
		return m.Source != host && (m.Target != host || m.Ours)
	})
}

// Standing returns the migrations from or to a host of which nothing has changed for long, and whether
// nova has been asked for them since the manager was started.
func (o *Observer) Standing(nova types.NamespacedName, host string) (found []Migration, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.novas[nova]; c != nil {
		return c.standing.of(host), c.standing.known
	}
	return nil, false
}

// listsOfStanding are the lists of migrations of which some may stand still.
func listsOfStanding() []migrations.ListOpts {
	lists := []migrations.ListOpts{{Status: ptr.To("finished"), MigrationType: ptr.To(ColdMigration)}}
	for _, status := range inProgress {
		if status != "queued" {
			lists = append(lists, migrations.ListOpts{Status: &status})
		}
	}
	return lists
}

// standing returns the migrations of all cells that stand still, not nil. nova keeps all that ever
// were, and takes one status at a time. It is not asked for those that changed before some time: that
// leaves out what was never changed since it was created (updated_at in nova/db/main/api.py).
func (a *api) standing(ctx context.Context, now time.Time) ([]Migration, error) {
	found := []Migration{}
	for _, opts := range listsOfStanding() {
		opts.Limit = ptr.To(mostStanding)
		some, err := a.migrations(ctx, opts)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(some, func(m Migration) bool { return !m.StandsStill(now) })...)
	}
	slices.SortFunc(found, func(a, b Migration) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}
