package computeservice

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/hypervisors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/pagination"
)

const (
	// microversion in which services have a UUID, one request can change all of their
	// state, those of a cell that the API does not reach are listed by their hosts
	// rather than left out, and migrations say who asked for them and why they failed
	// (2.53, 2.69, 2.80 and 2.84 in nova's history of its REST API). 2.88 and later ask
	// every host for its uptime when hypervisors are listed.
	microversion = "2.84"
	// unknown is the status of services in a cell whose database the API does not reach.
	unknown = "UNKNOWN"
	binary  = "nova-compute"
	// project of the users of services.
	project = "service"
	// largestAnswer bounds what an answer may take of the memory of the manager: some
	// 20,000 services.
	largestAnswer = 8 << 20
	// mostHosts bounds what is remembered of many answers.
	mostHosts = 20_000
)

// Access is how the API of a Nova is found and asked.
type Access struct {
	AuthURL, Region                 string
	User, UserDomain, ProjectDomain string
	Password                        string
	// CA are certificates, in PEM, of authorities that are trusted next to those of the
	// system.
	CA string
}

// String leaves the password out.
func (a Access) String() string { return a.User + " at " + plain(a.AuthURL) }

// GoString leaves the password out.
func (a Access) GoString() string { return a.String() }

// api is an authenticated client of nova.
type api struct {
	access  Access
	compute *gophercloud.ServiceClient
	// user is the id of the service user in keystone.
	user string
}

// connect authenticates and finds nova in the catalogue. The error is a *Trouble.
func connect(ctx context.Context, access Access, opts Options) (*api, error) {
	a := &api{access: access}
	provider, err := openstack.NewClient(identity(access.AuthURL))
	if err != nil {
		return nil, a.trouble(keystone, err)
	}
	if provider.HTTPClient, err = opts.httpClient(access.CA); err != nil {
		return nil, a.trouble(keystone, err)
	}
	provider.UserAgent.Prepend("edpm-operators")
	err = openstack.Authenticate(ctx, provider, gophercloud.AuthOptions{
		IdentityEndpoint: provider.IdentityEndpoint, Username: access.User, Password: access.Password, DomainName: access.UserDomain,
		Scope: &gophercloud.AuthScope{ProjectName: project, DomainName: access.ProjectDomain}, AllowReauth: true,
	})
	if err != nil {
		return nil, a.trouble(keystone, err)
	}
	internal := gophercloud.EndpointOpts{Region: access.Region, Availability: gophercloud.AvailabilityInternal}
	compute, err := openstack.NewComputeV2(provider, internal)
	if err != nil {
		return nil, a.trouble(nova, err)
	}
	// Nothing is asked of placement, but nova puts no guest anywhere without it.
	internal.ApplyDefaults("placement")
	if _, err := provider.EndpointLocator(internal); err != nil {
		return nil, a.trouble(placement, err)
	}
	compute.Microversion = microversion
	a.compute, a.user = compute, userOf(provider)
	return a, nil
}

// userOf returns the id of the user who is authenticated; empty if keystone does not say.
func userOf(provider *gophercloud.ProviderClient) string {
	token, ok := provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return ""
	}
	user, err := token.ExtractUser()
	if err != nil || user == nil {
		return ""
	}
	return user.ID
}

// identity is the address of version 3 of keystone: a list of versions may name an
// address that only others reach.
func identity(url string) string {
	url = strings.TrimRight(url, "/")
	if !strings.HasSuffix(url, "/v3") {
		url += "/v3"
	}
	return url + "/"
}

// httpClient follows no redirect, which would take the token to another host, and
// reaches nothing that only the manager's own machine is to reach: who may create a
// Nova decides where keystone is.
func (o Options) httpClient(ca string) (http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: o.Timeout, Control: o.allow}).DialContext
	transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = 1, 2*o.Interval
	if ca != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return http.Client{}, fmt.Errorf("reading the certificates of the system: %w", err)
		}
		pool.AppendCertsFromPEM([]byte(ca))
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return http.Client{
		Transport: bounded{transport}, Timeout: o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

var errAddress = errors.New("the address is not allowed")

// allow refuses addresses of the machine itself and of its link, where clouds have
// their metadata.
func (o Options) allow(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip := net.ParseIP(strings.Split(host, "%")[0])
	if ip == nil || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip.IsLoopback() && !o.Loopback {
		return errAddress
	}
	return nil
}

// bounded bounds the size of answers.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, largestAnswer)
	}
	return answer, err
}

