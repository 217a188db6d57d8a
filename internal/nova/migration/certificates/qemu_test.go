package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/cert"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func filesOfLibvirt(t *testing.T, a *Authority, c Compute, at time.Time) map[string][]byte {
	t.Helper()
	all, err := a.Libvirt(c, at)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// filesOfQEMU have the names of those of libvirt.
func filesOfQEMU(t *testing.T, a *Authority, c Compute, use novav1.QEMUAuthority, at time.Time) map[string][]byte {
	t.Helper()
	all, err := a.QEMU(c, use, at)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{CertificateFile: all[QEMUCertificateFile], KeyFile: all[QEMUKeyFile], TrustedFile: all[QEMUTrustedFile]}
}

// distinguished is the name in a certificate as libvirt has it: in its own order, not that of RFC 4514.
func distinguished(c *x509.Certificate) string {
	var parts []string
	for _, name := range c.Subject.Names {
		kind := map[string]string{"2.5.4.3": "CN", "2.5.4.10": "O", "2.5.4.11": "OU"}[name.Type.String()]
		parts = append(parts, fmt.Sprintf("%s=%s", kind, name.Value))
	}
	return strings.Join(parts, ",")
}

// connectToLibvirt reports how something connects to libvirt on a host, which lets in clients with a
// name that the pattern matches, or all if it is empty.
func connectToLibvirt(t *testing.T, client, server map[string][]byte, pattern string, at time.Time) error {
	t.Helper()
	near, far := ofCompute(t, client, at), ofCompute(t, server, at)
	near.RootCAs, near.ServerName = far.RootCAs, peer.Name // who breaks out does not care whom it reaches
	far.VerifyConnection = func(state tls.ConnectionState) error {
		name := distinguished(state.PeerCertificates[0])
		if ok, err := path.Match(pattern, strings.ReplaceAll(name, "/", "_")); pattern != "" && (err != nil || !ok) {
			return errors.New(name + " is not allowed")
		}
		return nil
	}
	return handshake(t, near, far)
}

