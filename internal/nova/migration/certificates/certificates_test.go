package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/cert"
)

var (
	now  = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	host = Compute{ID: "uid-0", Name: "edpm-compute-0", Address: netip.MustParseAddr("192.0.2.10"), Cell: "openstack/cell1"}
	peer = Compute{ID: "uid-1", Name: "edpm-compute-1", Address: netip.MustParseAddr("2001:db8::11"), Cell: "openstack/cell1"}
)

func newSecret(t *testing.T, at time.Time) map[string][]byte {
	t.Helper()
	data, err := NewAuthority("cell1", at)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parsed(t *testing.T, data map[string][]byte, at time.Time) *Authority {
	t.Helper()
	a, err := Parse(data, at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func files(t *testing.T, a *Authority, c Compute, at time.Time) map[string][]byte {
	t.Helper()
	all, err := a.Shared(c, at)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// connect reports how a compute connects to another one, as libvirt and QEMU do.
func connect(t *testing.T, client, server map[string][]byte, address string, at time.Time) error {
	t.Helper()
	near, far := ofCompute(t, client, at), ofCompute(t, server, at)
	near.ServerName = address
	return handshake(t, near, far)
}

func ofCompute(t *testing.T, files map[string][]byte, at time.Time) *tls.Config {
	t.Helper()
	return config(t, files, [...]string{CertificateFile, KeyFile, TrustedFile}, at)
}

// config of one end: the names are those of its certificate, its key, and what it trusts.
func config(t *testing.T, files map[string][]byte, names [3]string, at time.Time) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(files[names[0]], files[names[1]])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(files[names[2]])
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		Time: func() time.Time { return at },
	}
}

// handshake returns why one of two ends refuses the other one.
func handshake(t *testing.T, client, server *tls.Config) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		if far, err := listener.Accept(); err == nil {
			if far.(*tls.Conn).Handshake() == nil {
				_, _ = far.Write([]byte("x"))
			}
			_ = far.Close()
		}
	}()
	c, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_, err = c.Read(make([]byte, 1)) // what the server thinks of the client comes later
	return err
}

