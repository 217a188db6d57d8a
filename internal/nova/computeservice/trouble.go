package computeservice

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// Trouble is why nova cannot be asked. Its text is the same for the same cause, and
// has nothing of what a server answered: it is shown in conditions.
type Trouble struct {
	Reason  condition.Reason
	Message string
}

// Error is the message of the condition.
func (t *Trouble) Error() string { return t.Message }

// peer is whom a request was for.
type peer string

const (
	keystone  peer = "keystone"
	nova      peer = "nova's API"
	placement peer = "placement"
)

// trouble turns an error of a request into what people can do about it.
func (a *api) trouble(at peer, err error) *Trouble {
	if reauth := (*gophercloud.ErrUnableToReauthenticate)(nil); errors.As(err, &reauth) {
		at, err = keystone, reauth.ErrReauth
	}
	if missing := (*gophercloud.ErrEndpointNotFound)(nil); errors.As(err, &missing) {
		return a.noEndpoint(at)
	}
	denied := gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) || gophercloud.ResponseCodeIs(err, http.StatusForbidden)
	switch {
	case at == keystone && denied:
		return &Trouble{novav1.KeystoneAccessDeniedReason, fmt.Sprintf(
			"keystone at %s refuses user %s in project %s: correct the password in the Secret, or the user or its roles in keystone", plain(a.access.AuthURL), a.access.User, project)}
	case at == keystone:
		return &Trouble{novav1.KeystoneUnreachableReason, fmt.Sprintf("keystone at %s cannot be asked: it %s", plain(a.access.AuthURL), cause(err))}
	case denied:
		return &Trouble{novav1.APIAccessDeniedReason, fmt.Sprintf(
			"nova's API at %s does not let user %s list its services: give the user the role admin in project %s", a.endpoint(), a.access.User, project)}
	}
	return &Trouble{novav1.APIUnreachableReason, fmt.Sprintf("nova's API at %s cannot be asked: it %s", a.endpoint(), cause(err))}
}

// noEndpoint is the trouble of a service that the catalogue does not have.
func (a *api) noEndpoint(at peer) *Trouble {
	reason, service := novav1.EndpointMissingReason, "compute"
	if at == placement {
		reason, service = novav1.PlacementMissingReason, "placement"
	}
	return &Trouble{reason, fmt.Sprintf("The catalogue of keystone at %s has no internal endpoint of type %s in region %s: create it, or correct keystone.region",
		plain(a.access.AuthURL), service, a.access.Region)}
}

// noDatabase is the trouble of hosts in a cell whose database the API does not reach.
func (a *api) noDatabase(hosts map[string]bool) *Trouble {
	return &Trouble{novav1.CellUnreachableReason, fmt.Sprintf(
		"nova's API at %s does not reach the database of the cell of host %s: start the database, or correct its address and password in the NovaCell", a.endpoint(), slices.Min(slices.Collect(maps.Keys(hosts))))}
}

// endpoint of nova, as the catalogue has it.
func (a *api) endpoint() string {
	if a.compute == nil {
		return "the address in the catalogue"
	}
	return plain(a.compute.Endpoint)
}

// plain is a URL without what could be secret in it.
func plain(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "an address that is not a URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// cause completes "it ...".
func cause(err error) string {
	var (
		answer gophercloud.ErrUnexpectedResponseCode
		name   *net.DNSError
		verify *tls.CertificateVerificationError
		syntax *json.SyntaxError
		large  *http.MaxBytesError
		slow   net.Error
	)
	switch {
	case errors.As(err, &answer):
		return fmt.Sprintf("answers %d", answer.Actual)
	case errors.As(err, &name):
		return fmt.Sprintf("has a name that cannot be resolved (%s)", name.Name)
	case errors.As(err, &verify):
		return "has a certificate that cannot be verified: add key ca.crt with the certificate of its authority to the Secret of the Nova"
	case errors.Is(err, errAddress):
		return "has an address that the operators do not connect to"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections"
	case errors.As(err, &large):
		return "answers with more than 8 MiB"
	case errors.As(err, &syntax):
		return "does not answer with JSON"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return "does not answer in time"
	}
	return "does not answer as expected"
}
