package computeservice

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inProgress are the states of a migration in which nova-compute of both hosts works on it
// (nova/objects/migration.py). One that is finished waits for a user.
var inProgress = []string{"queued", "accepted", "preparing", "running", "pre-migrating", "migrating", "post-migrating", "confirming", "reverting"}

// oldestMigration that is looked at: nova notes the progress of one that is running.
const oldestMigration = 24 * time.Hour

// Busy returns what the host of a compute does in nova that a restart of nova-compute would
// interrupt; empty if nothing, if nova does not know the host, and if nova cannot be asked,
// which is not to keep anyone from repairing it.
func (o *Observer) Busy(ctx context.Context, compute client.Object) string {
	nova, service := o.serviceOf(client.ObjectKeyFromObject(compute))
	host := service.Host
	if host == "" || service.ForcedDown { // nova-compute does nothing on a host that was off
		return ""
	}
	c, err := o.Client(ctx, nova)
	if err != nil {
		return ""
	}
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

// serviceOf returns the Nova that a compute is observed in, and its service there.
func (o *Observer) serviceOf(compute types.NamespacedName) (nova types.NamespacedName, service Service) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for nova, c := range o.novas {
		if s, observed := c.subjects[Name{NamespacedName: compute}]; observed {
			return nova, c.view(s).Service
		}
	}
	return nova, Service{}
}
