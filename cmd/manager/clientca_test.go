package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

var bothUsages = &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

// authority makes certificates.
type authority struct {
	rotator.CertRotator
	pair *rotator.KeyPairArtifacts
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{CertRotator: rotator.CertRotator{CAName: "ca", CAOrganization: "test", DNSName: "localhost", ExtKeyUsages: bothUsages}}
	var err error
	if a.pair, err = a.CreateCACert(time.Now().Add(-time.Hour), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue returns a certificate and its key in PEM.
func (a *authority) issue(t *testing.T) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := a.CreateCertPEM(a.pair, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask returns what the webhooks answer to a client with a certificate of the
// authority, nil for none.
func ask(t *testing.T, address string, by *authority) string {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // the server is not what is tested
	if by != nil {
		certificate, key := by.issue(t)
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		// Shown whatever authorities the server names.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := client.Post("https://"+address+"/validate", "application/json", strings.NewReader("{}"))
	if err != nil {
		return "error"
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return strconv.Itoa(response.StatusCode) + " " + string(body)
}

func TestAdmissionAnswersOnlyTheAPIServer(t *testing.T) {
	ours, others, dir := newAuthority(t), newAuthority(t), t.TempDir()
	certificate, key := ours.issue(t)
	put(t, filepath.Join(dir, "tls.crt"), certificate)
	put(t, filepath.Join(dir, "tls.key"), key)
	put(t, filepath.Join(dir, "ca.crt"), ours.pair.CertPEM)
	server := newWebhookServer(&options{webhookPort: freePort(t), certDir: dir, clientCA: filepath.Join(dir, "ca.crt")})
	server.Register("/validate", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "names") }))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	address := waitFor(t, server)
	if got := ask(t, address, ours); got != "200 names" {
		t.Errorf("the API server is answered %q", got)
	}
	if got := ask(t, address, nil); !strings.HasPrefix(got, "403 ") || strings.Contains(got, "names") {
		t.Errorf("who has no certificate is answered %q", got)
	}
	if got := ask(t, address, others); got != "error" {
		t.Errorf("who has a certificate of another authority is answered %q", got)
	}
	put(t, filepath.Join(dir, "ca.crt"), others.pair.CertPEM)
	if got := ask(t, address, others); got != "200 names" {
		t.Errorf("after the authority was replaced its client is answered %q", got)
	}
	put(t, filepath.Join(dir, "ca.crt"), []byte("nothing"))
	if got := ask(t, address, others); got != "error" {
		t.Errorf("without an authority a client is answered %q", got)
	}
}

func TestWithoutAnAuthorityAdmissionAnswersEverybody(t *testing.T) {
	if _, guarded := newWebhookServer(&options{}).(authenticatedServer); guarded {
		t.Error("a certificate is required although no authority was named")
	}
}

// waitFor returns the address of the server once it is there, by the check that
// makes the manager ready.
func waitFor(t *testing.T, server webhook.Server) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if server.StartedChecker()(nil) == nil {
			return "127.0.0.1:" + strconv.Itoa(server.(authenticatedServer).Server.(*webhook.DefaultServer).Options.Port)
		}
	}
	t.Fatal("the webhooks are not served")
	return ""
}
