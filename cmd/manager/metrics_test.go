package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

const (
	namespace = "default"
	account   = "manager"
)

// create makes an object that is there until the test ends.
func create(t *testing.T, api client.Client, obj client.Object) {
	t.Helper()
	if err := api.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Delete(context.Background(), obj, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// roleOf makes the first ClusterRole of a file of config/rbac and returns its name.
func roleOf(t *testing.T, api client.Client, file string) string {
	t.Helper()
	text, err := os.ReadFile(envtest.File("config", "rbac", file))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(string(text), "---\n"), "\n---\n")
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(first), role); err != nil {
		t.Fatal(err)
	}
	create(t, api, role)
	return role.Name
}

// bind gives a ServiceAccount a ClusterRole.
func bind(t *testing.T, api client.Client, name, role string) {
	t.Helper()
	create(t, api, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	})
}

// bearer makes a ServiceAccount and returns a token of it.
func bearer(t *testing.T, api client.Client, name string) string {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	create(t, api, sa)
	request := &authenticationv1.TokenRequest{}
	if err := api.SubResource("token").Create(t.Context(), sa, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// serve runs a manager without controllers until the test ends, and returns the
// address of its metrics.
func serve(t *testing.T, config *rest.Config, opts *options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts.metrics, opts.probes = l.Addr().String(), "0"
	l.Close()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, managerOptions(opts, scheme, nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("running the manager: %v", err)
		}
	})
	return opts.metrics
}

// reader reads the metrics of one address.
type reader struct {
	t       *testing.T
	address string
	tls     *tls.Config
}

// read returns the status and the body, or why there is no answer.
func (r *reader) read(scheme, token string) (int, string, error) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, scheme+"://"+r.address+"/metrics", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if token == "" {
		request.Header.Del("Authorization")
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: r.tls, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// eventually reads until there is an answer.
func (r *reader) eventually(scheme, token string) (int, string) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		status, body, err := r.read(scheme, token)
		if err == nil {
			return status, body
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the metrics are not served: %v", err)
		}
	}
}

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	env := cluster(t)
	// The manager has the rights of its role, and no others.
	bind(t, env.Client, account, roleOf(t, env.Client, "role.yaml"))
	managers := rest.CopyConfig(env.Config)
	managers.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + account, Groups: []string{"system:authenticated"}}
	stranger := bearer(t, env.Client, "stranger")
	prometheus := bearer(t, env.Client, "prometheus")
	bind(t, env.Client, "prometheus", roleOf(t, env.Client, "metrics_reader.yaml"))

	t.Run("with a certificate that comes later", func(t *testing.T) {
		dir := t.TempDir()
		r := &reader{t: t, address: serve(t, managers, &options{metricsSecure: true, service: "webhooks", certDir: dir})}
		const host = "webhooks." + namespace + ".svc"
		cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(cert)
		r.tls = &tls.Config{RootCAs: roots, ServerName: host}
		time.Sleep(300 * time.Millisecond)
		if _, _, err := r.read("https", prometheus); err == nil {
			t.Error("the metrics are served without the certificate of the webhooks")
		}
		for name, content := range map[string][]byte{corev1.TLSPrivateKeyKey: key, corev1.TLSCertKey: cert} {
			if err := replace(filepath.Join(dir, name), content); err != nil {
				t.Fatal(err)
			}
		}
		if status, body := r.eventually("https", prometheus); status != http.StatusOK || !strings.Contains(body, "go_goroutines") {
			t.Errorf("Prometheus is answered %d: %.200s", status, body)
		}
		for who, c := range map[string]struct {
			token string
			want  int
		}{
			"a user without a token": {"", http.StatusUnauthorized},
			// So answers the library to what the API server calls no token.
			"a user with a wrong token": {"x" + prometheus, http.StatusInternalServerError},
			"a user without the right":  {stranger, http.StatusForbidden},
		} {
			if status, body := r.eventually("https", c.token); status != c.want || strings.Contains(body, "go_goroutines") {
				t.Errorf("%s is answered %d; want %d", who, status, c.want)
			}
		}
		if status, body, err := r.read("http", prometheus); err == nil && status == http.StatusOK {
			t.Errorf("the metrics are served without TLS: %.200s", body)
		}
	})

	t.Run("with a certificate of its own where it makes none for webhooks", func(t *testing.T) {
		r := &reader{t: t, address: serve(t, managers, &options{metricsSecure: true}), tls: &tls.Config{InsecureSkipVerify: true}}
		if status, _ := r.eventually("https", prometheus); status != http.StatusOK {
			t.Errorf("Prometheus is answered %d; want 200", status)
		}
		if status, _ := r.eventually("https", stranger); status != http.StatusForbidden {
			t.Errorf("a stranger is answered %d; want 403", status)
		}
	})

	t.Run("to everybody with --metrics-secure=false", func(t *testing.T) {
		r := &reader{t: t, address: serve(t, managers, &options{})}
		if status, _ := r.eventually("http", ""); status != http.StatusOK {
			t.Errorf("the answer is %d; want 200", status)
		}
	})
}
