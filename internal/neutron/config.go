// Package neutron reads the OVN configuration that ovn-controller and the OVN metadata
// agent on hosts follow.
package neutron

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

//go:embed metadata.conf
var metadataConf string

var metadataTemplate = template.Must(template.New("metadata.conf").Funcs(template.FuncMap{"oslo": oslo.Quote}).Parse(metadataConf))

// Config is a valid OVN configuration.
type Config struct {
	// Southbound remotes, separated by commas.
	Southbound string
	// Files with the certificate, by their names on hosts; none without TLS.
	Files map[string][]byte

	secret secret
	tls    bool
}

// secret is a Secret of a person. What is wrong with it is a *phase.Halt of
// OVNConfigReady, which names the key and never shows a value.
type secret struct {
	name string
	data map[string][]byte
}

// value returns the value of a key without a line break at its end, or else the fallback.
func (s secret) value(key, fallback string) (string, error) {
	value := cmp.Or(strings.TrimRight(string(s.data[key]), "\r\n"), fallback)
	if value == "" {
		return "", inputs.Halt(neutronv1.OVNConfigReadyCondition, &inputs.MissingError{Kind: "Secret", Name: s.name, Key: key})
	}
	return value, nil
}

func (s secret) invalid(key, problem string) error {
	return phase.Stalled(neutronv1.OVNConfigReadyCondition, neutronv1.InvalidOVNConfigReason, "Secret %q, key %q: %s", s.name, key, problem)
}

// parse reads what every service needs.
func parse(s secret) (*Config, error) {
	value, err := s.value(neutronv1.SouthboundKey, "")
	if err != nil {
		return nil, err
	}
	c := &Config{secret: s}
	remotes := strings.Split(value, ",")
	for i, remote := range remotes {
		protocol, address, _ := strings.Cut(strings.TrimSpace(remote), ":")
		at, err := netip.ParseAddrPort(address)
		if err != nil || at.Port() == 0 || at.Addr().Zone() != "" || protocol != "tcp" && protocol != "ssl" {
			return nil, s.invalid(neutronv1.SouthboundKey, fmt.Sprintf("remote %d of %d must be tcp:<IP>:<port> or ssl:<IP>:<port>, for example tcp:192.0.2.1:6642: correct it", i+1, len(remotes)))
		}
		c.tls = c.tls || protocol == "ssl"
		remotes[i] = protocol + ":" + at.String()
	}
	c.Southbound = strings.Join(remotes, ",")
	return c, nil
}

// certify adds the files of the certificate.
func (c *Config) certify(s secret) error {
	c.Files = map[string][]byte{}
	for _, f := range []struct{ key, file string }{{"tls.crt", "ovn-cert.pem"}, {"tls.key", "ovn-key.pem"}, {"ca.crt", "ovn-ca.pem"}} {
		if _, err := s.value(f.key, ""); err != nil {
			return err
		}
		c.Files[f.file] = s.data[f.key]
	}
	if _, err := tls.X509KeyPair(s.data["tls.crt"], s.data["tls.key"]); err != nil {
		return s.invalid("tls.crt", "it must be a certificate in PEM that matches the private key tls.key: replace both")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(s.data["ca.crt"]) {
		return s.invalid("ca.crt", "it must have a certificate in PEM: replace it")
	}
	return nil
}

// Metadata returns the configuration of the metadata agent, as oslo.config reads it.
func (c *Config) Metadata() (string, error) {
	values := map[string]any{"southbound": c.Southbound, "tls": c.tls}
	for _, v := range []struct {
		key, fallback string
		valid         func(string) bool
		want          string
	}{
		{neutronv1.NovaMetadataHostKey, "", isHost, "an IP address or a DNS name"},
		{neutronv1.NovaMetadataPortKey, "8775", isPort, "a port from 1 to 65535"},
		{neutronv1.NovaMetadataProtocolKey, "http", isProtocol, "http or https"},
		{neutronv1.MetadataSharedSecretKey, "", isWritable, "one line without control characters, the same as in nova"},
	} {
		value, err := c.secret.value(v.key, v.fallback)
		if err != nil {
			return "", err
		}
		if !v.valid(value) {
			return "", c.secret.invalid(v.key, "it must be "+v.want+": correct it")
		}
		values[v.key] = value
	}
	var out strings.Builder
	err := metadataTemplate.Execute(&out, values)
	return out.String(), err
}

func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || len(validation.IsDNS1123Subdomain(text)) == 0
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

func isProtocol(text string) bool { return text == "http" || text == "https" }

func isWritable(text string) bool {
	_, err := oslo.Quote(text)
	return err == nil
}
