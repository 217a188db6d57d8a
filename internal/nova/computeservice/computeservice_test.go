package computeservice

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"k8s.io/apimachinery/pkg/types"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// The stories with a controller are in controllers/service_test.go and
// controllers/removal_test.go.

func TestNovaIsAskedLessAndLessOften(t *testing.T) {
	opts, now := Options{Interval: 30 * time.Second, Soon: 5 * time.Second}, time.Unix(1e9, 0)
	name := Name{NamespacedName: types.NamespacedName{Name: "n"}}
	up := map[string]Service{"n": {ID: "1", Up: true}}
	known := func(change func(*novaState)) *novaState {
		c := &novaState{
			subjects: map[Name]Subject{name: {Hosts: []string{"n"}}}, awaited: map[Name]bool{name: true},
			asked: true, services: up, mapped: map[string]string{"1": "n1"}, read: now, changed: now,
		}
		change(c)
		return c
	}
	trouble := &Trouble{Message: "x"}
	for title, c := range map[string]struct {
		state *novaState
		after time.Duration
		want  time.Duration
	}{
		"all are up":                                {known(func(*novaState) {}), 0, 30 * time.Second},
		"all are up, some time later":               {known(func(*novaState) {}), 10 * time.Second, 20 * time.Second},
		"it was not asked yet":                      {known(func(c *novaState) { c.asked = false }), 0, 5 * time.Second},
		"one is awaited that is not there":          {known(func(c *novaState) { c.services = nil }), 0, 5 * time.Second},
		"one is not there that no one awaits":       {known(func(c *novaState) { c.services, c.awaited = nil, nil }), 0, 30 * time.Second},
		"one is awaited that is not mapped":         {known(func(c *novaState) { c.mapped = nil }), 0, 5 * time.Second},
		"one is awaited for 40 s":                   {known(func(c *novaState) { c.services, c.changed = nil, now.Add(-40*time.Second) }), 0, 10 * time.Second},
		"one is awaited for an hour":                {known(func(c *novaState) { c.services, c.changed = nil, now.Add(-time.Hour) }), 0, 30 * time.Second},
		"it failed once":                            {known(func(c *novaState) { c.trouble, c.failures = trouble, 1 }), 0, 10 * time.Second},
		"it failed often":                           {known(func(c *novaState) { c.trouble, c.failures = trouble, 99 }), 0, 30 * time.Second},
		"it failed, and has another password since": {known(func(c *novaState) { c.trouble = trouble }), 0, 5 * time.Second},
		"a guest of one is being moved":             {known(func(c *novaState) { c.followed = map[Name]bool{name: true} }), 0, 5 * time.Second},
		"one is followed in which nothing moves":    {known(func(c *novaState) { c.followed = map[Name]bool{name: false} }), 0, 30 * time.Second},
		"it listed services before it is watched":   {known(func(c *novaState) { c.listed, c.watched = now.Add(-time.Second), now }), 0, 5 * time.Second},
		"it listed them since":                      {known(func(c *novaState) { c.listed, c.watched = now.Add(time.Second), now }), 0, 30 * time.Second},
		"it is late":                                {known(func(*novaState) {}), time.Hour, 0},
	} {
		if got := c.state.due(opts, now.Add(c.after)); got != c.want {
			t.Errorf("%s: it is asked after %v; want %v", title, got, c.want)
		}
	}
}

func TestHostsThatAreNeverMappedAreTriedLessAndLessOften(t *testing.T) {
	opts, now := Options{Interval: 30 * time.Second, Soon: 5 * time.Second}, time.Unix(1e9, 0)
	c := &novaState{subjects: map[Name]Subject{{NamespacedName: types.NamespacedName{Name: "n"}}: {Hosts: []string{"n"}}}, services: map[string]Service{"n": {ID: "1", Host: "n", Up: true}}}
	var pauses []time.Duration
	for range 9 {
		c.plan(now)
		if c.round == nil || len(c.round.Hosts) != 1 || c.round.Hosts[0] != "n 1" {
			t.Fatalf("the round is %+v; want host n", c.round)
		}
		c.ended(c.round, opts, now)
		c.plan(now)
		if c.round != nil {
			t.Fatal("there is another round at once")
		}
		pauses, now = append(pauses, c.next.Sub(now)), c.next
	}
	if got := fmt.Sprint(pauses); got != "[5s 10s 20s 40s 1m20s 2m40s 5m20s 5m20s 5m20s]" {
		t.Errorf("the pauses are %s", got)
	}
	c.mapped = map[string]string{"1": "n1"}
	if c.plan(now); c.round != nil || c.rounds != 0 {
		t.Errorf("all are mapped, and there is round %+v after %d", c.round, c.rounds)
	}
}

