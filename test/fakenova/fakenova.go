// Package fakenova is a double of keystone and of nova's API, for stories about
// compute services. It answers as nova 26 (Zed) was seen to, or as its source says,
// where the comment says so:
//
//   - A service appears in os-services when nova-compute starts, mapped or not, and is
//     shown up as long as it reports, and for a while after it has stopped (seen: up to
//     60 s, service_down_time; here DownAfter).
//   - os-hypervisors has only hosts that are mapped to a cell (hypervisors.py leaves
//     out those for which service_get_by_compute_host raises HostMappingNotFound).
//   - discover_hosts maps every host that has a compute node, and no other (seen), and with
//     --by-service every host that has a service.
//   - Deleting a service with instances is refused with 409 (seen), and so is one whose
//     host has a migration in progress (services.py); else service, host mapping and
//     resource provider no longer exist (seen).
//   - A nova-compute whose service was deleted while it runs makes a compute node and a
//     provider without a service: a ghost (seen).
//   - A service that is forced down is shown down, whether it reports or not. When it was
//     updated last is also when a user changed it.
//   - A guest is migrated in a state that allows it only, one thing at a time; a cold
//     migration ends once it is confirmed; a guest that is locked is moved nevertheless for
//     a user with the role admin (guests.go).
//   - A guest is evacuated whose service is down, in a state that allows it; where no host is
//     valid it is in ERROR then. nova-compute removes what is left of guests that were
//     evacuated when it starts (_destroy_evacuated_instances in nova/compute/manager.py).
//   - Enabling with a reason, or disabling with an empty one, is refused with 400 (schema
//     of 2.84).
package fakenova

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Token that the double gives.
const token = "fake-token"

// Fault is something that does not work.
type Fault string

// Faults of keystone and of nova.
const (
	None Fault = ""
	// KeystoneDown answers every request to keystone with 503.
	KeystoneDown Fault = "keystone is down"
	// NoEndpoint leaves nova out of the catalogue.
	NoEndpoint Fault = "nova is not in the catalogue"
	// NoPlacement leaves placement out of the catalogue.
	NoPlacement Fault = "placement is not in the catalogue"
	// NovaDown answers every request to nova with 503.
	NovaDown Fault = "nova is down"
	// CellDown has nova not reach the database of the cell that all hosts are in.
	CellDown Fault = "the database of the cell is down"
	// NovaRefuses answers every request to nova with 403, as to a user without the role admin.
	NovaRefuses Fault = "nova refuses"
	// Redirect sends requests to nova elsewhere.
	Redirect Fault = "nova redirects"
)

// Server is the double.
type Server struct {
	*httptest.Server

	mu        sync.Mutex
	password  string
	others    map[string]string // passwords of further users, by name
	fault     Fault
	downAfter time.Duration
	hosts     map[string]*host
	next      int
	// guests by their id, and their migrations, the oldest first.
	guests     map[string]*Guest
	migrations []*migration
	takes      time.Duration
	// atOnce is how many guests of a host were in progress at the same time, at most.
	atOnce map[string]int
	// doubled are guests that were evacuated from a host that was on.
	doubled []string
	// requests of each kind so far, as METHOD path.
	requests []string
	// killAt is the write, counted down, at which the client dies: before it is done, or
	// without the answer.
	killAt   int
	killDone bool
	killed   chan struct{}
	// elsewhere counts requests that a redirect led astray.
	elsewhere int
}

// host has a nova-compute, or had one.
type host struct {
	service *service
	// running reports whether nova-compute runs, node whether it made a compute node, and nodeID
	// is the id of that.
	running, node, mapped bool
	nodeID                string
	ghosts                int
}

type service struct {
	id, reason       string
	disabled, forced bool
	seen, changed    time.Time
}

// Start starts a double that accepts a password.
func Start(password string) *Server {
	s := &Server{password: password, hosts: map[string]*host{}, guests: map[string]*Guest{}, atOnce: map[string]int{}, takes: 100 * time.Millisecond}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/auth/tokens", s.keystone)
	mux.HandleFunc("GET /v2.1/os-services", s.nova(s.listServices))
	mux.HandleFunc("PUT /v2.1/os-services/{id}", s.nova(s.updateService))
	mux.HandleFunc("DELETE /v2.1/os-services/{id}", s.nova(s.deleteService))
	mux.HandleFunc("GET /v2.1/os-hypervisors/detail", s.nova(s.listHypervisors))
	mux.HandleFunc("GET /v2.1/servers/detail", s.nova(s.listServers))
	mux.HandleFunc("GET /v2.1/servers/{id}", s.nova(s.showServer))
	mux.HandleFunc("POST /v2.1/servers/{id}/action", s.nova(s.act))
	mux.HandleFunc("GET /v2.1/servers/{id}/os-instance-actions", s.nova(s.listActions))
	mux.HandleFunc("GET /v2.1/servers/{id}/os-instance-actions/{request}", s.nova(s.showAction))
	mux.HandleFunc("GET /v2.1/os-migrations", s.nova(s.listMigrations))
	mux.HandleFunc("GET /v2.1/os-server-groups/{id}", s.nova(s.showGroup))
	mux.HandleFunc("/elsewhere/", s.astray)
	s.Server = httptest.NewServer(mux)
	return s
}

