package fakenova

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// userID is that of the service user in keystone.
const userID = "nova-user"

// Guest is an instance, or what is to be one.
type Guest struct {
	Name string
	// State is nova's vm_state; empty for active.
	State string
	// Task is nova's task_state; empty for none.
	Task string
	// Locked by its owner. nova locks for users without the role admin only
	// (check_instance_lock in nova/compute/api.py), so it is for a client to obey.
	Locked bool
	// Refusal is with what nova refuses to migrate it, as one with an emulated TPM.
	Refusal string
	// Failure is with what its migrations end, as one with a device that cannot be moved.
	Failure string
	// Group is the server group that it is in, with the policy anti-affinity; empty for none.
	Group string
	// Host on which it is.
	Host string
	// Moves are how often nova accepted to migrate it.
	Moves int

	id, before string // before is its state before it was migrated
	updated    time.Time
	// why its last migration failed.
	why string
}

// migration of a guest.
type migration struct {
	id, guest, source, target, kind, status, user string
	created, updated                              time.Time
}

// open reports whether nova counts it as in progress
// (migration_get_in_progress_by_host_and_node in nova/db/main/api.py).
func (m *migration) open() bool {
	return !slices.Contains([]string{"confirmed", "reverted", "error", "failed", "completed", "cancelled", "done"}, m.status)
}

// Add adds a guest to a host, and returns its id.
func (s *Server) Add(host string, g Guest) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(host, g)
}

// add a guest. The caller holds the lock.
func (s *Server) add(host string, g Guest) string {
	g.id, g.Host, g.updated = s.newID(), host, time.Now().UTC()
	if g.State == "" {
		g.State = "active"
	}
	s.guests[g.id] = &g
	return g.id
}

// newID returns another UUID. The caller holds the lock.
func (s *Server) newID() string {
	s.next++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.next)
}

// Guest returns a guest by its name, as it is now.
func (s *Server) Guest(name string) Guest {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proceed()
	for _, g := range s.guests {
		if g.Name == name {
			return *g
		}
	}
	return Guest{}
}

// Alter changes the guest of a name.
func (s *Server) Alter(name string, change func(*Guest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.guests {
		if g.Name == name {
			change(g)
			g.updated = time.Now().UTC()
		}
	}
}

// Age has migrations that have not ended stand still since a time.
func (s *Server) Age(since time.Duration) {
	s.set(func() {
		for _, m := range s.migrations {
			if m.open() {
				m.updated = m.updated.Add(-since)
			}
		}
	})
}

// Destroy deletes the guest of a name, and with it its migrations (instance_destroy in
// nova/db/main/api.py).
func (s *Server) Destroy(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, g := range s.guests {
		if g.Name == name {
			delete(s.guests, id)
			s.migrations = slices.DeleteFunc(s.migrations, func(m *migration) bool { return m.guest == id })
		}
	}
}

// Takes is how long migrations and shutdowns take.
func (s *Server) Takes(d time.Duration) { s.set(func() { s.takes = d }) }

// AtOnce returns how many guests of a host were in progress at the same time, at most.
func (s *Server) AtOnce(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.atOnce[host]
}

// onHost are the ids of the guests of a host, sorted. The caller holds the lock.
func (s *Server) onHost(host string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.guests)), func(id string) bool { return s.guests[id].Host != host })
}

// inMigration reports whether a migration from or to a host has not ended. The caller
// holds the lock.
func (s *Server) inMigration(host string) bool {
	return slices.ContainsFunc(s.migrations, func(m *migration) bool { return m.open() && (m.source == host || m.target == host) })
}

// proceed completes what has taken long enough. The caller holds the lock.
func (s *Server) proceed() {
	for _, m := range s.migrations {
		g := s.guests[m.guest]
		if g == nil || !m.open() || m.status == "finished" || time.Since(m.updated) < s.takes {
			continue
		}
		m.updated, g.updated = time.Now().UTC(), time.Now().UTC()
		switch {
		case m.status == "confirming":
			m.status, g.State, g.Task = "confirmed", g.before, ""
		case g.Failure != "":
			m.status, g.Task, g.why = "error", "", g.Failure
		case m.kind == "evacuation":
			m.status, g.Task, g.Host = "done", "", m.target
			if g.State == "error" {
				g.State = "active"
			}
		case m.kind == "live-migration":
			m.status, g.Task, g.Host = "completed", "", m.target
		default:
			m.status, g.Task, g.Host, g.before, g.State = "finished", "", m.target, g.State, "resized"
		}
	}
	for _, g := range s.guests {
		if g.Task == "powering-off" && time.Since(g.updated) >= s.takes {
			g.Task, g.State, g.updated = "", "stopped", time.Now().UTC()
		}
	}
}