func TestComputesOfACellConnect(t *testing.T) {
	a := parsed(t, newSecret(t, now), now)
	for name, c := range map[string]string{"by address": "2001:db8::11", "by name": "edpm-compute-1"} {
		t.Run(name, func(t *testing.T) {
			if err := connect(t, files(t, a, host, now), files(t, a, peer, now), c, now); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStrangersAreRefused(t *testing.T) {
	a, other := parsed(t, newSecret(t, now), now), parsed(t, newSecret(t, now), now)
	mixed := maps.Clone(files(t, other, host, now))
	mixed[TrustedFile] = a.Trusted()
	if err := connect(t, mixed, files(t, a, peer, now), "edpm-compute-1", now); err == nil {
		t.Error("a certificate of another authority is accepted")
	}
	if err := connect(t, files(t, a, host, now), files(t, a, peer, now), "edpm-compute-2", now); err == nil {
		t.Error("a compute is accepted for another one")
	}
}

func TestTheCertificateOfAComputeStays(t *testing.T) {
	data := newSecret(t, now)
	first := files(t, parsed(t, data, now), host, now)
	if diff := cmp.Diff(first, files(t, parsed(t, data, now), host, now)); diff != "" {
		t.Errorf("it differs when it is made again:\n%s", diff)
	}
	next := host.Next(now)
	if !next.After(now) || next.Sub(now) > period {
		t.Fatalf("it is replaced at %s", next)
	}
	if diff := cmp.Diff(first, files(t, parsed(t, data, now), host, next.Add(-time.Second))); diff != "" {
		t.Errorf("it is replaced too early:\n%s", diff)
	}
	second := files(t, parsed(t, data, now), host, next)
	for _, name := range []string{CertificateFile, KeyFile} {
		if bytes.Equal(first[name], second[name]) {
			t.Errorf("%s is not replaced", name)
		}
	}
	old, _ := cert.ParseCertsPEM(first[CertificateFile])
	if left := old[0].NotAfter.Sub(next); left < period/3 {
		t.Errorf("the old one ends %s after it is replaced", left)
	}
	for name, c := range map[string]Compute{
		"another compute": peer, "another address": {ID: host.ID, Name: host.Name, Address: netip.MustParseAddr("192.0.2.11")},
		"a compute that was deleted and created again": {ID: "uid-2", Name: host.Name, Address: host.Address},
	} {
		if other := files(t, parsed(t, data, now), c, now); bytes.Equal(first[KeyFile], other[KeyFile]) {
			t.Errorf("%s has the same key", name)
		}
	}
}

func TestComputesAreRenewedAtDifferentTimes(t *testing.T) {
	if host.Next(now).Equal(peer.Next(now)) {
		t.Errorf("both at %s", host.Next(now))
	}
}

func TestAnAuthorityIsRenewedBeforeItEnds(t *testing.T) {
	data := newSecret(t, now)
	early := now.Add(authorityLife / 2)
	if same, err := Renew(data, early); err != nil || !maps.EqualFunc(data, same, bytes.Equal) {
		t.Errorf("it is renewed too early, or not at all: %v", err)
	}
	late := parsed(t, data, now).RenewalAt()
	renewed, err := Renew(data, late)
	if err != nil || bytes.Equal(renewed["tls.crt"], data["tls.crt"]) {
		t.Fatalf("it is not renewed: %v", err)
	}
	if again, err := Renew(renewed, late); err != nil || !maps.EqualFunc(renewed, again, bytes.Equal) {
		t.Errorf("it is renewed twice: %v", err)
	}
	before, after := files(t, parsed(t, data, now), host, late), files(t, parsed(t, renewed, late), peer, late)
	if err := connect(t, before, after, "edpm-compute-1", late); err != nil {
		t.Errorf("a host that has the old one does not reach one that has the new one: %v", err)
	}
	if err := connect(t, after, before, "edpm-compute-0", late); err != nil {
		t.Errorf("a host that has the new one does not reach one that has the old one: %v", err)
	}
	if n := strings.Count(string(after[TrustedFile]), "BEGIN"); n != 2 {
		t.Errorf("%d certificates are trusted, and should be the new and the old one", n)
	}
	end := now.Add(authorityLife + time.Hour)
	if n := strings.Count(string(parsed(t, renewed, end).Trusted()), "BEGIN"); n != 1 {
		t.Errorf("%d certificates are trusted when the old one has ended", n)
	}
}

func TestAnAuthorityThatCannotBeUsed(t *testing.T) {
	good, other := newSecret(t, now), newSecret(t, now)
	leaf := files(t, parsed(t, good, now), host, now)
	for name, c := range map[string]struct {
		data map[string][]byte
		at   time.Time
		want string
	}{
		"nothing":                          {nil, now, "key tls.crt has no certificate"},
		"no key":                           {map[string][]byte{"tls.crt": good["tls.crt"]}, now, "key tls.key has no private key"},
		"the key of another one":           {map[string][]byte{"tls.crt": good["tls.crt"], "tls.key": other["tls.key"]}, now, "do not belong together"},
		"the certificate of a compute":     {leaf, now, "not that of an authority"},
		"a certificate that has ended":     {good, now.Add(2 * authorityLife), "is valid from 2026-11-28T11:00:00Z to 2036-11-25T12:00:00Z"},
		"a certificate that has not begun": {good, now.Add(-2 * time.Hour), "is valid from"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(c.data, c.at); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// What signed a given authority signs for others as well.
func TestOnlyTheAuthorityItselfIsTrusted(t *testing.T) {
	data := maps.Clone(newSecret(t, now))
	data[TrustedKey] = newSecret(t, now)["tls.crt"]
	if got := parsed(t, data, now).Trusted(); !bytes.Equal(got, data["tls.crt"]) {
		t.Errorf("trusted is\n%s", got)
	}
}
