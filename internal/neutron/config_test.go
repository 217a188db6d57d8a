package neutron

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// of returns a Secret named ovn with the keys, one after the other with its value.
func of(pairs ...string) secret {
	s := secret{"ovn", map[string][]byte{}}
	for pair := range slices.Chunk(pairs, 2) {
		s.data[pair[0]] = []byte(pair[1])
	}
	return s
}

// refused expects that something is wrong with a Secret, in a condition that has all the
// parts and no value of the Secret.
func refused(t *testing.T, err error, reason condition.Reason, s secret, parts ...string) {
	t.Helper()
	halt := (*phase.Halt)(nil)
	if !errors.As(err, &halt) {
		t.Fatalf("the error is %v; want a condition", err)
	}
	if halt.Type != neutronv1.OVNConfigReadyCondition || halt.Reason != reason {
		t.Errorf("it is %s of %s; want %s of OVNConfigReady", halt.Reason, halt.Type, reason)
	}
	for _, part := range parts {
		if !strings.Contains(halt.Message, part) {
			t.Errorf("the message lacks %q: %s", part, halt.Message)
		}
	}
	for key, value := range s.data {
		if len(value) > 1 && strings.Contains(halt.Message, string(value)) {
			t.Errorf("the message has the value of %s: %s", key, halt.Message)
		}
	}
}

func TestSouthbound(t *testing.T) {
	for name, c := range map[string]struct {
		value, want string
		tls         bool
	}{
		"one remote":                            {"tcp:192.0.2.1:6642", "tcp:192.0.2.1:6642", false},
		"three of a cluster":                    {"tcp:192.0.2.1:6642,tcp:192.0.2.2:6642,tcp:192.0.2.3:6642", "tcp:192.0.2.1:6642,tcp:192.0.2.2:6642,tcp:192.0.2.3:6642", false},
		"spaces and a line break are no matter": {"tcp:192.0.2.1:6642, tcp:192.0.2.2:6642\n", "tcp:192.0.2.1:6642,tcp:192.0.2.2:6642", false},
		"IPv6":                                  {"ssl:[2001:db8::1]:6642", "ssl:[2001:db8::1]:6642", true},
		"one of two with TLS needs it":          {"tcp:192.0.2.1:6642,ssl:192.0.2.2:6642", "tcp:192.0.2.1:6642,ssl:192.0.2.2:6642", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(of("southbound", c.value))
			if err != nil {
				t.Fatal(err)
			}
			if got.Southbound != c.want || got.tls != c.tls {
				t.Errorf("it is %q, with TLS %v; want %q, %v", got.Southbound, got.tls, c.want, c.tls)
			}
		})
	}
}

func TestSouthboundThatIsWrong(t *testing.T) {
	for name, value := range map[string]string{
		"another protocol":        "unix:/run/ovn/ovnsb_db.sock",
		"no protocol":             "198.51.100.1:6642",
		"no port":                 "tcp:198.51.100.1",
		"port 0":                  "tcp:192.0.2.1:0",
		"a port that is none":     "tcp:192.0.2.1:66420",
		"a name":                  "tcp:ovsdb.openstack.svc:6642",
		"IPv6 without brackets":   "tcp:2001:db8::1:6642",
		"an interface":            "tcp:[fe80::1%eth0]:6642",
		"a command in it":         "tcp:192.0.2.1:6642;reboot",
		"nothing after the comma": "tcp:192.0.2.1:6642,",
	} {
		t.Run(name, func(t *testing.T) {
			s := of("southbound", value)
			_, err := parse(s)
			refused(t, err, neutronv1.InvalidOVNConfigReason, s, `Secret "ovn", key "southbound": remote `, "tcp:192.0.2.1:6642: correct it")
		})
	}
	_, err := parse(of("southbound", "tcp:192.0.2.1:6642,tcp:bad:1,x"))
	refused(t, err, neutronv1.InvalidOVNConfigReason, secret{}, "remote 2 of 3")
	_, err = parse(of("southbound", "\n"))
	refused(t, err, common.SecretKeyMissingReason, secret{}, `Secret "ovn" has no key "southbound", or it is empty: add it`)
}

// pair returns a key and a certificate of it, in PEM.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return text("CERTIFICATE", signed), text("PRIVATE KEY", der)
}

