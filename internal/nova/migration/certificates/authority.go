// Package certificates has the certificates by which the computes of a cell know one another
// when guests are moved between them, and those by which its console proxies and the consoles
// of guests do. It is pure: controllers store the authorities of a cell, and nothing else.
package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/edpm-operators/edpm-operators/internal/inputs"
)

const (
	// authorityLife is for how long the certificate of an authority is valid that the
	// operators make.
	authorityLife = 10 * 365 * 24 * time.Hour
	// TrustedKey has, in the Secret of an authority that the operators make, the certificates
	// that it had before and that are still valid.
	TrustedKey = "ca.crt"
	// skew is how far clocks of hosts may be behind.
	skew = time.Hour
)

// Authority signs certificates of a cell: those of its computes, or those of its consoles.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	secret      []byte
	trusted     []*x509.Certificate
}

// NewAuthority returns the Secret of a new authority of the name.
func NewAuthority(name string, now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of %s: %w", name, err)
	}
	return certify(name, key, nil, now)
}

// certify returns the Secret of an authority with a new certificate of its key.
func certify(name string, key *ecdsa.PrivateKey, before []*x509.Certificate, now time.Time) (map[string][]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{corev1.TLSCertKey: encode(der), corev1.TLSPrivateKeyKey: text}
	if len(before) > 0 {
		data[TrustedKey] = bundle(before)
	}
	return data, nil
}

// Renew returns the Secret of an authority that the operators made, with a new certificate
// if two thirds of the life of the present one are over, and without those that have ended.
// The key stays: every certificate that it signed is valid under either certificate, in
// whatever order hosts get the new one.
func Renew(data map[string][]byte, now time.Time) (map[string][]byte, error) {
	a, err := Parse(data, now)
	key, ok := (*ecdsa.PrivateKey)(nil), false
	if err == nil {
		key, ok = a.key.(*ecdsa.PrivateKey)
	}
	if !ok || now.Before(renewal(a.certificate.NotBefore, a.certificate.NotAfter)) {
		return data, err
	}
	return certify(a.certificate.Subject.CommonName, key, a.trusted, now)
}

// renewal is when a certificate is replaced.
func renewal(from, to time.Time) time.Time { return from.Add(to.Sub(from) * 2 / 3) }

// Parse reads the Secret of an authority. Errors say what is wrong with it, and quote none of it.
func Parse(data map[string][]byte, now time.Time) (*Authority, error) {
	own, err := cert.ParseCertsPEM(data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("key %s has no certificate in PEM format", corev1.TLSCertKey)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(data[corev1.TLSPrivateKeyKey])
	key, ok := parsed.(crypto.Signer)
	if err != nil || !ok {
		return nil, fmt.Errorf("key %s has no private key in PEM format", corev1.TLSPrivateKeyKey)
	}
	a := &Authority{certificate: own[0], key: key}
	if err := a.check(now); err != nil {
		return nil, err
	}
	if a.secret, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		return nil, fmt.Errorf("key %s: %w", corev1.TLSPrivateKeyKey, err)
	}
	a.trusted = a.trust(data[TrustedKey], now)
	return a, nil
}

func (a *Authority) check(now time.Time) error {
	public, ok := a.key.Public().(interface{ Equal(crypto.PublicKey) bool })
	switch c := a.certificate; {
	case !ok || !public.Equal(c.PublicKey):
		return fmt.Errorf("the keys %s and %s do not belong together", corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	case !c.IsCA || c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("its certificate is not that of an authority (isCA)")
	case now.Before(c.NotBefore) || now.After(c.NotAfter):
		return fmt.Errorf("its certificate is valid from %s to %s", c.NotBefore.Format(time.RFC3339), c.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// trust returns the certificate, and those with its key that are still valid. What else
// may have signed it is not trusted: it signs for others as well.
func (a *Authority) trust(before []byte, now time.Time) []*x509.Certificate {
	more, _ := cert.ParseCertsPEM(before) // none is no error
	more = slices.DeleteFunc(more, func(c *x509.Certificate) bool {
		return now.After(c.NotAfter) || c.Equal(a.certificate) || !bytes.Equal(c.RawSubjectPublicKeyInfo, a.certificate.RawSubjectPublicKeyInfo)
	})
	return append([]*x509.Certificate{a.certificate}, more...)
}

// Trusted are the certificates by which computes verify one another, in PEM format.
func (a *Authority) Trusted() []byte { return bundle(a.trusted) }

// Hash identifies the certificates of the authority.
func (a *Authority) Hash() string {
	return inputs.Digest(map[string][]byte{"trusted": a.Trusted()})[:32]
}

// RenewalAt is when the certificate of an authority is renewed that the operators made.
func (a *Authority) RenewalAt() time.Time {
	return renewal(a.certificate.NotBefore, a.certificate.NotAfter)
}

// NotAfter is when the certificate ends.
func (a *Authority) NotAfter() time.Time { return a.certificate.NotAfter }

// further is another authority, whose key follows from that of this one, and of which that one does not
// know. Its certificate is for what has the name, or for everything if that is empty.
func (a *Authority) further(purpose, name string) (*Authority, error) {
	key, _, err := a.derive(purpose)
	if err != nil {
		return nil, err
	}
	// The key stays when the certificate of this authority is renewed.
	_, serial, err := a.derive(fmt.Sprintf("%s %q %d", purpose, name, a.certificate.NotAfter.Unix()))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: purpose}, NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	if name != "" {
		template.PermittedDNSDomains, template.PermittedDNSDomainsCritical = []string{name}, true
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of the authority for %s: %w", purpose, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	return &Authority{certificate: certificate, key: key, secret: secret, trusted: []*x509.Certificate{certificate}}, err
}

func bundle(certificates []*x509.Certificate) []byte {
	var out []byte
	for _, c := range certificates {
		out = append(out, encode(c.Raw)...)
	}
	return out
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
