package computeservice

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// inProgress are the states of a migration in which nova-compute of both hosts works on it
// (nova/objects/migration.py). One that is finished waits for a user.
var inProgress = []string{"queued", "accepted", "preparing", "running", "pre-migrating", "migrating", "post-migrating", "confirming", "reverting"}

// oldestMigration that is looked at: nova notes the progress of one that is running.
const oldestMigration = 24 * time.Hour

// Busy returns what a host does that a restart of nova-compute would interrupt; empty if nothing,
// and if nova does not answer, which is not to keep anyone from repairing it.
func (c *Client) Busy(ctx context.Context, host string) string {
	migrations, err := c.Migrations(ctx, host)
	if err != nil {
		return ""
	}
	for _, m := range migrations {
		if slices.Contains(inProgress, m.Status) && time.Since(m.Changed) < oldestMigration {
			return fmt.Sprintf("server %s is being moved (%s)", m.Guest, m.Status)
		}
	}
	guests, err := c.Guests(ctx, host)
	if at := slices.IndexFunc(guests, func(g Guest) bool { return g.Task != "" }); err == nil && at >= 0 {
		return fmt.Sprintf("server %s has the task %s", guests[at].ID, Shorten(guests[at].Task))
	}
	return ""
}
