// Package envtest gives a test suite an API server of its own, with the
// resource definitions and, if asked for, the webhook configurations that are
// deployed. There is no controller manager and no kubelet: nothing is garbage
// collected, no Job runs.
package envtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

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
	"github.com/edpm-operators/edpm-operators/test/rights"
)

// T is what a suite passes: a *testing.T, or GinkgoT() from BeforeSuite.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Options say what the API server has next to the resource definitions.
type Options struct {
	// Webhooks installs the [WebhookConfigurations], pointing at the webhook
	// server of a manager made with [Env.ManagerOptions].
	Webhooks bool
	// CRDPaths are more files or directories of resource definitions, for
	// kinds that this project does not define.
	CRDPaths []string
	// AddToScheme are the types of such kinds.
	AddToScheme []func(*apiruntime.Scheme) error
}

// WebhookConfigurations returns the paths of the webhook configurations that are
// deployed: for all clusters, and for those with the operator of StorageCluster.
func WebhookConfigurations() []string {
	return []string{File("config", "webhook", "manifests.yaml"), File("config", "overlays", "ocs", "webhooks.yaml")}
}

// CephClusterCRD returns the path of Rook's resource definition of CephCluster, as
// far as tests need it, for [Options].CRDPaths: this project does not install it.
func CephClusterCRD() string { return File("test", "envtest", "testdata", "cephcluster.yaml") }

// BareMetalHostCRD returns the path of Metal3's resource definition of
// BareMetalHost, as far as tests need it, for [Options].CRDPaths.
func BareMetalHostCRD() string { return File("test", "envtest", "testdata", "baremetalhost.yaml") }

// Env is a running API server.
type Env struct {
	// Config authenticates an administrator.
	Config *rest.Config
	// Client reads and writes without a cache, as an administrator.
	Client client.Client
	Scheme *apiruntime.Scheme
	// Requests of the clients with the rights of the manager.
	Requests *rights.Requests

	webhooks crenvtest.WebhookInstallOptions
}

// startTimeout is how long an API server or a manager may take to start: next to other tests
// and a compiler that is minutes.
const startTimeout = 5 * time.Minute

// Start starts an API server and stops it when the suite ends. The binaries
// are those that the environment variable KUBEBUILDER_ASSETS points to.
func Start(t T, opts Options) *Env {
	t.Helper()
	env, stop, err := start(opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Fatalf("stopping the API server: %v", err)
		}
	})
	return env
}

func start(opts Options) (env *Env, stop func() error, err error) {
	if err := requireAssets(); err != nil {
		return nil, nil, err
	}
	scheme, err := NewScheme(opts.AddToScheme...)
	if err != nil {
		return nil, nil, err
	}
	server := newServer(opts, scheme)
	token, remove, err := newToken(server.ControlPlane.GetAPIServer())
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	config, err := server.Start()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("starting the API server: %w", err), server.Stop())
	}
	env, err = connect(withToken(config, token), scheme)
	if err != nil {
		return nil, nil, errors.Join(err, server.Stop())
	}
	env.webhooks = server.WebhookInstallOptions
	return env, server.Stop, nil
}

func newServer(opts Options, scheme *apiruntime.Scheme) *crenvtest.Environment {
	server := &crenvtest.Environment{
		Scheme:                   scheme,
		CRDDirectoryPaths:        append([]string{File("config", "crd", "bases")}, opts.CRDPaths...),
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
	}
	if opts.Webhooks {
		server.WebhookInstallOptions.Paths = WebhookConfigurations()
	}
	// Room for the Services of many, which the default does not have; and a plugin of
	// OpenShift that asks for a right of whoever names an owner.
	server.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.96.0.0/16").
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	return server
}

// newToken lets an API server that is to be started take a token from an administrator,
// which remove removes once it has read it. The certificate of a client would be
// verified with every request.
func newToken(server *crenvtest.APIServer) (token string, remove func(), err error) {
	token = rand.Text()
	file, err := os.CreateTemp("", "tokens-*.csv")
	if err != nil {
		return "", nil, err
	}
	_, err = fmt.Fprintf(file, "%s,administrator,administrator,%s\n", token, user.SystemPrivilegedGroup)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", nil, errors.Join(err, os.Remove(file.Name()))
	}
	server.Configure().Set("token-auth-file", file.Name())
	return token, func() { _ = os.Remove(file.Name()) }, nil
}