func TestLibvirtLetsInLibvirtOfItsCellOnly(t *testing.T) {
	data := newSecret(t, now)
	a := parsed(t, data, now)
	elsewhere := host
	elsewhere.Cell = "openstack/cell2"
	longer := host
	longer.Cell = "openstack/cell1x"
	for name, c := range map[string]struct {
		client  map[string][]byte
		pattern bool
		want    bool
	}{
		"libvirt of another compute":                              {filesOfLibvirt(t, a, host, now), true, true},
		"libvirt of another compute, before all have such a name": {filesOfLibvirt(t, a, host, now), false, true},
		"a shared certificate, before all have others":            {files(t, a, host, now), false, true},
		"a shared certificate that someone has kept":              {files(t, a, host, now), true, false},
		"QEMU":                            {filesOfQEMU(t, a, host, novav1.QEMUAuthorityOnly, now), true, false},
		"QEMU, where names do not matter": {filesOfQEMU(t, a, host, novav1.QEMUAuthorityOnly, now), false, false},
		"QEMU, while hosts trust both authorities":                  {filesOfQEMU(t, a, host, novav1.QEMUAuthoritySigning, now), false, false},
		"QEMU, before its authority signs":                          {filesOfQEMU(t, a, host, novav1.QEMUAuthorityTrusted, now), true, false},
		"libvirt of another cell with the same authority":           {filesOfLibvirt(t, a, elsewhere, now), true, false},
		"libvirt of another cell, with a name that begins the same": {filesOfLibvirt(t, a, longer, now), true, false},
		"libvirt of a cell with another authority":                  {filesOfLibvirt(t, parsed(t, newSecret(t, now), now), host, now), true, false},
	} {
		pattern := ""
		if c.pattern {
			pattern = strings.ReplaceAll(LibvirtNames(peer.Cell), "/", "_")
		}
		if err := connectToLibvirt(t, c.client, filesOfLibvirt(t, a, peer, now), pattern, now); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Hosts come to the uses of the authority at different times: those of two that follow one another meet.
func TestQEMUAcceptsWhatOtherHostsHave(t *testing.T) {
	a := parsed(t, newSecret(t, now), now)
	steps := []struct {
		name string
		of   func(Compute) map[string][]byte
	}{
		{"a shared certificate", func(c Compute) map[string][]byte { return files(t, a, c, now) }},
		{"Trusted", func(c Compute) map[string][]byte { return filesOfQEMU(t, a, c, novav1.QEMUAuthorityTrusted, now) }},
		{"Signing", func(c Compute) map[string][]byte { return filesOfQEMU(t, a, c, novav1.QEMUAuthoritySigning, now) }},
		{"Only", func(c Compute) map[string][]byte { return filesOfQEMU(t, a, c, novav1.QEMUAuthorityOnly, now) }},
	}
	for i, from := range steps {
		for j, to := range steps {
			err := connect(t, from.of(host), to.of(peer), peer.Name, now)
			if isNext := j-i <= 1 && i-j <= 1; isNext && err != nil {
				t.Errorf("from %s to %s: %v", from.name, to.name, err)
			}
		}
	}
	if err := connect(t, steps[0].of(host), steps[3].of(peer), peer.Name, now); err == nil {
		t.Error("a shared certificate is accepted in the end")
	}
	if err := connect(t, filesOfLibvirt(t, a, host, now), steps[3].of(peer), peer.Name, now); err == nil {
		t.Error("QEMU accepts libvirt in the end")
	}
}

func TestKeysOfLibvirtAndQEMUDiffer(t *testing.T) {
	a := parsed(t, newSecret(t, now), now)
	seen := map[string]string{}
	for name, all := range map[string]map[string][]byte{
		"shared": files(t, a, host, now), "libvirt": filesOfLibvirt(t, a, host, now), "QEMU, Trusted": filesOfQEMU(t, a, host, novav1.QEMUAuthorityTrusted, now),
		"QEMU, Signing": filesOfQEMU(t, a, host, novav1.QEMUAuthoritySigning, now), "another host": filesOfQEMU(t, a, peer, novav1.QEMUAuthoritySigning, now),
	} {
		key := string(all[KeyFile])
		if other := seen[key]; other != "" {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[key] = name
		leaf, _ := cert.ParseCertsPEM(all[CertificateFile])
		if len(leaf) != 1 || leaf[0].IsCA || leaf[0].KeyUsage&x509.KeyUsageCertSign != 0 {
			t.Errorf("%s signs", name)
		}
	}
	signing, only := filesOfQEMU(t, a, host, novav1.QEMUAuthoritySigning, now), filesOfQEMU(t, a, host, novav1.QEMUAuthorityOnly, now)
	if diff := cmp.Diff(string(signing[CertificateFile]), string(only[CertificateFile])); diff != "" {
		t.Errorf("the certificate of QEMU changes with what it trusts:\n%s", diff)
	}
}

// QEMU starts no migration with a certificate that those do not verify which it trusts.
func TestQEMUTrustsItsOwnAuthority(t *testing.T) {
	a := parsed(t, newSecret(t, now), now)
	for _, use := range []novav1.QEMUAuthority{novav1.QEMUAuthorityTrusted, novav1.QEMUAuthoritySigning, novav1.QEMUAuthorityOnly} {
		all := filesOfQEMU(t, a, host, use, now)
		leaf, _ := cert.ParseCertsPEM(all[CertificateFile])
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(all[TrustedFile])
		for _, purpose := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if _, err := leaf[0].Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: host.Address.String(), KeyUsages: []x509.ExtKeyUsage{purpose}}); err != nil {
				t.Errorf("%s: %v", use, err)
			}
		}
	}
}

func TestCertificatesOfQEMUStay(t *testing.T) {
	data := newSecret(t, now)
	first, next := filesOfQEMU(t, parsed(t, data, now), host, novav1.QEMUAuthorityOnly, now), host.Next(now)
	if diff := cmp.Diff(first, filesOfQEMU(t, parsed(t, data, now), host, novav1.QEMUAuthorityOnly, next.Add(-time.Second))); diff != "" {
		t.Errorf("they differ when they are made again:\n%s", diff)
	}
	if second := filesOfQEMU(t, parsed(t, data, now), host, novav1.QEMUAuthorityOnly, next); bytes.Equal(first[KeyFile], second[KeyFile]) {
		t.Error("the key is not replaced")
	}
}

func TestQEMUOfHostsConnectsWhileTheAuthorityIsRenewed(t *testing.T) {
	data := newSecret(t, now)
	late := parsed(t, data, now).RenewalAt()
	renewed, err := Renew(maps.Clone(data), late)
	if err != nil {
		t.Fatal(err)
	}
	before, after := filesOfQEMU(t, parsed(t, data, late), host, novav1.QEMUAuthorityOnly, late), filesOfQEMU(t, parsed(t, renewed, late), peer, novav1.QEMUAuthorityOnly, late)
	if err := connect(t, before, after, peer.Name, late); err != nil {
		t.Errorf("from an old one to a new one: %v", err)
	}
	if err := connect(t, after, before, host.Name, late); err != nil {
		t.Errorf("from a new one to an old one: %v", err)
	}
}