// choose returns the host that the scheduler takes for a guest, empty if none is valid.
// The caller holds the lock.
func (s *Server) choose(g *Guest) string {
	for _, name := range slices.Sorted(maps.Keys(s.hosts)) {
		h := s.hosts[name]
		taken := slices.ContainsFunc(s.onHost(name), func(id string) bool { return g.Group != "" && s.guests[id].Group == g.Group })
		if name != g.Host && h.service != nil && h.running && h.mapped && !h.service.disabled && !h.service.forced && !taken {
			return name
		}
	}
	return ""
}

// move begins a migration. Where no host is valid it ends at once, as nova decides that
// after it has answered (2.34 in the history of its REST API). The caller holds the lock.
func (s *Server) move(g *Guest, kind, task string) {
	now := time.Now().UTC()
	m := &migration{id: s.newID(), guest: g.id, source: g.Host, target: s.choose(g), kind: kind, status: "running", user: userID, created: now, updated: now}
	s.migrations = append(s.migrations, m)
	g.Moves++
	g.updated = now
	if m.target == "" {
		m.status, g.why = "error", "No valid host was found. There are not enough hosts available."
		return
	}
	g.Task = task
	s.count(g.Host)
}

// count the guests of a host that are in progress. The caller holds the lock.
func (s *Server) count(host string) {
	busy := slices.DeleteFunc(s.onHost(host), func(id string) bool { return s.guests[id].Task == "" })
	s.atOnce[host] = max(s.atOnce[host], len(busy))
}

// evacuate makes a guest again on another host. The caller holds the lock.
func (s *Server) evacuate(g *Guest) {
	if s.hosts[g.Host].running {
		s.doubled = append(s.doubled, g.Name)
	}
	s.move(g, "evacuation", "rebuilding")
	if m := s.migrations[len(s.migrations)-1]; m.open() {
		m.status = "accepted"
	} else {
		g.State = "error"
	}
}

// Doubled are the guests that were evacuated from hosts that were on.
func (s *Server) Doubled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubled
}

// removeEvacuated is what nova-compute does at its start with guests that were evacuated.
func (s *Server) removeEvacuated(hosts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.migrations {
		if m.kind == "evacuation" && m.status == "done" && slices.Contains(hosts, m.source) {
			m.status = "completed"
		}
	}
}

// actions are those of servers: the states that they need, and what they do.
var actions = map[string]struct {
	states []string
	code   int
	do     func(*Server, *Guest)
}{
	"os-migrateLive": {[]string{"active", "paused"}, http.StatusAccepted, func(s *Server, g *Guest) { s.move(g, "live-migration", "migrating") }},
	"evacuate":       {[]string{"active", "stopped", "error"}, http.StatusOK, (*Server).evacuate},
	"migrate":        {[]string{"active", "stopped"}, http.StatusAccepted, func(s *Server, g *Guest) { s.move(g, "migration", "resize_prep") }},
	"os-stop": {[]string{"active", "error"}, http.StatusAccepted, func(s *Server, g *Guest) {
		g.Task, g.updated = "powering-off", time.Now().UTC()
		s.count(g.Host)
	}},
	"confirmResize": {[]string{"resized"}, http.StatusNoContent, func(s *Server, g *Guest) {
		for _, m := range s.migrations {
			if m.guest == g.id && m.status == "finished" {
				m.status, m.updated = "confirming", time.Now().UTC()
			}
		}
	}},
}

// wellFormed reports whether nova takes the body of an action
// (nova/api/openstack/compute/schemas/migrate_server.py and evacuate.py, as of 2.68).
func wellFormed(name string, body any) bool {
	fields, ok := body.(map[string]any)
	switch name {
	case "evacuate":
		return ok && len(fields) == 0
	case "os-migrateLive":
	default:
		return body == nil
	}
	host, hasHost := fields["host"]
	block := fields["block_migration"]
	_, isBool := block.(bool)
	return ok && len(fields) == 2 && hasHost && host == nil && (isBool || block == "auto")
}

