// Command manager runs the operators of edpm-operators.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/go-logr/zapr"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/controllers/ansibleee/upgradeable"
	"github.com/edpm-operators/edpm-operators/internal/coexistence"
	"github.com/edpm-operators/edpm-operators/internal/images"
	novaoptions "github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/webhooks"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=system,resources=events,verbs=create

func main() {
	opts, logging := &options{}, zap.Options{StacktraceLevel: zapcore.PanicLevel}
	opts.bind(flag.CommandLine)
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	setLogger(zap.NewRaw(zap.UseFlagOptions(&logging)))
	collectOften()
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), opts); err != nil {
		ctrl.Log.Error(err, "Failed to run the manager")
		os.Exit(1)
	}
}

// setLogger makes everything that the process says go to one log: what the
// libraries of Kubernetes and of Go say too.
func setLogger(raw *uberzap.Logger) {
	logger := zapr.NewLogger(raw)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	uberzap.RedirectStdLog(raw) // servers complain there of clients that give up
}

// collectOften lets the heap grow by half before garbage is collected, unless
// GOGC says otherwise. Most of the heap are caches, which live long: growing to
// the double, as is Go's default, costs much memory for little CPU time.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// newScheme returns a scheme with everything that edpm-operators reads and writes.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, ansibleeev1.AddToScheme, dataplanev1.AddToScheme, edpmv1.AddToScheme, neutronv1.AddToScheme, novav1.AddToScheme, topologyv1.AddToScheme, glancev1.AddToScheme, openstackv1.AddToScheme,
		ocsv1.AddToScheme, cephv1.AddToScheme, operatorsv2.AddToScheme, metal3v1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// run runs the operators that can run in the cluster, until it is told to stop or
// others can.
func run(ctx context.Context, config *rest.Config, opts *options) error {
	if err := controllers.CheckOperators(opts.operatorList()); err != nil {
		return err
	}
	config.QPS, config.Burst = float32(opts.qps), int(opts.qps*2)
	// Decompression has 44 KiB for each connection and takes CPU time; the API
	// server is near.
	config.DisableCompression = true
	if opts.qps == 0 {
		config.QPS = -1
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	definitions, err := coexistence.NewWatcher(ctx, config, opts.operatorList())
	if err != nil {
		return err
	}
	decision := definitions.Decide()
	mgr, err := newManager(ctx, config, opts, decision)
	if err != nil {
		return err
	}
	if err := definitions.WhenChanged(decision, stop); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager with the operators that were decided for.
func newManager(ctx context.Context, config *rest.Config, opts *options, decision coexistence.Decision) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, managerOptions(opts, scheme, decision.Running))
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if len(decision.Running) > 0 {
		setup := controllers.Options{Operators: decision.Running, Engine: opts.engine, Secrets: opts.secrets, Images: images.Env(), RunnerResources: opts.runner}
		setup.OperatorCondition = types.NamespacedName{Namespace: podNamespace(), Name: os.Getenv(upgradeable.NameVariable)}
		if setup.Logs, err = podLogs(mgr); err != nil {
			return nil, err
		}
		if err := controllers.Setup(ctx, mgr, setup); err != nil {
			return nil, fmt.Errorf("setting up controllers: %w", err)
		}
	}
	if err := addWebhooks(ctx, mgr, opts, decision.Running); err != nil {
		return nil, fmt.Errorf("setting up webhooks: %w", err)
	}
	pod := types.NamespacedName{Namespace: podNamespace(), Name: os.Getenv("POD_NAME")}
	if err := coexistence.Report(mgr, decision, pod); err != nil {
		return nil, err
	}
	return mgr, mgr.AddHealthzCheck("ping", healthz.Ping)
}

// podLogs opens logs of pods, which have one container.
func podLogs(mgr manager.Manager) (novaoptions.Logs, error) {
	api, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for logs: %w", err)
	}
	return func(ctx context.Context, namespace, pod string) (io.ReadCloser, error) {
		return api.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).Stream(ctx)
	}, nil
}

// addWebhooks serves the webhooks of the operators. With certificates of its own,
// the manager serves them once those are there.
func addWebhooks(ctx context.Context, mgr manager.Manager, opts *options, operators []string) error {
	if !opts.webhooks {
		return mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	if err := webhooks.SetupAll(mgr, operators); err != nil {
		return err
	}
	server := mgr.GetWebhookServer()
	if waiting, ok := server.(patientServer); ok {
		if err := addCertificates(ctx, mgr, opts, waiting.ready); err != nil {
			return err
		}
	}
	return mgr.AddReadyzCheck("webhooks", server.StartedChecker())
}