func TestCertificate(t *testing.T) {
	certificate, key := pair(t)
	_, otherKey := pair(t)
	for name, c := range map[string]struct {
		secret secret
		reason condition.Reason // empty if it is used
		parts  []string
	}{
		"all of it":                 {of("tls.crt", certificate, "tls.key", key, "ca.crt", certificate), "", nil},
		"no authority":              {of("tls.crt", certificate, "tls.key", key), common.SecretKeyMissingReason, []string{`has no key "ca.crt"`}},
		"no key":                    {of("tls.crt", certificate, "ca.crt", certificate), common.SecretKeyMissingReason, []string{`has no key "tls.key"`}},
		"nothing":                   {of(), common.SecretKeyMissingReason, []string{`has no key "tls.crt"`}},
		"the key of another one":    {of("tls.crt", certificate, "tls.key", otherKey, "ca.crt", certificate), neutronv1.InvalidOVNConfigReason, []string{`key "tls.crt"`, "matches the private key tls.key: replace both"}},
		"a key that is none":        {of("tls.crt", certificate, "tls.key", "hunter2", "ca.crt", certificate), neutronv1.InvalidOVNConfigReason, []string{`key "tls.crt"`}},
		"an authority that is none": {of("tls.crt", certificate, "tls.key", key, "ca.crt", "hunter2"), neutronv1.InvalidOVNConfigReason, []string{`key "ca.crt"`, "replace it"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := &Config{}
			err := config.certify(c.secret)
			if c.reason != "" {
				refused(t, err, c.reason, c.secret, append(c.parts, `Secret "ovn"`)...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]byte{"ovn-cert.pem": []byte(certificate), "ovn-key.pem": []byte(key), "ovn-ca.pem": []byte(certificate)}
			if !maps.EqualFunc(want, config.Files, bytes.Equal) {
				t.Errorf("the files are %q", config.Files)
			}
		})
	}
}

// complete is an OVN configuration with the pairs in addition.
func complete(t *testing.T, pairs ...string) *Config {
	t.Helper()
	c, err := parse(of(append([]string{"southbound", "tcp:192.0.2.1:6642", "metadata-shared-secret", "hunter2", "nova-metadata-host", "192.0.2.9"}, pairs...)...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheMetadataAgentReadsWhatItIsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		pairs []string
		want  map[string]string // by [section] key
	}{
		"the least": {nil, map[string]string{
			"[DEFAULT] state_path": "/var/lib/neutron", "[DEFAULT] nova_metadata_host": "192.0.2.9", "[DEFAULT] nova_metadata_port": "8775",
			"[DEFAULT] nova_metadata_protocol": "http", "[DEFAULT] metadata_proxy_shared_secret": "hunter2", "[DEFAULT] metadata_workers": "1",
			"[ovn] ovn_sb_connection": "tcp:192.0.2.1:6642", "[ovs] ovsdb_connection": "unix:/run/openvswitch/db.sock",
		}},
		"all of it": {
			[]string{"southbound", "ssl:[2001:db8::1]:6642,ssl:192.0.2.2:6642", "nova-metadata-host", "nova.example.org\n", "nova-metadata-port", "443", "nova-metadata-protocol", "https"},
			map[string]string{
				"[DEFAULT] state_path": "/var/lib/neutron", "[DEFAULT] nova_metadata_host": "nova.example.org", "[DEFAULT] nova_metadata_port": "443",
				"[DEFAULT] nova_metadata_protocol": "https", "[DEFAULT] metadata_proxy_shared_secret": "hunter2", "[DEFAULT] metadata_workers": "1",
				"[ovn] ovn_sb_connection": "ssl:[2001:db8::1]:6642,ssl:192.0.2.2:6642", "[ovn] ovn_sb_private_key": "/etc/pki/ovn/ovn-key.pem",
				"[ovn] ovn_sb_certificate": "/etc/pki/ovn/ovn-cert.pem", "[ovn] ovn_sb_ca_cert": "/etc/pki/ovn/ovn-ca.pem",
				"[ovs] ovsdb_connection": "unix:/run/openvswitch/db.sock",
			},
		},
		"a secret with what oslo.config replaces or cuts": {[]string{"metadata-shared-secret", " $a'b\" "}, map[string]string{"[DEFAULT] metadata_proxy_shared_secret": " $$a'b\" "}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := complete(t, c.pairs...).Metadata()
			if err != nil {
				t.Fatal(err)
			}
			config, err := oslo.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, s := range config.Sections() {
				for _, o := range s.Options {
					if option := "[" + s.Name + "] " + o.Key; len(c.want) > 1 || c.want[option] != "" {
						got[option] = strings.Join(config.Get(s.Name, o.Key), "|")
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the options differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatTheMetadataAgentCannotUse(t *testing.T) {
	for name, c := range map[string]struct {
		key, value string
		reason     condition.Reason
		want       string
	}{
		"no shared secret":              {"metadata-shared-secret", "", common.SecretKeyMissingReason, "add it"},
		"a shared secret of two lines":  {"metadata-shared-secret", "hunter2\ndebug = True", neutronv1.InvalidOVNConfigReason, "one line without control characters"},
		"no host":                       {"nova-metadata-host", "", common.SecretKeyMissingReason, "add it"},
		"a host with its port":          {"nova-metadata-host", "192.0.2.9:8775", neutronv1.InvalidOVNConfigReason, "an IP address or a DNS name"},
		"a host that is a URL":          {"nova-metadata-host", "http://nova", neutronv1.InvalidOVNConfigReason, "an IP address or a DNS name"},
		"a host with another option":    {"nova-metadata-host", "nova\ndebug = True", neutronv1.InvalidOVNConfigReason, "an IP address or a DNS name"},
		"a port that is a name":         {"nova-metadata-port", "https", neutronv1.InvalidOVNConfigReason, "a port from 1 to 65535"},
		"a port that is too large":      {"nova-metadata-port", "65536", neutronv1.InvalidOVNConfigReason, "a port from 1 to 65535"},
		"port 0":                        {"nova-metadata-port", "0", neutronv1.InvalidOVNConfigReason, "a port from 1 to 65535"},
		"a protocol that is none of it": {"nova-metadata-protocol", "HTTP", neutronv1.InvalidOVNConfigReason, "http or https"},
	} {
		t.Run(name, func(t *testing.T) {
			config := complete(t, c.key, c.value)
			_, err := config.Metadata()
			hidden := secret{"ovn", maps.Clone(config.secret.data)}
			if c.value == "https" || c.value == "0" { // words of the message itself
				hidden = secret{}
			}
			refused(t, err, c.reason, hidden, `Secret "ovn"`, `key "`+c.key+`"`, c.want)
		})
	}
}
