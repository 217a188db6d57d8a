package main

import (
	"context"
	"os"
	"strings"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/edpm-operators/edpm-operators/internal/cache"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,resourceNames=webhook-service-cert,verbs=list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=mutating-webhook-configuration,verbs=update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=validating-webhook-configuration,verbs=update

func managerOptions(opts *options, scheme *runtime.Scheme, operators []string) ctrl.Options {
	held := cache.Options(operators)
	held.SyncPeriod = ptr.To(resync)
	return ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                opts.leaderElect,
		LeaderElectionID:              opts.lease,
		LeaderElectionNamespace:       os.Getenv("POD_NAMESPACE"), // empty means that of the account
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        opts.probes,
		PprofBindAddress:              opts.pprof,
		Metrics:                       metricsOptions(opts),
		WebhookServer:                 newWebhookServer(opts),
		Cache:                         held,
		Client:                        cache.ClientOptions(),
	}
}

// newWebhookServer returns a server that waits for its certificates if the manager
// makes them itself, and that answers only the API server if its authority is known.
func newWebhookServer(opts *options) webhook.Server {
	serving := webhook.Options{Port: opts.webhookPort, CertDir: opts.certDir}
	if opts.clientCA != "" {
		serving.TLSOpts = append(serving.TLSOpts, withClientCA(opts.clientCA))
	}
	server := webhook.NewServer(serving)
	if opts.clientCA != "" {
		server = authenticatedServer{server}
	}
	if opts.service == "" {
		return server
	}
	return patientServer{server, make(chan struct{})}
}

// patientServer starts when its certificates are there.
type patientServer struct {
	webhook.Server
	ready chan struct{}
}

// Start serves the webhooks until the context ends.
func (s patientServer) Start(ctx context.Context) error {
	select {
	case <-s.ready:
		return s.Server.Start(ctx)
	case <-ctx.Done():
		return nil
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
