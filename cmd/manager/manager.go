package main

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/edpm-operators/edpm-operators/controllers"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=webhook-service-cert,verbs=list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,verbs=get;list;watch;update

func managerOptions(opts *options, scheme *runtime.Scheme, operators []string) ctrl.Options {
	held := controllers.CacheOptions(operators)
	held.SyncPeriod = ptr.To(resync)
	return ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                opts.leaderElect,
		LeaderElectionID:              opts.lease,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        opts.probes,
		PprofBindAddress:              opts.pprof,
		Metrics:                       metricsOptions(opts),
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: opts.webhookPort, CertDir: opts.certDir}),
		Cache:                         held,
		// Secrets are read by internal/inputs; nothing may cache them by accident.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
}

func webhookInfos(list string) []rotator.WebhookInfo {
	var infos []rotator.WebhookInfo
	for _, item := range strings.Split(list, ",") {
		kind, name, ok := strings.Cut(item, "/")
		if !ok {
			continue
		}
		t := rotator.Validating
		if kind == "mutating" {
			t = rotator.Mutating
		}
		infos = append(infos, rotator.WebhookInfo{Name: name, Type: t})
	}
	return infos
}

// podNamespace is the namespace that the manager runs in.
func podNamespace() string {
	if ns := os.Getenv("POD_NAMESPACE"); ns != "" {
		return ns
	}
	return "edpm-operators-system"
}

// afterCertificates is ready once the certificates are there and the webhooks
// are served.
func afterCertificates(mgr manager.Manager, ready chan struct{}) healthz.Checker {
	return func(req *http.Request) error {
		select {
		case <-ready:
			return mgr.GetWebhookServer().StartedChecker()(req)
		case <-time.After(100 * time.Millisecond):
			return errWaiting
		}
	}
}

var errWaiting = errors.New("waiting for the certificates of the webhooks")
