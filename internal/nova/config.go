// Package nova has what the services of nova in pods have in common: their
// configuration, their pods, and the Jobs that prepare their databases.
package nova

import (
	"embed"
	"fmt"
	"strings"
	"text/template"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

//go:embed templates
var files embed.FS

// The templates of the configuration of computes and of the services in pods. They
// share how nova authenticates.
const (
	computeTemplate = "compute.conf"
	serviceTemplate = "service.conf"
	// programTemplate has what endpoints have in addition that are their own servers.
	programTemplate = "program.ini"
)

var templates = template.Must(template.New("").Funcs(template.FuncMap{"oslo": oslo.Quote}).ParseFS(files, "templates/*"))

// Config is what the configuration of computes and of services is made from.
type Config struct {
	// Owner is the Nova or NovaCell that the configuration is for, as Kind name.
	Owner        string
	TransportURL string
	// QuorumQueues reports whether the queues on the message bus are quorum queues.
	QuorumQueues      bool
	ServicePassword   string
	KeystoneAuthURL   string
	ServiceUser       string
	Keystone          novav1.KeystoneScope
	NoVNCProxyBaseURL string
	// Connection and APIConnection to the databases; none for computes.
	Connection, APIConnection string
	// MetadataSecret that the metadata service shares with neutron.
	MetadataSecret string
	// TLSDir has the certificate and the key of an endpoint; empty without TLS.
	TLSDir string
}

// Compute returns the configuration of the computes of a cell.
func (c Config) Compute() (string, error) {
	c.Connection, c.APIConnection, c.MetadataSecret = "", "", "" // it leaves the cluster
	return render(computeTemplate, c)
}

// Service returns the configuration of a service in pods.
func (c Config) Service() (string, error) { return render(serviceTemplate, c) }

// Program returns the options of a program that is its own server. They are no part of
// Service: a release that has the program as a WSGI application does not know them.
func (c Config) Program(program string) (string, error) {
	return render(programTemplate, struct {
		Config
		Program string
	}{c, program})
}

// render returns an error that names the value that cannot be written without
// quoting it.
func render(name string, data any) (string, error) {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.String(), nil
}
