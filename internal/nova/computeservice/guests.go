package computeservice

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/instanceactions"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/migrations"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/pagination"
	"k8s.io/utils/ptr"
)

const (
	// mostGuests are read: no host has more.
	mostGuests = 10_000
	// mostMigrations are the newest of a host that are read: nova keeps all that ever were.
	mostMigrations = 500
	// longestMessage is what is shown of a message of nova.
	longestMessage = 200
)

// Guest is an instance on a host.
type Guest struct {
	ID, Name string
	// State is nova's vm_state, and Task its task_state, empty for none. Both are empty
	// for a guest in a cell that the API does not reach.
	State, Task string
	Locked      bool
	// Updated is when it changed last.
	Updated time.Time
}

// guestEntry is what is read of a list of servers.
type guestEntry struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	State   string    `json:"OS-EXT-STS:vm_state"`
	Task    string    `json:"OS-EXT-STS:task_state"`
	Locked  bool      `json:"locked"`
	Updated time.Time `json:"updated"`
}

// Guests returns those on a host, of all projects. What has no UUID is left out.
func (c *Client) Guests(ctx context.Context, host string) ([]Guest, error) {
	ctx, cancel := context.WithTimeout(ctx, c.observer.opts.Timeout)
	defer cancel()
	var guests []Guest
	err := servers.List(c.api.compute, servers.ListOpts{AllTenants: true, Host: host}).EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
		var found []guestEntry
		err := servers.ExtractServersInto(page, &found)
		for _, e := range found {
			if uuid.Validate(e.ID) == nil { // it becomes part of addresses
				e.Name = PlainText(e.Name)
				guests = append(guests, Guest(e))
			}
		}
		return len(guests) < mostGuests, err
	})
	if err != nil {
		return nil, c.api.trouble(nova, err)
	}
	return guests, nil
}

// Migration of a guest, from one host to another.
type Migration struct {
	// ID of the migration, and Guest of its instance.
	ID, Guest string
	// Source and Target are hosts; the latter is empty before nova has chosen it.
	Source, Target string
	// Kind is live-migration, migration, resize or evacuation.
	Kind   string
	Status string
	// Ours reports whether the service user asked for it.
	Ours bool
	// Changed is when its status changed last.
	Changed time.Time
}

// IsOpen reports whether the migration has not ended: nova deletes no service before it
// has (migration_get_in_progress_by_host_and_node in nova/db/main/api.py).
func (m Migration) IsOpen() bool {
	switch m.Status {
	case "confirmed", "reverted", "error", "failed", "completed", "cancelled", "done":
		return false
	}
	return true
}

// Kinds of migrations: Evacuation of those from hosts that are down, ColdMigration of those that
// administrators ask for and that are confirmed in the end, as those of kind resize are.
const (
	Evacuation    = "evacuation"
	ColdMigration = "migration"
)

// Leaves reports whether the migration has taken, or is about to take, its guest off a host that
// was down, and nova-compute has not removed what is left of it there: at its start it does
// (_destroy_evacuated_instances in nova/compute/manager.py).
func (m Migration) Leaves(host string) bool {
	return m.Kind == Evacuation && m.Source == host && (m.IsOpen() || m.Status == "done")
}

// Migrations returns the newest of those from or to a host.
func (c *Client) Migrations(ctx context.Context, host string) ([]Migration, error) {
	ctx, cancel := context.WithTimeout(ctx, c.observer.opts.Timeout)
	defer cancel()
	return c.api.migrations(ctx, migrations.ListOpts{Host: &host, Limit: ptr.To(mostMigrations)})
}

// migrations returns a list of migrations, the newest first.
func (a *api) migrations(ctx context.Context, opts migrations.ListOpts) ([]Migration, error) {
	page, err := migrations.List(a.compute, opts).AllPages(ctx)
	if err != nil {
		return nil, a.trouble(nova, err)
	}
	found, err := migrations.ExtractMigrations(page)
	if err != nil {
		return nil, a.trouble(nova, err)
	}
	var all []Migration
	for i := range found {
		m := &found[i]
		if uuid.Validate(m.InstanceID) != nil {
			continue
		}
		changed := m.UpdatedAt
		if changed.IsZero() {
			changed = m.CreatedAt
		}
		all = append(all, Migration{
			ID: m.UUID, Guest: m.InstanceID, Source: m.SourceCompute, Target: m.DestCompute, Kind: m.MigrationType, Status: m.Status,
			Ours: m.UserID != "" && m.UserID == a.user, Changed: changed.UTC(),
		})
	}
	return all, nil
}

// RefusedError is that nova does not do what it was asked for a guest.
type RefusedError struct{ Message string }

// Error is nova's message, in one line.
func (e *RefusedError) Error() string { return e.Message }

// liveMigration is the request for it as of microversion 2.68: nova chooses the host, and
// copies disks that are not shared.
type liveMigration struct{}

// ToLiveMigrateMap implements servers.LiveMigrateOptsBuilder, whose own options have only
// true and false for block_migration.
func (liveMigration) ToLiveMigrateMap() (map[string]any, error) {
	return map[string]any{"os-migrateLive": map[string]any{"host": nil, "block_migration": "auto"}}, nil
}

