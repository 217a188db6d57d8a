package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// withClientCA makes the webhooks answer those only who show a certificate of the
// authority in the file, as an API server does that is configured so
// (--admission-control-config-file). The file is read for each connection, of which
// an API server makes few, so that it can be replaced.
func withClientCA(file string) func(*tls.Config) {
	return func(config *tls.Config) {
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading the authority of clients: %w", err)
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(text) {
				return nil, fmt.Errorf("%s has no certificate in PEM format", file)
			}
			// Not required here: the manager's own readiness probe connects without
			// one, and asks for nothing.
			mine := config.Clone()
			mine.GetConfigForClient, mine.ClientCAs, mine.ClientAuth = nil, pool, tls.VerifyClientCertIfGiven
			return mine, nil
		}
	}
}

// authenticatedServer answers requests only from clients whose certificate was
// verified.
type authenticatedServer struct{ webhook.Server }

// Register serves the webhook to such clients.
func (s authenticatedServer) Register(path string, hook http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "the webhooks answer only the API server: a client certificate of the authority in --webhook-client-ca is required", http.StatusForbidden)
			return
		}
		hook.ServeHTTP(w, r)
	}))
}