// list returns the services nova-compute of all cells, or those of one host, and the
// hosts of which nothing is known because the API does not reach the database of their
// cell. What has no UUID is left out: it becomes part of addresses and of what is stored.
func (a *api) list(ctx context.Context, host string) (listed []Service, unreached map[string]bool, err error) {
	pages, err := services.List(a.compute, services.ListOpts{Binary: binary, Host: host}).AllPages(ctx)
	if err != nil {
		return nil, nil, a.trouble(nova, err)
	}
	var all []entry
	if err := pages.(services.ServicePage).ExtractIntoSlicePtr(&all, "services"); err != nil {
		return nil, nil, a.trouble(nova, err)
	}
	unreached = map[string]bool{}
	for _, e := range all {
		switch s := e.service; {
		case s.Status == unknown:
			unreached[s.Host] = true
		case uuid.Validate(s.ID) == nil:
			listed = append(listed, newService(s))
		}
	}
	return listed, unreached, nil
}

// entry of a list of services. Of a service whose status is unknown it has only the host,
// which gophercloud takes for an error.
type entry struct{ service services.Service }

// UnmarshalJSON implements json.Unmarshaler.
func (e *entry) UnmarshalJSON(text []byte) error {
	var brief struct{ Host, Status string }
	if err := json.Unmarshal(text, &brief); err != nil || brief.Status != unknown {
		return json.Unmarshal(text, &e.service)
	}
	e.service.Host, e.service.Status = brief.Host, brief.Status
	return nil
}

// mapped returns the ids of the services whose hosts are mapped, with those of their compute
// nodes: nova lists no hypervisor of another host.
func (a *api) mapped(ctx context.Context) (map[string]string, error) {
	ids := map[string]string{}
	// Not AllPages: a server could send pages without end.
	err := hypervisors.List(a.compute, hypervisors.ListOpts{}).EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
		found, err := hypervisors.ExtractHypervisors(page)
		for i := range found {
			if uuid.Validate(found[i].ID) != nil { // it is written to hosts
				found[i].ID = ""
			}
			ids[found[i].Service.ID] = found[i].ID
		}
		return len(ids) < mostHosts, err
	})
	if err != nil {
		return nil, a.trouble(nova, err)
	}
	return ids, nil
}

// Service is a service nova-compute.
type Service struct {
	ID, Host       string
	Up             bool
	Disabled       bool
	DisabledReason string
	ForcedDown     bool
	// Seen is when it reported last; zero while it is up, or forced down, which hides that.
	Seen time.Time
	// Rival reports whether nova has another service of the same host, in another cell.
	Rival bool
	// Mapped reports whether the host is known to be mapped to its cell, and ComputeID is the
	// id of its compute node; empty if that is not known.
	Mapped    bool
	ComputeID string

	// reported is when it reported last, by the clock of nova, in whole seconds as steps end.
	reported, lastReport time.Time
}

// longestReason is what nova accepts; what it shows is not ours to trust.
const longestReason = 255

func newService(s services.Service) Service {
	out := Service{
		ID: s.ID, Host: s.Host, Up: s.State == "up", Disabled: s.Status == string(services.ServiceDisabled),
		DisabledReason: Shorten(s.DisabledReason), ForcedDown: s.ForcedDown, reported: s.UpdatedAt.UTC().Truncate(time.Second), lastReport: s.UpdatedAt.UTC(),
	}
	if !out.Up && !out.ForcedDown {
		out.Seen = out.reported
	}
	return out
}

// LastReport is when it reported, or was changed, last by the clock of nova. Only a service that
// was read by a Client has it.
func (s Service) LastReport() time.Time { return s.lastReport }

// Shorten cuts a reason to what nova accepts.
func Shorten(text string) string {
	if runes := []rune(text); len(runes) > longestReason {
		return string(runes[:longestReason])
	}
	return text
}
