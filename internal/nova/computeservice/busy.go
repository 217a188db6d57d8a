package computeservice

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/pagination"
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
	nova, host := o.hostOf(client.ObjectKeyFromObject(compute))
	if host == "" {
		return ""
	}
	c, err := o.Client(ctx, nova)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, o.opts.Timeout)
	defer cancel()
	busy, err := c.api.migration(ctx, host, time.Now())
	if busy == "" && err == nil {
		busy, err = c.api.task(ctx, host)
	}
	if err != nil {
		return ""
	}
	return busy
}

// hostOf returns the Nova that a compute is observed in, and its host there.
func (o *Observer) hostOf(compute types.NamespacedName) (nova types.NamespacedName, host string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for nova, c := range o.novas {
		if s, observed := c.subjects[Name{NamespacedName: compute}]; observed {
			return nova, c.view(s).Service.Host
		}
	}
	return nova, ""
}

// migration returns one that is in progress from or to a host.
func (a *api) migration(ctx context.Context, host string, now time.Time) (string, error) {
	var body struct {
		Migrations []struct {
			Instance string `json:"instance_uuid"`
			Status   string
		}
	}
	query := url.Values{"host": {host}, "changes-since": {now.Add(-oldestMigration).UTC().Format(time.RFC3339)}}
	answer, err := a.compute.Get(ctx, a.compute.ServiceURL("os-migrations")+"?"+query.Encode(), &body, nil)
	if err != nil {
		return "", a.trouble(nova, err)
	}
	defer answer.Body.Close()
	for _, m := range body.Migrations {
		if slices.Contains(inProgress, m.Status) && uuid.Validate(m.Instance) == nil {
			return fmt.Sprintf("server %s is being moved (%s)", m.Instance, m.Status), nil
		}
	}
	return "", nil
}

// task returns what is being done to a server on a host.
func (a *api) task(ctx context.Context, host string) (task string, err error) {
	n := 0
	err = servers.List(a.compute, servers.ListOpts{AllTenants: true, Host: host}).EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
		found, err := servers.ExtractServers(page)
		for _, s := range found {
			if s.TaskState != "" && uuid.Validate(s.ID) == nil {
				task = fmt.Sprintf("server %s has the task %s", s.ID, Shorten(s.TaskState))
				return false, nil
			}
		}
		n += len(found)
		return n < mostInstances, err
	})
	if err != nil {
		return "", a.trouble(nova, err)
	}
	return task, nil
}
