package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/cert"
)

const cellID = "uid-cell"

func proxyFiles(t *testing.T, a *Authority, at time.Time) map[string][]byte {
	t.Helper()
	all, err := a.ConsoleProxy(cellID, at)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func consolesOf(t *testing.T, a *Authority, c Compute) map[string][]byte {
	t.Helper()
	all, err := a.ConsoleHost(c)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// open reports how a client opens a console on the host, as nova-novncproxy and QEMU do: the
// client does not look at the name, and the host not at what the certificate is for.
func open(t *testing.T, client, server map[string][]byte, at time.Time) error {
	t.Helper()
	names := [...]string{ConsoleCertificateFile, ConsoleKeyFile, ConsoleTrustedFile}
	near, far := config(t, client, names, at), config(t, server, names, at)
	near.InsecureSkipVerify = true
	near.VerifyConnection = verifyPeer(near.RootCAs, x509.ExtKeyUsageServerAuth, at)
	far.ClientAuth = tls.RequireAnyClientCert
	far.VerifyConnection = verifyPeer(far.ClientCAs, x509.ExtKeyUsageAny, at)
	return handshake(t, near, far)
}

func verifyPeer(trusted *x509.CertPool, purpose x509.ExtKeyUsage, at time.Time) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		options := x509.VerifyOptions{Roots: trusted, Intermediates: x509.NewCertPool(), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{purpose}}
		for _, c := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(options)
		return err
	}
}

func TestConsoleProxiesOpenConsoles(t *testing.T) {
	a := parsed(t, newSecret(t, now), now)
	for _, c := range []Compute{host, peer} {
		if err := open(t, proxyFiles(t, a, now), consolesOf(t, a, c), now); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func TestNoOneElseOpensConsoles(t *testing.T) {
	a, other, migration := parsed(t, newSecret(t, now), now), parsed(t, newSecret(t, now), now), parsed(t, newSecret(t, now), now)
	trusted := proxyFiles(t, a, now)[ConsoleTrustedFile]
	with := func(files map[string][]byte, certificate, key string) map[string][]byte {
		return map[string][]byte{ConsoleCertificateFile: files[certificate], ConsoleKeyFile: files[key], ConsoleTrustedFile: trusted}
	}
	for name, client := range map[string]map[string][]byte{
		"the proxy of another cell":               with(proxyFiles(t, other, now), ConsoleCertificateFile, ConsoleKeyFile),
		"another host with that of its consoles":  with(consolesOf(t, a, peer), ConsoleCertificateFile, ConsoleKeyFile),
		"another host with that of its migration": with(files(t, migration, peer, now), CertificateFile, KeyFile),
	} {
		if err := open(t, client, consolesOf(t, a, host), now); err == nil {
			t.Errorf("%s is let in", name)
		}
	}
}

func TestAConsoleProxyIsNothingElse(t *testing.T) {
	a, migration := parsed(t, newSecret(t, now), now), parsed(t, newSecret(t, now), now)
	proxy := proxyFiles(t, a, now)
	as := map[string][]byte{CertificateFile: proxy[ConsoleCertificateFile], KeyFile: proxy[ConsoleKeyFile], TrustedFile: migration.Trusted()}
	if err := connect(t, as, files(t, migration, host, now), host.Name, now); err == nil {
		t.Error("it connects to libvirt")
	}
	if err := open(t, proxy, map[string][]byte{
		ConsoleCertificateFile: proxy[ConsoleCertificateFile], ConsoleKeyFile: proxy[ConsoleKeyFile], ConsoleTrustedFile: a.Trusted(),
	}, now); err == nil {
		t.Error("it serves consoles")
	}
	leaf, _ := cert.ParseCertsPEM(proxy[ConsoleCertificateFile])
	if len(leaf) != 1 || leaf[0].IsCA || leaf[0].KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("it signs")
	}
	if diff := cmp.Diff([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, leaf[0].ExtKeyUsage); diff != "" {
		t.Errorf("it is for\n%s", diff)
	}
}

// QEMU does not start a guest with a certificate that those do not verify which it trusts.
func TestAHostTrustsItsOwnConsoles(t *testing.T) {
	all := consolesOf(t, parsed(t, newSecret(t, now), now), host)
	chain, _ := cert.ParseCertsPEM(all[ConsoleCertificateFile])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(all[ConsoleTrustedFile])
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: host.Address.String()}); err != nil {
		t.Error(err)
	}
	trusted, _ := cert.ParseCertsPEM(all[ConsoleTrustedFile])
	for _, c := range trusted {
		if !c.IsCA || !bytes.Equal(c.RawIssuer, c.RawSubject) {
			t.Errorf("%s is no authority with a certificate of its own", c.Subject)
		}
	}
}

func TestCertificatesOfConsolesStay(t *testing.T) {
	data := newSecret(t, now)
	first, second := parsed(t, data, now), parsed(t, data, now)
	next := ConsoleProxyNext(cellID, now)
	if diff := cmp.Diff(proxyFiles(t, first, now), proxyFiles(t, second, next.Add(-time.Second))); diff != "" {
		t.Errorf("that of proxies is replaced too early:\n%s", diff)
	}
	if bytes.Equal(proxyFiles(t, first, now)[ConsoleKeyFile], proxyFiles(t, first, next)[ConsoleKeyFile]) {
		t.Error("that of proxies is not replaced")
	}
	if diff := cmp.Diff(consolesOf(t, first, host), consolesOf(t, second, host)); diff != "" {
		t.Errorf("that of a host differs when it is made again:\n%s", diff)
	}
	for name, c := range map[string]Compute{"another host": peer, "a host that was deleted and created again": {ID: "uid-2", Name: host.Name, Address: host.Address}} {
		if bytes.Equal(consolesOf(t, first, host)[ConsoleKeyFile], consolesOf(t, first, c)[ConsoleKeyFile]) {
			t.Errorf("%s has the same key", name)
		}
	}
}

// Guests have what was on the host when they started.
func TestConsolesOpenWhileTheirAuthorityIsRenewed(t *testing.T) {
	data := newSecret(t, now)
	before := parsed(t, data, now)
	late := before.RenewalAt()
	renewed, err := Renew(maps.Clone(data), late)
	if err != nil {
		t.Fatal(err)
	}
	after, end := parsed(t, renewed, late), before.NotAfter().Add(-time.Hour)
	for name, c := range map[string]struct{ proxy, host *Authority }{
		"an old guest and a new proxy": {after, before}, "a new guest and an old proxy": {before, after}, "both new": {after, after},
	} {
		t.Run(name, func(t *testing.T) {
			if err := open(t, proxyFiles(t, c.proxy, end), consolesOf(t, c.host, host), end); err != nil {
				t.Error(err)
			}
		})
	}
	if bytes.Equal(consolesOf(t, before, host)[ConsoleCertificateFile], consolesOf(t, after, host)[ConsoleCertificateFile]) {
		t.Error("the host keeps the certificate that ends")
	}
}