// Run has nova-compute run on a host: it registers, or reports again.
func (s *Server) Run(names ...string) {
	s.change(names, func(h *host) {
		if h.service == nil {
			h.service = &service{id: s.newID()}
		}
		h.running, h.node = true, true
		if h.nodeID == "" {
			h.nodeID = s.newID()
		}
	})
	s.removeEvacuated(names)
}

// RunAs has nova-compute run on a host whose disk has an id of its compute node, or is empty. It
// returns false if nova-compute refuses to start: its service exists, and it is another one
// (_ensure_existing_node_identity in nova/compute/manager.py).
func (s *Server) RunAs(name, nodeID string) bool {
	s.mu.Lock()
	h := s.hosts[name]
	refused := h != nil && h.service != nil && h.nodeID != nodeID
	s.mu.Unlock()
	if !refused {
		s.Run(name)
	}
	return !refused
}

// NodeID is the id of the compute node of a host.
func (s *Server) NodeID(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[name].nodeID
}

// Register has nova-compute start on a host, and not come to the making of its compute node.
func (s *Server) Register(names ...string) {
	s.Run(names...)
	s.change(names, func(h *host) { h.node = false })
}

// Stop stops nova-compute on a host.
func (s *Server) Stop(names ...string) {
	s.change(names, func(h *host) { h.running, h.service.seen = false, time.Now().UTC().Truncate(time.Second) })
}

// Boot has so many instances on a host.
func (s *Server) Boot(name string, instances int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.onHost(name) {
		delete(s.guests, id)
	}
	for i := range instances {
		s.add(name, Guest{Name: fmt.Sprintf("guest-%d", i)})
	}
}

// Migrate has a migration of another user in progress from a host: a guest that waits for
// the confirmation of its resize. The returned function confirms it.
func (s *Server) Migrate(name string) (confirm func()) {
	return s.migrateForOther(name, "elsewhere", "resize", "finished", "confirmed")
}

// Resize has a guest resized to another host by another user. The returned function completes
// that, so that the resize waits for its confirmation.
func (s *Server) Resize(from, to string) (complete func()) {
	return s.migrateForOther(from, to, "resize", "migrating", "finished")
}

// MigrateCold has a guest of a host migrated cold by another user, who has not confirmed that.
func (s *Server) MigrateCold(from, to string) (confirm func()) {
	return s.migrateForOther(from, to, "migration", "finished", "confirmed")
}

// Move has a guest of a host moved by another user. The returned function completes that.
func (s *Server) Move(name string) (complete func()) {
	return s.migrateForOther(name, "elsewhere", "live-migration", "running", "completed")
}

// Approach has a guest of another host moved to this one by another user. The returned function ends
// that: the guest stays where it is.
func (s *Server) Approach(name string) (abort func()) {
	return s.migrateForOther("elsewhere", name, "live-migration", "running", "cancelled")
}

func (s *Server) migrateForOther(source, target, kind, status, end string) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UTC()
	m := &migration{id: s.newID(), guest: s.newID(), source: source, target: target, kind: kind, status: status, user: "person", created: now, updated: now}
	s.migrations = append(s.migrations, m)
	return func() { s.set(func() { m.status = end }) }
}

// Delete deletes the service of a host as a person does, once its nova-compute has stopped.
func (s *Server) Delete(name string) {
	s.change([]string{name}, func(h *host) { h.service, h.mapped, h.node, h.nodeID = nil, false, false, "" })
}

// Discover is what nova-manage cell_v2 discover_hosts does.
func (s *Server) Discover() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		h.mapped = h.mapped || h.node && h.service != nil
	}
}

// DiscoverByService is what it does with --by-service: it maps every host that has a service
// (nova/objects/host_mapping.py, _check_and_create_service_host_mappings).
func (s *Server) DiscoverByService() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		h.mapped = h.mapped || h.service != nil
	}
}

func (s *Server) change(names []string, f func(*host)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.hosts[name] == nil {
			s.hosts[name] = &host{}
		}
		f(s.hosts[name])
	}
}

// Break has something not work from now on.
func (s *Server) Break(f Fault) { s.set(func() { s.fault = f }) }

// DownAfter is how long a service that does not report is shown up.
func (s *Server) DownAfter(d time.Duration) { s.set(func() { s.downAfter = d }) }