func TestAddressesOfTheMachineAreNotConnectedTo(t *testing.T) {
	for address, want := range map[string]bool{
		"10.0.0.1:5000": true, "[fd00::1]:5000": true, "192.0.2.1:80": true,
		"127.0.0.1:80": false, "[::1]:80": false, "169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "0.0.0.0:80": false, "[::]:80": false, "[::ffff:169.254.169.254]:80": false,
	} {
		if err := (Options{}).allow("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v; want it to be allowed: %v", address, err, want)
		}
	}
	_, err := connect(context.Background(), Access{AuthURL: "http://127.0.0.1:1", User: "nova", UserDomain: "Default", ProjectDomain: "Default", Password: "hunter2"}, DefaultOptions)
	if err == nil || !strings.Contains(err.Error(), "has an address that the operators do not connect to") {
		t.Errorf("connecting to the machine itself: %v", err)
	}
}

func TestACertificateIsVerifiedWithTheAuthorityOfTheNova(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	opts := DefaultOptions
	opts.Loopback = true
	for authority, says := range map[string]string{"": "has a certificate that cannot be verified", string(ca): "refuses user nova"} {
		_, err := connect(context.Background(), Access{AuthURL: server.URL, User: "nova", UserDomain: "d", ProjectDomain: "d", Password: "p", CA: authority}, opts)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("with authority %.30q: %v; want %q", authority, err, says)
		}
	}
}

