package certificates

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// Files of a console proxy or of the consoles on a host, by the names that the configuration of
// the proxy and roles of the collection know.
const (
	ConsoleCertificateFile = "console.crt"
	ConsoleKeyFile         = "console.key"
	ConsoleTrustedFile     = "console-ca.crt"
)

// The authority of consoles signs the certificate of the proxies, and another one, whose key follows
// from that of the first, those of the hosts. QEMU refuses a certificate of its own that is not signed by
// an authority that it trusts, and lets in as a client who has any certificate of these, for whatever
// purpose (crypto/tlscredsx509.c and crypto/tlssession.c there). So a host trusts the authority of hosts
// for its own name only: the key of another host does not open its consoles.

// ConsoleProxy returns the certificate of the console proxies of the cell with that ID, and what
// they trust. It is the same each time until ConsoleProxyNext.
func (a *Authority) ConsoleProxy(id string, now time.Time) (map[string][]byte, error) {
	begin := Compute{ID: id}.begin(now)
	key, serial, err := a.derive(fmt.Sprintf("console proxy %q %d", id, begin.Unix()))
	if err != nil {
		return nil, err
	}
	hosts, err := a.consoleHosts("")
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(nil, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "console proxy"}, NotBefore: begin.Add(-skew), NotAfter: a.end(begin),
		KeyUsage: keyUsage, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of console proxies: %w", err)
	}
	return consoleFiles(key, encode(der), encode(hosts.certificate.Raw))
}

// ConsoleProxyNext is when the certificate of the console proxies is replaced by the next one.
func ConsoleProxyNext(id string, now time.Time) time.Time { return Compute{ID: id}.Next(now) }

// ConsoleHost returns the certificate of the consoles on a host, and what they trust. QEMU reads
// it when a guest starts, so that it is valid as long as the authority: guests are restarted or
// moved in the third of that time which is left when it is renewed.
func (a *Authority) ConsoleHost(c Compute) (map[string][]byte, error) {
	name := c.ID + ".consoles"
	hosts, err := a.consoleHosts(name)
	if err != nil {
		return nil, err
	}
	key, serial, err := a.derive(fmt.Sprintf("consoles %q %s %d", c.ID, c.Address, a.certificate.NotAfter.Unix()))
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(nil, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: keyUsage, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		DNSNames: []string{name}, IPAddresses: []net.IP{c.Address.AsSlice()},
	}, hosts.certificate, key.Public(), hosts.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of the consoles on %s: %w", c.Name, err)
	}
	return consoleFiles(key, encode(der), slices.Concat(encode(hosts.certificate.Raw), a.Trusted()))
}

// consoleHosts is the authority of hosts, with a certificate for those of a name, or for all if it
// is empty.
func (a *Authority) consoleHosts(name string) (*Authority, error) {
	return a.further("consoles of hosts", name)
}

func consoleFiles(key *ecdsa.PrivateKey, certificate, trusted []byte) (map[string][]byte, error) {
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	return map[string][]byte{ConsoleCertificateFile: certificate, ConsoleKeyFile: text, ConsoleTrustedFile: trusted}, err
}