// Disable disables the service of a host as a person does, or enables it.
func (s *Server) Disable(name string, disabled bool, reason string) {
	s.change([]string{name}, func(h *host) { h.service.disabled, h.service.reason = disabled, reason })
}

// ForceDown has the service of a host shown down, whether it reports or not.
func (s *Server) ForceDown(name string) {
	s.change([]string{name}, func(h *host) { h.service.forced = true })
}

func (s *Server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// State is what nova has of a host.
type State struct {
	Service, Mapped, Disabled, ForcedDown bool
	Reason                                string
	// Ghosts are compute nodes without a service.
	Ghosts int
}

// Host returns what nova has of a host.
func (s *Server) Host(name string) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[name]
	if h == nil {
		return State{}
	}
	state := State{Mapped: h.mapped, Ghosts: h.ghosts, Service: h.service != nil}
	if h.service != nil {
		state.Disabled, state.ForcedDown, state.Reason = h.service.disabled, h.service.forced, h.service.reason
	}
	return state
}

// Requests are those whose METHOD path begins so.
func (s *Server) Requests(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// Astray is the number of requests that followed a redirect.
func (s *Server) Astray() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elsewhere
}

func (s *Server) astray(http.ResponseWriter, *http.Request) { s.set(func() { s.elsewhere++ }) }

// Accept accepts a further service user.
func (s *Server) Accept(name, password string) {
	s.set(func() { s.others = map[string]string{name: password} })
}

// knows reports whether a user has the password. The caller holds the lock.
func (s *Server) knows(name, password string) bool {
	other, found := s.others[name]
	return name == "nova" && password == s.password || found && password == other
}

func (s *Server) keystone(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	var body struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct {
						Name, Password string
						Domain         struct{ Name string }
					}
				}
			}
			Scope struct {
				Project struct {
					Name   string
					Domain struct{ Name string }
				}
			}
		}
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	user, project := body.Auth.Identity.Password.User, body.Auth.Scope.Project
	switch {
	case s.fault == KeystoneDown:
		w.WriteHeader(http.StatusServiceUnavailable)
	case err != nil, !s.knows(user.Name, user.Password), user.Domain.Name != "Default", project.Name != "service", project.Domain.Name != "Default":
		// keystone repeats what it was sent: no one may show that
		reply(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"code": 401, "message": "refused " + user.Password}})
	default:
		w.Header().Set("X-Subject-Token", token)
		reply(w, http.StatusCreated, map[string]any{"token": map[string]any{
			"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"), "catalog": s.catalogue(),
			"user": map[string]any{"id": userID, "name": "nova", "domain": map[string]any{"id": "default", "name": "Default"}},
		}})
	}
}

// catalogue of keystone. The caller holds the lock.
func (s *Server) catalogue() []any {
	var services []any
	if s.fault != NoEndpoint {
		services = append(services, entry("compute", s.URL+"/v2.1"))
	}
	if s.fault != NoPlacement {
		services = append(services, entry("placement", "http://placement.invalid"))
	}
	return services
}

// entry of a service in the catalogue.
func entry(service, internal string) any {
	endpoint := func(of, url string) any {
		return map[string]any{"interface": of, "region": "regionOne", "region_id": "regionOne", "url": url}
	}
	return map[string]any{"type": service, "name": service, "endpoints": []any{endpoint("public", "http://public.invalid"), endpoint("internal", internal)}}
}

func (s *Server) nova(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if dead, kills := s.dies(r); dead {
			panic(http.ErrAbortHandler) // the connection ends
		} else if kills {
			defer func() { panic(http.ErrAbortHandler) }()
			w = httptest.NewRecorder()
		}
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		switch {
		case s.fault == NovaDown:
			w.WriteHeader(http.StatusServiceUnavailable)
		case s.fault == Redirect:
			http.Redirect(w, r, "/elsewhere/", http.StatusTemporaryRedirect)
		case r.Header.Get("X-Auth-Token") != token:
			w.WriteHeader(http.StatusUnauthorized)
		case s.fault == NovaRefuses:
			w.WriteHeader(http.StatusForbidden)
		case r.Header.Get("X-OpenStack-Nova-API-Version") != "2.84":
			w.WriteHeader(http.StatusNotAcceptable)
		default:
			next(w, r)
		}
	}
}

// KillAt has the client die at its n-th write from now: before nova does it, or after that
// and without the answer. No request is answered any more until Revive.
func (s *Server) KillAt(n int, done bool) (killed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killAt, s.killDone, s.killed = n, done, make(chan struct{})
	return s.killed
}

// Revive answers again.
func (s *Server) Revive() { s.set(func() { s.killed = nil }) }