func TestTroubleSaysNothingOfWhatAServerAnswered(t *testing.T) {
	a := &api{access: Access{AuthURL: "http://user:hunter2@keystone:5000/v3?token=hunter2", Region: "r", User: "nova", Password: "hunter2"}}
	code := func(n int) error {
		return gophercloud.ErrUnexpectedResponseCode{Actual: n, Body: []byte("hunter2"), URL: "http://hunter2"}
	}
	for title, c := range map[string]struct {
		at     peer
		err    error
		reason any
		says   string
	}{
		"a wrong password":             {keystone, code(http.StatusUnauthorized), novav1.KeystoneAccessDeniedReason, "keystone at http://keystone:5000/v3 refuses user nova"},
		"a token that ended, and then": {nova, &gophercloud.ErrUnableToReauthenticate{ErrOriginal: code(401), ErrReauth: code(503)}, novav1.KeystoneUnreachableReason, "it answers 503"},
		"no endpoint":                  {nova, &gophercloud.ErrEndpointNotFound{}, novav1.EndpointMissingReason, "of type compute in region r"},
		"no placement":                 {placement, &gophercloud.ErrEndpointNotFound{}, novav1.PlacementMissingReason, "of type placement in region r"},
		"nova refuses":                 {nova, code(http.StatusForbidden), novav1.APIAccessDeniedReason, "role admin"},
		"no one listens":               {keystone, fmt.Errorf("dial: %w", syscall.ECONNREFUSED), novav1.KeystoneUnreachableReason, "it refuses connections"},
		"silence":                      {nova, context.DeadlineExceeded, novav1.APIUnreachableReason, "it does not answer in time"},
		"an endless answer":            {nova, &http.MaxBytesError{}, novav1.APIUnreachableReason, "more than 8 MiB"},
		"anything":                     {nova, errors.New("hunter2"), novav1.APIUnreachableReason, "it does not answer as expected"},
	} {
		got := a.trouble(c.at, c.err)
		if got.Reason != c.reason || !strings.Contains(got.Message, c.says) || strings.Contains(got.Message, "hunter2") {
			t.Errorf("%s: %+v; want %s with %q", title, got, c.reason, c.says)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %s", a.access, a.access, a.access, &a.access); strings.Contains(text, "hunter2") {
		t.Errorf("access is printed as %s", text)
	}
}

// fakeCloud answers like keystone, and what is given for nova. It calls the function
// before it authenticates.
func fakeCloud(t *testing.T, answer string, authenticating func()) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, _ *http.Request) {
		authenticating()
		w.Header().Set("X-Subject-Token", "t")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "catalog": [{"type": "compute", "name": "nova", "endpoints": [
			{"id": "e", "interface": "internal", "region": "r", "region_id": "r", "url": %q}]}, {"type": "placement", "name": "placement", "endpoints": [
			{"id": "p", "interface": "internal", "region": "r", "region_id": "r", "url": "http://placement.invalid"}]}]}}`, server.URL+"/v2.1")
	})
	mux.HandleFunc("GET /v2.1/os-services", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	})
	return server
}

func accessTo(server *httptest.Server) Access {
	return Access{AuthURL: server.URL, Region: "r", User: "nova", UserDomain: "d", ProjectDomain: "d", Password: "p"}
}

func TestAServiceWithoutAUUIDIsLeftOut(t *testing.T) {
	const good = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
	server := fakeCloud(t, `{"services": [{"id": "../servers", "host": "a", "state": "up", "updated_at": "2026-01-01T00:00:00.000000"}, {"id": "`+good+`", "host": "b", "state": "up", "updated_at": "2026-01-01T00:00:00.000000"}]}`, func() {})
	a, err := connect(t.Context(), accessTo(server), Options{Timeout: time.Minute, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := a.list(t.Context(), "")
	if err != nil || len(found) != 1 || found[0].ID != good || found[0].Host != "b" {
		t.Errorf("listed %+v (%v); want %s only", found, err, good)
	}
}

func TestWhatIsKnownOfACellIsKeptWhileItIsNotReached(t *testing.T) {
	subject := func(name string) Subject {
		return Subject{Hosts: []string{name}}
	}
	c := &novaState{
		subjects: map[Name]Subject{}, asked: true, mapped: map[string]string{"1": "n1", "3": "n3"},
		services: map[string]Service{"a": {ID: "1", Host: "a", Up: true}, "moved": {ID: "3", Host: "moved", Up: true}},
	}
	c.note(answer{
		services:  map[string]Service{"b": {ID: "2", Host: "b", Up: true}, "moved": {ID: "4", Host: "moved"}},
		unreached: map[string]bool{"a": true, "moved": true, "never-seen": true}, mapped: map[string]string{"2": "n2"},
	}, &Trouble{Reason: novav1.CellUnreachableReason}, time.Now())
	for host, want := range map[string]View{
		"a":          {Asked: true, Service: Service{ID: "1", Host: "a", Up: true, Mapped: true, ComputeID: "n1"}, Reported: true},
		"b":          {Asked: true, Service: Service{ID: "2", Host: "b", Up: true, Mapped: true, ComputeID: "n2"}, Reported: true},
		"moved":      {Asked: true, Service: Service{ID: "4", Host: "moved"}, Trouble: c.trouble},
		"never-seen": {Trouble: c.trouble},
		"unknown":    {Asked: true, Trouble: c.trouble},
	} {
		if got := c.view(subject(host)); !got.equal(want) {
			t.Errorf("%s: %+v; want %+v", host, got, want)
		}
	}
}

func TestTheComputeNodeOfAHostIsAskedForUntilItIsKnown(t *testing.T) {
	host, pod := Name{NamespacedName: types.NamespacedName{Name: "n"}}, Name{NamespacedName: types.NamespacedName{Name: "n"}, Pod: "n"}
	for title, c := range map[string]struct {
		name    Name
		service Service
		mapped  map[string]string
		want    bool
	}{
		"it is known":                         {host, Service{ID: "1", Up: true}, map[string]string{"1": "n1"}, false},
		"only that the host is mapped is":     {host, Service{ID: "1", Up: true}, map[string]string{"1": ""}, true},
		"nothing is known of one that is off": {host, Service{ID: "1"}, nil, true},
		"nova does not know the host":         {host, Service{}, nil, false},
		"it is a pod, which may have many":    {pod, Service{ID: "1", Up: true}, map[string]string{"1": ""}, false},
	} {
		state := &novaState{subjects: map[Name]Subject{c.name: {Hosts: []string{"n"}}}, mapped: c.mapped}
		if got := state.unsure(map[string]Service{"n": c.service}); got != c.want {
			t.Errorf("%s: it is asked for: %t", title, got)
		}
	}
}

func TestAComputeThatCouldNotWriteIsWokenByTheNextAnswerOnly(t *testing.T) {
	name := Name{NamespacedName: types.NamespacedName{Name: "n"}}
	c := &novaState{subjects: map[Name]Subject{name: {Hosts: []string{"n"}}}, followed: map[Name]bool{name: true}}
	trouble := &Trouble{Reason: novav1.APIUnreachableReason}
	c.note(answer{}, trouble, time.Now())
	c.followed[name] = true
	if got := c.note(answer{}, trouble, time.Now()); len(got) != 1 || got[0] != name {
		t.Errorf("woken are %v; want the one that could not write, although nothing has changed", got)
	}
	if got := c.note(answer{}, trouble, time.Now()); len(got) != 0 {
		t.Errorf("woken are %v, and nothing has changed", got)
	}
}

// TestAWatchedNovaIsAskedAgain: an update is checked by what nova says then, not by what it said half a minute ago.
func TestAWatchedNovaIsAskedAgain(t *testing.T) {
	o, nova := New(t.Context(), Options{Interval: time.Hour, Soon: time.Millisecond, Timeout: time.Minute, Loopback: true}), types.NamespacedName{Name: "nova"}
	o.Observe(nova, Subject{Name: Name{NamespacedName: types.NamespacedName{Name: "n"}}}) // so that it is asked all the time
	o.Configure(nova, accessTo(fakeCloud(t, `{"services": []}`, func() {})))
	for range 2 {
		if o.Watch(nova).Asked {
			t.Fatal("what was listed before counts")
		}
		for !o.Watch(nova).Asked {
			time.Sleep(time.Millisecond)
		}
		o.Unwatch(nova)
	}
}

func TestANovaIsForgottenWhileItsTokenIsFetched(t *testing.T) {
	nova := types.NamespacedName{Name: "nova"}
	o := New(t.Context(), Options{Interval: time.Minute, Soon: time.Minute, Timeout: time.Minute, Loopback: true})
	server := fakeCloud(t, "", func() { o.Forget(nova) })
	o.Configure(nova, accessTo(server))
	if _, err := o.Client(t.Context(), nova); err != nil {
		t.Error(err)
	}
}

func TestAServiceIsReadAgainBeforeItIsChanged(t *testing.T) {
	const id, host = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed", "a"
	server := fakeCloud(t, `{"services": [{"id": "`+id+`", "host": "a", "state": "up", "status": "disabled", "disabled_reason": "bad DIMM", "updated_at": "2026-01-01T00:00:00.000000"}]}`, func() {})
	nova, listed := types.NamespacedName{Name: "nova"}, Service{ID: id, Host: host, Up: true, Disabled: true, DisabledReason: "old", Mapped: true}
	o := New(t.Context(), Options{Interval: time.Minute, Soon: time.Minute, Timeout: time.Minute, Loopback: true})
	o.Configure(nova, accessTo(server))
	o.novas[nova].services = map[string]Service{host: listed}
	c, err := o.Client(t.Context(), nova)
	if err != nil {
		t.Fatal(err)
	}
	want := listed
	want.DisabledReason, want.reported = "bad DIMM", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want.lastReport = want.reported
	if got, err := c.Refresh(t.Context(), listed); err != nil || got != want {
		t.Errorf("it is %+v (%v); want %+v", got, err, want)
	}
	if got := o.novas[nova].services[host].DisabledReason; got != "bad DIMM" {
		t.Errorf("the observer still has %q", got)
	}
	if got, err := c.Refresh(t.Context(), Service{ID: "deleted", Host: host}); err != nil || got != (Service{}) {
		t.Errorf("one that no longer exists is %+v (%v)", got, err)
	}
}

func TestAServiceHasReportedOnceItDidSinceItWasStarted(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		service Service
		since   time.Time
		want    bool
	}{
		"it is not known when it was started": {Service{ID: "1", Host: "a", Up: true, reported: start}, time.Time{}, true},
		"it has reported before":              {Service{ID: "1", Host: "a", Up: true, reported: start.Add(-time.Second)}, start, false},
		"it has reported since":               {Service{ID: "1", Host: "a", Up: true, reported: start.Add(time.Second)}, start, true},
		"nova does not say when":              {Service{ID: "1", Host: "a", Up: true}, start, true},
		"it is down":                          {Service{ID: "1", Host: "a", reported: start.Add(time.Second)}, start, false},
	} {
		state := &novaState{asked: true, services: map[string]Service{"a": c.service}, mapped: map[string]string{"1": "n1"}, trouble: &Trouble{Message: "down"}}
		view := state.view(Subject{Hosts: []string{"a"}, Since: c.since})
		if view.Reported != c.want {
			t.Errorf("%s: it has reported: %t, want %t", name, view.Reported, c.want)
		}
		if waits := c.service.Up && !c.want; (view.Trouble != nil) != waits {
			t.Errorf("%s: the trouble is %v; it is waited for: %t", name, view.Trouble, waits)
		}
		if !view.Service.reported.IsZero() || !view.Service.lastReport.IsZero() {
			t.Errorf("%s: the view differs with every report", name)
		}
	}
}
