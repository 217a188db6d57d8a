// Package nova has what the services of nova in pods have in common: their
// configuration, their pods, and the Jobs that prepare their databases.
package nova

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"text/template"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
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

var templates = template.Must(template.New("").Funcs(template.FuncMap{"oslo": oslo.Quote, "join": strings.Join}).ParseFS(files, "templates/*"))

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
	// MemcachedServers of the services in pods.
	MemcachedServers []string
	// NotificationsURL is the message bus for notifications, empty for none.
	NotificationsURL string
	// notificationsQuorum is what its Secret says of its queues, nil if it says nothing.
	notificationsQuorum *bool
	// Authorities that services in pods trust, those of the image if there are none.
	Authorities []byte
	// DatabaseTLS reports whether they verify their databases by Authorities.
	DatabaseTLS bool
	// Connection and APIConnection to the databases; none for computes.
	Connection, APIConnection string
	// MetadataSecret that the metadata service shares with neutron.
	MetadataSecret string
	// TLSDir has the certificate and the key of an endpoint; empty without TLS.
	TLSDir string
	// ConsoleDir has the certificate and the key by which hosts know a console proxy; empty
	// where consoles cross the network in clear.
	ConsoleDir string
}

// ReadShared reads what Secrets have of the shared services. Errors are those of
// inputs.Reader, or a *phase.Halt of the condition that names a value to be corrected.
func (c *Config) ReadShared(ctx context.Context, r *inputs.Reader, t condition.Type, namespace string, shared novav1.SharedServices) error {
	c.MemcachedServers, c.DatabaseTLS = shared.MemcachedServers, shared.DatabaseTLS
	if name := shared.NotificationsBusSecretName; name != "" {
		data, err := r.Secret(ctx, namespace, name) // once: URL and queues are of one version
		if err != nil {
			return err
		}
		url, err := inputs.Value(name, data, "transport_url")
		if err != nil {
			return err
		}
		c.NotificationsURL = strings.TrimRight(string(url), "\r\n")
		if c.notificationsQuorum, err = ParseQueues(string(data[QuorumQueuesKey])); err != nil {
			return phase.Stalled(t, novav1.InvalidConfigReason, "Secret %s: %v", name, err)
		}
	}
	if name := shared.CABundleSecretName; name != "" {
		var err error
		c.Authorities, err = r.SecretKey(ctx, namespace, name, podified.AuthoritiesFile)
		return err
	}
	return nil
}

// UseQueues takes what a cell has decided of the queues on its message bus. Notifications have those
// of it, unless their Secret says otherwise of another message bus.
func (c *Config) UseQueues(queues *novav1.MessageBusStatus) {
	c.QuorumQueues = queues.QuorumQueues
	if quorum := c.notificationsQuorum; quorum != nil && *quorum != c.QuorumQueues && !IsChosen(queues, c.NotificationsURL) {
		c.NotificationsURL = WithQueues(c.NotificationsURL, *quorum)
	}
}

// Compute returns the configuration of the computes of a cell.
func (c Config) Compute() (string, error) {
	c.Connection, c.APIConnection, c.MetadataSecret = "", "", "" // it leaves the cluster
	return render(computeTemplate, c)
}

// ComputeInputs is a hash of what the configuration of computes is made from, not of how a
// version of the operators writes it. A field that is not set does not count, so that a
// version with more fields has the same.
func (c Config) ComputeInputs() string {
	c.Owner, c.Connection, c.APIConnection, c.MetadataSecret, c.TLSDir, c.ConsoleDir = "", "", "", "", "", ""
	c.MemcachedServers, c.Authorities, c.DatabaseTLS = nil, nil, false
	fields := map[string]any{}
	text, _ := json.Marshal(c) // it has strings and bools
	_ = json.Unmarshal(text, &fields)
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == "" || v == false || v == nil })
	text, _ = json.Marshal(fields)
	return inputs.Digest(map[string][]byte{"inputs": text})[:32]
}

// HasMade reports whether the text is a configuration of computes with the same values as
// this, in whatever words. It is for what versions wrote that did not note ComputeInputs.
func (c Config) HasMade(text string) bool {
	config, err := oslo.Parse(text)
	if err != nil {
		return false
	}
	quorum := ""
	if c.QuorumQueues {
		quorum = "true"
	}
	const auth = "keystone_authtoken"
	for _, option := range [][3]string{
		{"DEFAULT", "transport_url", c.TransportURL}, {"oslo_messaging_rabbit", "rabbit_quorum_queue", quorum},
		{"vnc", "novncproxy_base_url", c.NoVNCProxyBaseURL}, {auth, "auth_url", c.KeystoneAuthURL},
		{auth, "username", c.ServiceUser}, {auth, "password", c.ServicePassword}, {auth, "cafile", c.Keystone.CAFile},
		{auth, "user_domain_name", c.Keystone.UserDomainName}, {auth, "project_domain_name", c.Keystone.ProjectDomainName}, {auth, "region_name", c.Keystone.Region},
	} {
		quoted, err := oslo.Quote(option[2])
		if err != nil {
			return false
		}
		if want, err := oslo.Parse("[DEFAULT]\nx = " + quoted); err != nil || strings.Join(config.Get(option[0], option[1]), "\n") != strings.Join(want.Get("DEFAULT", "x"), "\n") {
			return false
		}
	}
	return true
}

// authorities is where services in pods have those that they trust.
const authorities = configDir + "/" + podified.AuthoritiesFile

// verified returns a connection with the authorities by which its database is verified, if it is.
func (c Config) verified(connection string) string {
	if !c.DatabaseTLS || connection == "" {
		return connection
	}
	return connection + "&ssl_ca=" + authorities
}

// Mapping is what the mapping of the cell has: how services reach its message bus and its database.
func (c Config) Mapping() []byte { return []byte(c.TransportURL + "\n" + c.verified(c.Connection)) }

// Service returns the configuration of a service in pods.
func (c Config) Service() (string, error) {
	if len(c.Authorities) > 0 {
		c.Keystone.CAFile = authorities // a library may have authorities of its own
	}
	c.Connection, c.APIConnection = c.verified(c.Connection), c.verified(c.APIConnection)
	return render(serviceTemplate, c)
}

// files are those of a service in pods, with what people give.
func (c Config) files(snippets podified.Snippets) (map[string][]byte, error) {
	text, err := c.Service()
	files := snippets.Files("nova", text)
	if len(c.Authorities) > 0 {
		files[podified.AuthoritiesFile] = c.Authorities
	}
	return files, err
}

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
