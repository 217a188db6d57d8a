package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"

	"k8s.io/client-go/util/keyutil"
)

const (
	// life of the certificate of a compute, and after how long the next one follows. Clocks
	// of managers may differ, and runs may fail for months.
	life   = 366 * 24 * time.Hour
	period = life * 2 / 3
	// keyUsage of certificates: libvirt and QEMU ask for both, whatever the key is.
	keyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
)

// Files of a compute, by the names that roles of the collection know.
const (
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
	TrustedFile     = "ca.crt"
)

// Compute that a certificate is for.
type Compute struct {
	// ID that no other compute has, or ever had.
	ID string
	// Name and Address by which other computes connect to it.
	Name    string
	Address netip.Addr
}

// Files returns the certificate of a compute with its key, and those that it trusts. The
// certificate of an authority for a compute is the same each time until Next: it follows
// from the key of the authority, so that it is kept nowhere but on the host.
func (a *Authority) Files(c Compute, now time.Time) (map[string][]byte, error) {
	begin := c.begin(now)
	key, serial, err := a.derive(fmt.Sprintf("live migration %q %q %s %d", c.ID, c.Name, c.Address, begin.Unix()))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: c.Name}, NotBefore: begin.Add(-skew), NotAfter: a.end(begin),
		KeyUsage: keyUsage, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{c.Name}, IPAddresses: []net.IP{c.Address.AsSlice()}, BasicConstraintsValid: true,
	}
	// Without a source of randomness signatures are deterministic (RFC 6979).
	der, err := x509.CreateCertificate(nil, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", c.Name, err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	return map[string][]byte{CertificateFile: encode(der), KeyFile: text, TrustedFile: a.Trusted()}, err
}

// end is that of a certificate which begins then.
func (a *Authority) end(begin time.Time) time.Time {
	if end := begin.Add(life); end.Before(a.certificate.NotAfter) {
		return end
	}
	return a.certificate.NotAfter
}

// begin is when the present certificate of a compute was due. Computes have theirs renewed at
// different times, so that one that goes wrong is that of one compute.
func (c Compute) begin(now time.Time) time.Time {
	sum := sha256.Sum256([]byte(c.ID))
	offset := time.Duration(binary.BigEndian.Uint64(sum[:8])%uint64(period/time.Second)) * time.Second
	return now.UTC().Add(-offset).Truncate(period).Add(offset)
}

// Next is when the certificate of a compute is replaced by the next one.
func (c Compute) Next(now time.Time) time.Time { return c.begin(now).Add(period) }

// derive returns the key of a certificate and its serial number.
func (a *Authority) derive(purpose string) (*ecdsa.PrivateKey, *big.Int, error) {
	for attempt := range 100 {
		bits, err := hkdf.Key(sha256.New, a.secret, nil, fmt.Sprintf("edpm-operators %s %d", purpose, attempt), 48)
		if err != nil {
			return nil, nil, err
		}
		// One of 2^32 numbers is too large for a key of the curve.
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bits[:32]); err == nil {
			return key, new(big.Int).SetBytes(append([]byte{1}, bits[32:]...)), nil
		}
	}
	return nil, nil, fmt.Errorf("deriving the key for %s", purpose)
}