// withToken is the configuration of a client with a token in place of a certificate.
func withToken(config *rest.Config, token string) *rest.Config {
	config = rest.CopyConfig(config)
	config.BearerToken, config.CertData, config.KeyData = token, nil, nil
	return config
}

// Join returns the Env of an API server that another process of the suite has started:
// kubeconfig is what its [Env.Kubeconfig] returned. Of the options only AddToScheme
// counts.
func Join(t T, kubeconfig []byte, opts Options) *Env {
	t.Helper()
	scheme, err := NewScheme(opts.AddToScheme...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatalf("reading the kubeconfig of the API server: %v", err)
	}
	env, err := connect(config, scheme)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return env
}

func connect(config *rest.Config, scheme *apiruntime.Scheme) (*Env, error) {
	mapper, err := newMapper(config)
	if err != nil {
		return nil, fmt.Errorf("reading the kinds of the API server: %w", err)
	}
	admin, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &Env{Config: config, Client: admin, Scheme: scheme, Requests: &rights.Requests{}}, nil
}

// WriteKubeconfig writes what [Env.Kubeconfig] returns to a file, for programs.
func (e *Env) WriteKubeconfig(path string, account ...string) error {
	kubeconfig, err := e.Kubeconfig(account...)
	if err != nil {
		return err
	}
	return os.WriteFile(path, kubeconfig, 0o600)
}

// Kubeconfig returns a kubeconfig of the administrator. With the name of an account, as
// ServiceAccounts are called, the administrator acts as that and has its rights only.
func (e *Env) Kubeconfig(account ...string) ([]byte, error) {
	cluster := &clientcmdapi.Cluster{Server: e.Config.Host, CertificateAuthorityData: e.Config.CAData}
	info := &clientcmdapi.AuthInfo{Token: e.Config.BearerToken}
	if len(account) > 0 {
		info.Impersonate, info.ImpersonateGroups = account[0], []string{"system:serviceaccounts", "system:authenticated"}
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": info},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
}

// ManagerOptions are those of a manager that serves the installed webhooks and
// no metrics.
func (e *Env) ManagerOptions() ctrl.Options {
	return ctrl.Options{
		Scheme:  e.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: e.webhooks.LocalServingHost, Port: e.webhooks.LocalServingPort, CertDir: e.webhooks.LocalServingCertDir,
		}),
	}
}

// StartManager starts a manager and stops it before the API server. It returns
// once the installed webhooks are served and the caches are filled.
func (e *Env) StartManager(t T, mgr ctrl.Manager) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Fatalf("running the manager: %v", err)
		}
	})
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		return e.up(mgr), nil
	})
	if err != nil {
		t.Fatalf("waiting for the manager to be up: %v", err)
	}
}

func (e *Env) up(mgr ctrl.Manager) bool {
	select {
	case <-mgr.Elected():
	default:
		return false
	}
	return e.webhooks.LocalServingPort == 0 || mgr.GetWebhookServer().StartedChecker()(nil) == nil
}

// File returns the path of a file of the repository.
func File(elements ...string) string {
	_, source, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(source), "..", "..")
	return filepath.Join(append([]string{root}, elements...)...)
}

// NewScheme returns a scheme with the types of the suite and of Kubernetes, and
// what the functions add.
func NewScheme(more ...func(*apiruntime.Scheme) error) (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	add := append([]func(*apiruntime.Scheme) error{
		clientgoscheme.AddToScheme, dataplanev1.AddToScheme, edpmv1.AddToScheme, neutronv1.AddToScheme, novav1.AddToScheme, ansibleeev1.AddToScheme, topologyv1.AddToScheme, glancev1.AddToScheme, openstackv1.AddToScheme,
		ocsv1.AddToScheme, cephv1.AddToScheme, metal3v1.AddToScheme,
	}, more...)
	for _, f := range add {
		if err := f(scheme); err != nil {
			return nil, fmt.Errorf("adding types to the scheme: %w", err)
		}
	}
	return scheme, nil
}

// requireAssets says what to do where envtest would name a path of its own.
func requireAssets() error {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(dir, name)); dir == "" || err != nil {
			return missing(dir, name)
		}
	}
	return nil
}

func missing(dir, name string) error {
	return fmt.Errorf("this suite needs %s, but KUBEBUILDER_ASSETS=%q does not have it.\n"+
		"Run `make test`, or build the binaries and point to them:\n\n"+
		"\texport KUBEBUILDER_ASSETS=$(go run ./test/lab binaries)", name, dir)
}
