package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// addCertificates makes the manager create and rotate the certificates of its
// webhooks. The channel is closed when they are there.
func addCertificates(mgr manager.Manager, opts *options) (chan struct{}, error) {
	ready := make(chan struct{})
	namespace := podNamespace()
	secret := types.NamespacedName{Namespace: namespace, Name: opts.service + "-cert"}
	if err := (&certificateFiles{mgr.GetAPIReader(), opts.certDir}).setup(mgr, secret); err != nil {
		return nil, err
	}
	return ready, rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      secret,
		CertDir:        opts.certDir,
		CAName:         "edpm-operators-ca",
		CAOrganization: "edpm-operators",
		DNSName:        opts.service + "." + namespace + ".svc",
		IsReady:        ready,
		Webhooks:       webhookInfos(opts.webhookConfig),
		// Every replica serves webhooks, whoever leads.
		RequireLeaderElection: false,
	})
}

// certificateFiles copies the certificate of the webhooks from its Secret to the
// directory that the webhook server reads. A volume of the Secret would do the
// same, but more than a minute after the first start.
type certificateFiles struct {
	reader client.Reader
	dir    string
}

// setup watches this one Secret: not every manager may see those of the cluster.
func (c *certificateFiles) setup(mgr manager.Manager, secret types.NamespacedName) error {
	only, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces:    map[string]cache.Config{secret.Namespace: {}},
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", secret.Name),
	})
	if err != nil {
		return fmt.Errorf("making a cache for Secret %s: %w", secret, err)
	}
	if err := mgr.Add(only); err != nil {
		return err
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("webhook-certificate-files").
		WatchesRawSource(source.Kind(only, metadata, &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{})).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(c)
}

// Reconcile writes the files anew. The key comes first: the server reads both
// when the certificate changes.
func (c *certificateFiles) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := c.reader.Get(ctx, req.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	for _, name := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if len(secret.Data[name]) == 0 {
			return reconcile.Result{}, nil
		}
		if err := replace(filepath.Join(c.dir, name), secret.Data[name]); err != nil {
			return reconcile.Result{}, fmt.Errorf("writing the certificate of the webhooks: %w", err)
		}
	}
	return reconcile.Result{}, nil
}

// replace writes a file such that no reader sees half of it.
func replace(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