func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	s.proceed()
	g := s.guests[r.PathValue("id")]
	if g == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	name := slices.Collect(maps.Keys(body))[0]
	action, known := actions[name]
	conflict := func(format string, args ...any) {
		reply(w, http.StatusConflict, map[string]any{"conflictingRequest": map[string]any{"code": 409, "message": fmt.Sprintf(format, args...)}})
	}
	s.requests = append(s.requests, name+" "+g.Name)
	switch {
	case !known || !wellFormed(name, body[name]):
		reply(w, http.StatusBadRequest, map[string]any{"badRequest": map[string]any{"code": 400, "message": "Invalid input for field/attribute " + name}})
	case !slices.Contains(action.states, g.State):
		conflict("Cannot '%s' instance %s while it is in vm_state %s", name, g.id, g.State)
	case name == "evacuate" && s.view(g.Host, s.hosts[g.Host])["state"] == "up":
		reply(w, http.StatusBadRequest, map[string]any{"badRequest": map[string]any{"code": 400, "message": "Compute service of " + g.Host + " is still in use."}})
	case g.Task != "":
		conflict("Cannot '%s' instance %s while it is in task_state %s", name, g.id, g.Task)
	case g.Refusal != "" && slices.Contains([]string{"os-migrateLive", "migrate", "evacuate"}, name):
		conflict("%s", g.Refusal)
	default:
		action.do(s, g)
		w.WriteHeader(action.code)
	}
}

func (s *Server) listServers(w http.ResponseWriter, r *http.Request) {
	s.proceed()
	all := []any{}
	for _, id := range s.onHost(r.URL.Query().Get("host")) {
		if r.URL.Query().Get("all_tenants") != "" && s.fault != CellDown {
			all = append(all, s.guests[id].view())
		}
	}
	reply(w, http.StatusOK, map[string]any{"servers": all})
}

// view of a guest.
func (g *Guest) view() map[string]any {
	var task any
	if g.Task != "" {
		task = g.Task
	}
	groups := []string{}
	if g.Group != "" {
		groups = append(groups, groupID)
	}
	return map[string]any{
		"id": g.id, "name": g.Name, "locked": g.Locked, "OS-EXT-STS:vm_state": g.State, "OS-EXT-STS:task_state": task,
		"OS-EXT-SRV-ATTR:host": g.Host, "updated": g.updated.Format(time.RFC3339), "server_groups": groups, "links": []any{},
	}
}

func (s *Server) listMigrations(w http.ResponseWriter, r *http.Request) {
	s.proceed()
	query := r.URL.Query()
	for key := range query { // additionalProperties is false as of 2.59
		if !slices.Contains([]string{"host", "status", "migration_type", "limit"}, key) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	all := []any{}
	for _, m := range slices.Backward(s.migrations) { // the newest comes first
		if s.fault != CellDown && m.matches(query) {
			all = append(all, map[string]any{
				"uuid": m.id, "instance_uuid": m.guest, "source_compute": m.source, "dest_compute": m.target, "migration_type": m.kind, "status": m.status,
				"user_id": m.user, "created_at": m.created.Format(microseconds), "updated_at": m.updated.Format(microseconds),
			})
		}
	}
	reply(w, http.StatusOK, map[string]any{"migrations": all})
}

// matches reports whether a migration is what a list is asked for: one status at a time
// (nova/api/openstack/compute/migrations.py).
func (m *migration) matches(query url.Values) bool {
	is := func(key string, values ...string) bool {
		return !query.Has(key) || slices.Contains(values, query.Get(key))
	}
	return is("host", m.source, m.target) && is("status", m.status) && is("migration_type", m.kind)
}

const microseconds = "2006-01-02T15:04:05.000000"

// groupID is that of every server group.
const groupID = "00000000-0000-4000-9000-000000000000"

func (s *Server) showServer(w http.ResponseWriter, r *http.Request) {
	if g := s.guests[r.PathValue("id")]; g != nil {
		reply(w, http.StatusOK, map[string]any{"server": g.view()})
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

func (s *Server) showGroup(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"server_group": map[string]any{"id": groupID, "name": "pair", "policy": "anti-affinity"}})
}

// listActions has the last migration of a guest only.
func (s *Server) listActions(w http.ResponseWriter, r *http.Request) {
	action := "live-migration"
	for _, m := range s.migrations {
		if m.guest == r.PathValue("id") && m.kind == "evacuation" {
			action = "evacuate"
		}
	}
	reply(w, http.StatusOK, map[string]any{"instanceActions": []any{
		map[string]any{"action": action, "request_id": "req-" + r.PathValue("id"), "start_time": time.Now().UTC().Format(microseconds)},
	}})
}

// showAction has the details of events, which are shown as of 2.84.
func (s *Server) showAction(w http.ResponseWriter, r *http.Request) {
	events := []any{}
	if g := s.guests[r.PathValue("id")]; g != nil && g.why != "" {
		events = append(events, map[string]any{"event": "conductor_migrate_server", "result": "Error", "details": g.why})
	}
	reply(w, http.StatusOK, map[string]any{"instanceAction": map[string]any{"action": "live-migration", "events": events}})
}

// HoldMigrations has no migration end until the returned function is called.
func (s *Server) HoldMigrations() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.takes
	s.takes = time.Hour
	return func() { s.Takes(before) }
}
