package main

import (
	"crypto/tls"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// What the manager asks the API server about whoever reads its metrics.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// metricsOptions serve the metrics to those only who may get the URL /metrics in
// the cluster, unless --metrics-secure=false. The certificate is that of the
// webhooks, whoever made it: readers verify it by the name of their Service, see
// config/prometheus. Where there is none, one without a name is made.
func metricsOptions(opts *options) metricsserver.Options {
	served := metricsserver.Options{BindAddress: opts.metrics, SecureServing: opts.metricsSecure, CertDir: opts.certDir}
	if !opts.metricsSecure {
		return served
	}
	served.FilterProvider = filters.WithAuthenticationAndAuthorization
	served.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
		c.NextProtos = []string{"http/1.1"} // one reader now and then needs no more
		if opts.service != "" {
			c.GetCertificate = certificateIn(opts.certDir)
		}
	}}
	return served
}

// certificateIn returns the certificate that is in the directory at the time: the
// first one comes after the server has started, and others when it is renewed.
func certificateIn(dir string) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, corev1.TLSCertKey), filepath.Join(dir, corev1.TLSPrivateKeyKey))
		return &cert, err
	}
}
