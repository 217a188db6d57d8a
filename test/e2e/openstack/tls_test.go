package openstack

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// certified is the server whose certificate nova's endpoints with TLS have: Go's own
// for tests, of example.com.
var certified = httptest.NewTLSServer(nil)

// certificate is the Secret with it.
func certificate() *corev1.Secret {
	pair := certified.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	return secret("certificate", map[string]string{
		corev1.TLSCertKey:       string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		corev1.TLSPrivateKeyKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	})
}

// web trusts that certificate alone, and keeps no connection.
func web() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12},
	}}
}
