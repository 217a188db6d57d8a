package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// Given is a certificate of libvirt on a host that people give, with what hosts trust.
type Given struct {
	files map[string][]byte
	leaf  *x509.Certificate
}

// ParseGiven reads the Secret with the certificate of libvirt on the host of a compute. Errors say what is
// wrong with it, and quote none of it.
func ParseGiven(data map[string][]byte, c Compute, now time.Time) (*Given, error) {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("the keys %s and %s have no certificate and private key in PEM format that belong together", corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	trusted, err := cert.ParseCertsPEM(data[TrustedKey])
	if err != nil {
		return nil, fmt.Errorf("key %s has no certificate in PEM format", TrustedKey)
	}
	g := &Given{files: map[string][]byte{CertificateFile: data[corev1.TLSCertKey], KeyFile: data[corev1.TLSPrivateKeyKey], TrustedFile: data[TrustedKey]}, leaf: pair.Leaf}
	return g, g.check(trusted, c, now)
}

// check returns why libvirt would not use the certificate, or other hosts would not accept it.
func (g *Given) check(trusted []*x509.Certificate, c Compute, now time.Time) error {
	address := c.Address.String()
	if now.Before(g.leaf.NotBefore) || now.After(g.leaf.NotAfter) {
		return fmt.Errorf("its certificate is valid from %s to %s", g.leaf.NotBefore.UTC().Format(time.RFC3339), g.leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if g.leaf.VerifyHostname(address) != nil {
		return fmt.Errorf("its certificate is not for %s, where other computes reach the host: add it to the IP addresses (ipAddresses) in it", address)
	}
	pool := x509.NewCertPool()
	for _, authority := range trusted {
		pool.AddCert(authority)
	}
	for name, usage := range map[string]x509.ExtKeyUsage{"server auth": x509.ExtKeyUsageServerAuth, "client auth": x509.ExtKeyUsageClientAuth} {
		if _, err := g.leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now}); err != nil {
			return fmt.Errorf("none of the authorities in %s has signed its certificate itself: add the one that has", TrustedKey)
		}
		if _, err := g.leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			return fmt.Errorf("its certificate is not for %s (usages): libvirt connects with it, and is connected to", name)
		}
	}
	return nil
}

// Files of libvirt on the host.
func (g *Given) Files() map[string][]byte { return g.files }

// NotAfter is when the certificate ends.
func (g *Given) NotAfter() time.Time { return g.leaf.NotAfter }

// EndsSoon is from when on less than a fifth of the life of the certificate is left: cert-manager renews
// one of which a third is left.
func (g *Given) EndsSoon() time.Time {
	return g.leaf.NotAfter.Add(-g.leaf.NotAfter.Sub(g.leaf.NotBefore) / 5)
}
