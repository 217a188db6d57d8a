package pki

import (
	"crypto/x509"
	"testing"
)

func TestAuthority(t *testing.T) {
	dir := t.TempDir()
	ca, err := Open(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	request := Request{File: "server", CommonName: "cn", Groups: []string{"g"}, Hosts: []string{"10.0.0.1", "name.svc"}}
	if err := ca.Issue(request); err != nil {
		t.Fatal(err)
	}
	cert := parse(t, ca.CertPath("server"))
	for _, host := range request.Hosts {
		roots := x509.NewCertPool()
		roots.AddCert(ca.cert)
		options := x509.VerifyOptions{Roots: roots, DNSName: host}
		if _, err := cert.Verify(options); err != nil {
			t.Errorf("verifying for %s: %v", host, err)
		}
	}
	if got := cert.Subject.Organization; len(got) != 1 || got[0] != "g" {
		t.Errorf("groups are %q, want g", got)
	}
}

func TestNothingIsMadeTwice(t *testing.T) {
	dir := t.TempDir()
	serial := func() string {
		ca, err := Open(dir, "ca")
		if err != nil {
			t.Fatal(err)
		}
		if err := ca.Issue(Request{File: "user", CommonName: "u"}); err != nil {
			t.Fatal(err)
		}
		return ca.cert.SerialNumber.String() + " " + parse(t, ca.CertPath("user")).SerialNumber.String()
	}
	if first, second := serial(), serial(); first != second {
		t.Errorf("serial numbers went from %s to %s", first, second)
	}
}

func parse(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	der, err := readPEM(path)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