// LiveMigrate starts the live migration of a guest. The error is a *RefusedError if nova
// refuses it, as those of the other actions.
func (c *Client) LiveMigrate(ctx context.Context, guest string) error {
	return c.act(ctx, func(ctx context.Context) error {
		return servers.LiveMigrate(ctx, c.api.compute, guest, liveMigration{}).ExtractErr()
	})
}

// Migrate starts the cold migration of a guest, which stops it.
func (c *Client) Migrate(ctx context.Context, guest string) error {
	return c.act(ctx, func(ctx context.Context) error { return servers.Migrate(ctx, c.api.compute, guest).ExtractErr() })
}

// Confirm completes the cold migration of a guest: what is left of it on its former host
// is removed.
func (c *Client) Confirm(ctx context.Context, guest string) error {
	return c.act(ctx, func(ctx context.Context) error {
		return servers.ConfirmResize(ctx, c.api.compute, guest).ExtractErr()
	})
}

// Stop starts to shut a guest down.
func (c *Client) Stop(ctx context.Context, guest string) error {
	return c.act(ctx, func(ctx context.Context) error { return servers.Stop(ctx, c.api.compute, guest).ExtractErr() })
}

// evacuation is the request for it as of microversion 2.68: nova chooses the host, and finds
// out whether disks are shared. As of 2.95 guests would be shut off afterwards.
type evacuation struct{}

// ToEvacuateMap implements servers.EvacuateOptsBuilder, whose own options have one that nova no
// longer takes.
func (evacuation) ToEvacuateMap() (map[string]any, error) {
	return map[string]any{"evacuate": map[string]any{}}, nil
}

// Evacuate starts to make a guest again on another host, as its own is down.
func (c *Client) Evacuate(ctx context.Context, guest string) error {
	return c.act(ctx, func(ctx context.Context) error {
		_, err := servers.Evacuate(ctx, c.api.compute, guest, evacuation{}).ExtractAdminPass()
		return err
	})
}

func (c *Client) act(ctx context.Context, action func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.observer.opts.Timeout)
	defer cancel()
	err := action(ctx)
	switch {
	case err == nil, gophercloud.ResponseCodeIs(err, http.StatusNotFound): // the guest was deleted
		return nil
	case gophercloud.ResponseCodeIs(err, http.StatusConflict), gophercloud.ResponseCodeIs(err, http.StatusBadRequest):
		return &RefusedError{messageOf(err)}
	}
	return c.api.trouble(nova, err)
}

// messageOf returns nova's message: {"conflictingRequest": {"message": ...}}.
func messageOf(err error) string {
	var answer gophercloud.ErrUnexpectedResponseCode
	var body map[string]struct{ Message string }
	if errors.As(err, &answer) && json.Unmarshal(answer.Body, &body) == nil {
		for _, fault := range body {
			if text := PlainText(fault.Message); text != "" {
				return text
			}
		}
	}
	return "it " + cause(err)
}

// PlainText is a text of another user in one line of bounded length.
func PlainText(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > longestMessage {
		return string(runes[:longestMessage-3]) + "..."
	}
	return text
}

// Explain returns why the last migration of a guest failed, in nova's words, and the
// server group whose policy it obeys; both are empty if nova does not know. nova notes the
// cause with the action of the instance, not with the migration.
func (c *Client) Explain(ctx context.Context, guest string) (why, group string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.observer.opts.Timeout)
	defer cancel()
	if why, err = c.failureOf(ctx, guest); err == nil {
		group, err = c.groupOf(ctx, guest)
	}
	switch {
	case err == nil, gophercloud.ResponseCodeIs(err, http.StatusNotFound), gophercloud.ResponseCodeIs(err, http.StatusForbidden):
		return why, group, nil // what policy keeps from the service user is left out
	}
	return "", "", c.api.trouble(nova, err)
}

// recentActions of a guest are looked through for its last migration.
const recentActions = 10

func (c *Client) failureOf(ctx context.Context, guest string) (string, error) {
	page, err := instanceactions.List(c.api.compute, guest, instanceactions.ListOpts{Limit: recentActions}).AllPages(ctx)
	if err != nil {
		return "", err
	}
	actions, err := instanceactions.ExtractInstanceActions(page)
	if err != nil {
		return "", err
	}
	for _, action := range actions { // the newest comes first
		id, isRequest := strings.CutPrefix(action.RequestID, "req-")
		if !slices.Contains([]string{"live-migration", "migrate", "evacuate"}, action.Action) || !isRequest || uuid.Validate(id) != nil {
			continue
		}
		var detail struct {
			Events []struct{ Result, Details string }
		}
		if err := instanceactions.Get(ctx, c.api.compute, guest, action.RequestID).ExtractInto(&detail); err != nil {
			return "", err
		}
		for _, event := range detail.Events {
			if event.Result == "Error" && event.Details != "" {
				return PlainText(event.Details), nil
			}
		}
		return "", nil
	}
	return "", nil
}

func (c *Client) groupOf(ctx context.Context, guest string) (string, error) {
	server, err := servers.Get(ctx, c.api.compute, guest).Extract()
	if err != nil || server.ServerGroups == nil || len(*server.ServerGroups) == 0 || uuid.Validate((*server.ServerGroups)[0]) != nil {
		return "", err
	}
	group, err := servergroups.Get(ctx, c.api.compute, (*server.ServerGroups)[0]).Extract()
	if err != nil {
		return "", err
	}
	return PlainText(group.Name + " (" + ptr.Deref(group.Policy, "") + ")"), nil
}
