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

// Files of libvirt on a compute, by the names that roles of the collection know. They are for QEMU
// as well where it has none of its own.
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
	// Cell that the compute is in, as <namespace>/<name>.
	Cell string
}

// Shared returns one certificate for libvirt and QEMU of a compute with its key, and those that
// both trust: what earlier versions gave to hosts. The certificate of an authority for a compute is
// the same each time until Next, and so are those of Libvirt and QEMU: it follows from the key of the
// authority, so that it is kept nowhere but on the host.
func (a *Authority) Shared(c Compute, now time.Time) (map[string][]byte, error) {
	certificate, key, err := a.sign(c, "live migration", pkix.Name{CommonName: c.Name}, now)
	return map[string][]byte{CertificateFile: certificate, KeyFile: key, TrustedFile: a.Trusted()}, err
}

// sign returns the certificate of a compute with its key, both in PEM format. Each purpose has a key
// of its own.
func (a *Authority) sign(c Compute, purpose string, subject pkix.Name, now time.Time) (certificate, text []byte, err error) {
	begin := c.begin(now)
	key, serial, err := a.derive(fmt.Sprintf("%s %q %q %s %d", purpose, c.ID, c.Name, c.Address, begin.Unix()))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: begin.Add(-skew), NotAfter: a.end(begin),
		KeyUsage: keyUsage, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{c.Name}, IPAddresses: []net.IP{c.Address.AsSlice()}, BasicConstraintsValid: true,
	}
	// Without a source of randomness signatures are deterministic (RFC 6979).
	der, err := x509.CreateCertificate(nil, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %s: %w", c.Name, err)
	}
	text, err = keyutil.MarshalPrivateKeyToPEM(key)
	return encode(der), text, err
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
