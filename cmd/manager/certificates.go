package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/edpm-operators/edpm-operators/internal/inputs"
)

// addCertificates makes the manager create and rotate the certificates of its
// webhooks, and closes the channel when they are there.
func addCertificates(ctx context.Context, mgr manager.Manager, opts *options, ready chan struct{}) error {
	namespace := podNamespace()
	secret := types.NamespacedName{Namespace: namespace, Name: opts.service + "-cert"}
	if err := (&certificateFiles{secret: secret, dir: opts.certDir}).setup(ctx, mgr); err != nil {
		return err
	}
	return rotator.AddRotator(oneSecretManager{mgr, secret}, &rotator.CertRotator{
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

// oneSecretManager is a manager whose clients ask for one of the Secrets of its
// namespace where they would ask for all. The rotator watches the whole
// namespace, and has no option for less.
type oneSecretManager struct {
	manager.Manager
	secret types.NamespacedName
}

// GetConfig returns the configuration of such clients.
func (m oneSecretManager) GetConfig() *rest.Config {
	config := rest.CopyConfig(m.Manager.GetConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return oneSecret{next, m.secret} })
	return config
}

type oneSecret struct {
	http.RoundTripper
	secret types.NamespacedName
}

// RoundTrip adds the name to a request for all Secrets of the namespace.
func (o oneSecret) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/api/v1/namespaces/"+o.secret.Namespace+"/secrets" {
		r = r.Clone(r.Context())
		query := r.URL.Query()
		query.Set("fieldSelector", fields.OneTermEqualSelector(metav1.ObjectNameField, o.secret.Name).String())
		r.URL.RawQuery = query.Encode()
	}
	return o.RoundTripper.RoundTrip(r)
}

// certificateFiles copies the certificate of the webhooks from its Secret to the
// directory that the webhook server reads. A volume of the Secret would do the
// same, but more than a minute after the first start.
type certificateFiles struct {
	secret types.NamespacedName
	dir    string
	inputs *inputs.Reader
}

func (c *certificateFiles) setup(ctx context.Context, mgr manager.Manager) error {
	var err error
	if c.inputs, err = inputs.NewReader(ctx, mgr, inputs.DefaultLimits); err != nil {
		return err
	}
	atStart := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: c.secret})
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("webhook-certificate-files").
		WatchesRawSource(c.inputs.SecretChanges(&handler.EnqueueRequestForObject{})).
		WatchesRawSource(atStart).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(c)
}

// Reconcile writes the files again. The key comes first: the server reads both
// when the certificate changes.
func (c *certificateFiles) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	data, err := c.inputs.Secret(ctx, req.Namespace, req.Name)
	if missing := (*inputs.MissingError)(nil); errors.As(err, &missing) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, name := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if len(data[name]) == 0 {
			return reconcile.Result{}, nil
		}
		if err := replace(filepath.Join(c.dir, name), data[name]); err != nil {
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