// dies reports whether a request is of a client that is dead, or kills it once it is done.
// The caller holds the lock.
func (s *Server) dies(r *http.Request) (dead, kills bool) {
	switch {
	case s.killed == nil:
		return false, false
	case s.killAt == 0:
		return true, false
	case r.Method == http.MethodGet:
		return false, false
	}
	if s.killAt--; s.killAt > 0 {
		return false, false
	}
	close(s.killed)
	return !s.killDone, s.killDone
}

func (s *Server) listServices(w http.ResponseWriter, r *http.Request) {
	all := []any{}
	for name, h := range s.hosts {
		wanted := r.URL.Query().Get("host")
		switch {
		case wanted != "" && wanted != name:
		case s.fault == CellDown && h.mapped:
			all = append(all, map[string]any{"binary": "nova-compute", "host": name, "status": "UNKNOWN"})
		case s.fault != CellDown && h.service != nil:
			all = append(all, s.view(name, h))
		}
	}
	reply(w, http.StatusOK, map[string]any{"services": all})
}

// view of the service of a host. The caller holds the lock.
func (s *Server) view(name string, h *host) map[string]any {
	state, status, seen := "down", "enabled", h.service.seen
	if h.running {
		seen = time.Now().UTC()
	}
	if !h.service.forced && (h.running || time.Since(seen) < s.downAfter) {
		state = "up"
	}
	if h.service.changed.After(seen) {
		seen = h.service.changed
	}
	var reason any
	if h.service.disabled {
		status, reason = "disabled", h.service.reason
	}
	return map[string]any{
		"id": h.service.id, "host": name, "binary": "nova-compute", "zone": "nova", "state": state, "status": status,
		"disabled_reason": reason, "forced_down": h.service.forced, "updated_at": seen.Format("2006-01-02T15:04:05.000000"),
	}
}

func (s *Server) listHypervisors(w http.ResponseWriter, _ *http.Request) {
	all := []any{}
	for name, h := range s.hosts {
		if h.service != nil && h.node && h.mapped && s.fault != CellDown {
			all = append(all, map[string]any{
				"id": h.nodeID, "hypervisor_hostname": name + ".example", "state": "up", "status": "enabled", "hypervisor_version": 1,
				"free_disk_gb": 1, "local_gb": 1, "cpu_info": "", "service": map[string]any{"id": h.service.id, "host": name, "disabled_reason": nil},
			})
		}
	}
	reply(w, http.StatusOK, map[string]any{"hypervisors": all})
}

// find returns the host of a service. The caller holds the lock.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (string, *host) {
	for name, h := range s.hosts {
		if h.service != nil && h.service.id == r.PathValue("id") {
			return name, h
		}
	}
	w.WriteHeader(http.StatusNotFound)
	return "", nil
}

func (s *Server) updateService(w http.ResponseWriter, r *http.Request) {
	name, h := s.find(w, r)
	if h == nil {
		return
	}
	var body struct {
		Status         *string `json:"status"`
		DisabledReason *string `json:"disabled_reason"`
		ForcedDown     *bool   `json:"forced_down"`
	}
	disable := false
	err := json.NewDecoder(r.Body).Decode(&body)
	if body.Status != nil {
		disable = *body.Status == "disabled"
	}
	if err != nil || body.DisabledReason != nil && (!disable || *body.DisabledReason == "" || len(*body.DisabledReason) > 255) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	was := *h.service
	if body.Status != nil {
		h.service.disabled, h.service.reason = disable, ""
	}
	if body.DisabledReason != nil {
		h.service.reason = *body.DisabledReason
	}
	if body.ForcedDown != nil {
		h.service.forced = *body.ForcedDown
	}
	if *h.service == was {
		reply(w, http.StatusBadRequest, map[string]any{"badRequest": map[string]any{"code": 400, "message": "No updates were requested."}})
		return
	}
	h.service.changed = time.Now().UTC()
	if was.disabled != h.service.disabled && !h.running && s.view(name, h)["state"] == "up" {
		s.callInVain(r)
	}
	reply(w, http.StatusOK, map[string]any{"service": s.view(name, h)})
}

// callInVain is what the API does when a compute that it takes for up does not answer
// that it was enabled or disabled. The caller holds the lock.
func (s *Server) callInVain(r *http.Request) {
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-r.Context().Done():
	case <-time.After(time.Minute): // nova's rpc_response_timeout
	}
}

func (s *Server) deleteService(w http.ResponseWriter, r *http.Request) {
	name, h := s.find(w, r)
	if h == nil {
		return
	}
	s.proceed()
	if len(s.onHost(name)) > 0 || s.inMigration(name) {
		reply(w, http.StatusConflict, map[string]any{"conflictingRequest": map[string]any{"code": 409, "message": "Unable to delete compute service that is hosting instances, or has in-progress migrations."}})
		return
	}
	h.service, h.mapped, h.nodeID = nil, false, ""
	if h.node = h.running; h.running {
		h.ghosts++
	}
	w.WriteHeader(http.StatusNoContent)
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
