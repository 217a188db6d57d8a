// Package pki makes the lab's keys and certificates. They live as long as the
// lab's state directory and are made once.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 10 * 365 * 24 * time.Hour

// Authority signs certificates and keeps them as <name>.crt and <name>.key in Dir.
type Authority struct {
	Dir  string
	name string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Request says whom a certificate is for. One with Hosts serves TLS as well.
type Request struct {
	// File is the base name of the files, CommonName and Groups the identity
	// that Kubernetes reads from the certificate.
	File, CommonName string
	Groups           []string
	// Hosts are the IP addresses and DNS names served.
	Hosts []string
}

// Open loads the authority called name from dir, or makes it.
func Open(dir, name string) (*Authority, error) {
	a := &Authority{Dir: dir, name: name}
	if !exists(a.KeyPath(name)) {
		if err := a.create(); err != nil {
			return nil, fmt.Errorf("making certificate authority %s: %w", name, err)
		}
	}
	return a, a.load()
}

// CertPath returns where the certificate called name is or will be.
func (a *Authority) CertPath(name string) string { return filepath.Join(a.Dir, name+".crt") }

// KeyPath returns where the key called name is or will be.
func (a *Authority) KeyPath(name string) string { return filepath.Join(a.Dir, name+".key") }

// Issue makes the key and certificate of r unless they are there.
func (a *Authority) Issue(r Request) error {
	if exists(a.CertPath(r.File)) {
		return nil
	}
	key, err := writeNewKey(a.KeyPath(r.File))
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, r.template(), a.cert, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("signing %s: %w", r.File, err)
	}
	return writePEM(a.CertPath(r.File), "CERTIFICATE", der, 0o644)
}

// KeyPair makes a bare key pair, <name>.key and <name>.pub, unless it is there.
func (a *Authority) KeyPair(name string) error {
	public := filepath.Join(a.Dir, name+".pub")
	if exists(public) {
		return nil
	}
	key, err := writeNewKey(a.KeyPath(name))
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return writePEM(public, "PUBLIC KEY", der, 0o644)
}

func (a *Authority) create() error {
	if err := os.MkdirAll(a.Dir, 0o755); err != nil {
		return err
	}
	key, err := writeNewKey(a.KeyPath(a.name))
	if err != nil {
		return err
	}
	t := newTemplate(pkix.Name{CommonName: "edpm-lab-" + a.name})
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return err
	}
	return writePEM(a.CertPath(a.name), "CERTIFICATE", der, 0o644)
}

func (a *Authority) load() error {
	der, err := readPEM(a.CertPath(a.name))
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("reading %s: %w", a.CertPath(a.name), err)
	}
	if der, err = readPEM(a.KeyPath(a.name)); err != nil {
		return err
	}
	if a.key, err = x509.ParseECPrivateKey(der); err != nil {
		return fmt.Errorf("reading %s: %w", a.KeyPath(a.name), err)
	}
	return nil
}

func (r Request) template() *x509.Certificate {
	t := newTemplate(pkix.Name{CommonName: r.CommonName, Organization: r.Groups})
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(r.Hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return t
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour), // clocks of containers may lag
		NotAfter:     now.Add(validity),
	}
}

func writeNewKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(path, "EC PRIVATE KEY", der, 0o600)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func readPEM(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("reading %s: no PEM block", path)
	}
	return block.Bytes, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
