package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runningManager is the manager under test.
type runningManager interface {
	// Build makes the program or the image.
	Build(context.Context) error
	// Deploy starts it and waits until it is ready.
	Deploy(context.Context) error
	// Kill ends it as a crash would: it has no chance to let go of anything.
	Kill(context.Context) error
	// Evict ends it as a drained node would. In both cases it comes back by itself.
	Evict(context.Context) error
	// Ready waits until it serves and leads.
	Ready(context.Context) error
	// Logs of this manager and of those that were killed.
	Logs(context.Context) (string, error)
	// Metrics in the text format of Prometheus.
	Metrics(context.Context) (string, error)
	Stop()
}

func chooseManager() runningManager {
	if localManager() {
		return &processManager{}
	}
	return &podManager{}
}

func localManager() bool { return os.Getenv("E2E_LOCAL_MANAGER") == "1" }

// needPod skips what a manager without webhooks cannot show.
func needPod() {
	GinkgoHelper()
	if localManager() {
		Skip("E2E_LOCAL_MANAGER=1: there are no webhooks and there is no pod")
	}
}

const managerImage = "localhost/edpm-operators:latest"

// podManager is deployed as people would, from config/overlays/lab.
type podManager struct {
	mu  sync.Mutex
	old strings.Builder // logs of pods that were killed
}

func managerDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: systemNS, Name: "edpm-operators-manager"}}
}

func (m *podManager) Build(ctx context.Context) error {
	_, err := cluster.Run(ctx, "make", "--silent", "image-manager", "IMG="+managerImage)
	return err
}

func (m *podManager) Deploy(ctx context.Context) error {
	if err := cluster.Load(ctx, "bin/manager.tar"); err != nil {
		return err
	}
	yaml, err := cluster.Kustomize(ctx, "config/overlays/lab")
	if err != nil {
		return err
	}
	if err := cluster.Apply(ctx, yaml); err != nil {
		return err
	}
	return m.Ready(ctx)
}

// pods of the manager that are not on their way out.
func (m *podManager) pods(ctx context.Context) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := k8s.List(ctx, pods, client.InNamespace(systemNS), client.MatchingLabels{"app.kubernetes.io/component": "manager"})
	var alive []corev1.Pod
	for _, p := range pods.Items {
		if p.DeletionTimestamp.IsZero() {
			alive = append(alive, p)
		}
	}
	return alive, err
}

// Kill sends SIGKILL from the machine, and then removes the pod, because the
// kubelet would make a container that dies often wait.
func (m *podManager) Kill(ctx context.Context) error {
	m.keepLogs(ctx)
	pods, err := m.pods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		for _, c := range pods[i].Status.ContainerStatuses {
			_, id, _ := strings.Cut(c.ContainerID, "://")
			if err := killContainer(id); err != nil {
				return err
			}
		}
	}
	return m.remove(ctx, pods, 0)
}

// Evict deletes the pod: the process is told to stop.
func (m *podManager) Evict(ctx context.Context) error {
	m.keepLogs(ctx)
	pods, err := m.pods(ctx)
	if err != nil {
		return err
	}
	return m.remove(ctx, pods, 5)
}

func (m *podManager) remove(ctx context.Context, pods []corev1.Pod, grace int64) error {
	for i := range pods {
		if err := client.IgnoreNotFound(k8s.Delete(ctx, &pods[i], client.GracePeriodSeconds(grace))); err != nil {
			return err
		}
	}
	return nil
}

// killContainer kills the processes in the cgroup of a container.
func killContainer(id string) error {
	if len(id) < 32 {
		return fmt.Errorf("%q is no id of a container", id)
	}
	cgroups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return err
	}
	killed := 0
	for _, path := range cgroups {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), id) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid > 1 && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		return fmt.Errorf("no process of container %s is there to be killed", id)
	}
	return nil
}

// Ready waits for a single pod that is ready, webhooks included, and that leads.
func (m *podManager) Ready(ctx context.Context) error {
	deployment := managerDeployment()
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return err
	}
	want := int(ptr.Deref(deployment.Spec.Replicas, 1))
	return wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		pods, err := m.pods(ctx)
		if err != nil || len(pods) != want || want == 0 {
			return len(pods) == want, err
		}
		lease := &coordinationv1.Lease{ObjectMeta: named(systemNS, "edpm-operators")}
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return podReady(&pods[0]) && strings.HasPrefix(ptr.Deref(lease.Spec.HolderIdentity, ""), pods[0].Name+"_"), nil
	})
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (m *podManager) keepLogs(ctx context.Context) {
	text, _ := cluster.Kubectl(ctx, "logs", "-n", systemNS, "deployment/edpm-operators-manager", "--prefix")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.old.WriteString(text + "\n")
}

func (m *podManager) Logs(ctx context.Context) (string, error) {
	text, err := cluster.Kubectl(ctx, "logs", "-n", systemNS, "deployment/edpm-operators-manager")
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.old.String() + text, err
}

// Metrics reads them as Prometheus does: with the token of an account that may,
// and with the authority that the manager has made.
func (m *podManager) Metrics(ctx context.Context) (string, error) {
	token, err := metricsToken(ctx)
	if err != nil {
		return "", err
	}
	return m.metricsAs(ctx, token)
}

func (m *podManager) metricsAs(ctx context.Context, token string) (string, error) {
	pods, err := m.pods(ctx)
	if err != nil || len(pods) != 1 {
		return "", fmt.Errorf("there are %d pods of the manager: %w", len(pods), err)
	}
	certificate := &corev1.Secret{ObjectMeta: named(systemNS, "edpm-operators-webhook-service-cert")}
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(certificate), certificate); err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate.Data["ca.crt"])
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: "edpm-operators-webhook-service." + systemNS + ".svc",
	}}
	return read(ctx, &http.Client{Transport: transport}, "https://"+pods[0].Status.PodIP+":8443/metrics", token)
}

// metricsToken is a token of an account that may read the metrics.
func metricsToken(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: named(systemNS, "metrics-reader")}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-metrics-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edpm-operators-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, obj := range []client.Object{account, binding} {
		if err := client.IgnoreAlreadyExists(k8s.Create(ctx, obj)); err != nil {
			return "", err
		}
	}
	request := &authenticationv1.TokenRequest{}
	err := k8s.SubResource("token").Create(ctx, account, request)
	return request.Status.Token, err
}

func (m *podManager) Stop() {}

// get returns the body of a web page.
func get(ctx context.Context, url string) (string, error) {
	return read(ctx, http.DefaultClient, url, "")
}

// read returns the body of a web page that is shown to the bearer of a token.
func read(ctx context.Context, c *http.Client, url, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return string(body), err
}

// processManager runs on the machine, for quick development.
type processManager struct {
	mu  sync.Mutex
	cmd *exec.Cmd
}

func (m *processManager) program() string { return artifact("manager") }
func (m *processManager) log() string     { return artifact("manager.log") }

func (m *processManager) Build(ctx context.Context) error {
	_, err := cluster.Run(ctx, "go", "build", "-o", m.program(), "./cmd/manager")
	return err
}

func (m *processManager) Deploy(ctx context.Context) error {
	yaml, err := cluster.Kustomize(ctx, "config/crd")
	if err != nil {
		return err
	}
	if err := cluster.Apply(ctx, yaml); err != nil {
		return err
	}
	if _, err := cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"); err != nil {
		return err
	}
	return m.start()
}

// start runs the program until it is stopped, again whenever it was killed.
func (m *processManager) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	out, err := os.OpenFile(m.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	m.cmd = exec.Command(m.program(), "--leader-elect=false", "--webhooks=false", "--kubeconfig="+cluster.Kubeconfig,
		"--metrics-bind-address=127.0.0.1:18380", "--metrics-secure=false", "--health-probe-bind-address=127.0.0.1:18381",
		"--batch-debounce=500ms", "--batch-patience=5s", "--retry-base=5s", "--retry-max=20s")
	m.cmd.Env = append(os.Environ(),
		"RELATED_IMAGE_GLANCE_API_IMAGE_URL_DEFAULT=localhost/edpm-glance-api:latest",
		"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT=localhost/edpm-nova-compute:latest",
		"RELATED_IMAGE_OVN_CONTROLLER_AGENT_IMAGE_URL_DEFAULT=localhost/edpm-ovn:latest",
		"RELATED_IMAGE_EDPM_NEUTRON_METADATA_AGENT_IMAGE_URL_DEFAULT=localhost/edpm-ovn:latest",
		"RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT=localhost/edpm-nova-libvirt:latest",
		"RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT=localhost/edpm-ansibleee:latest",
		"RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT=localhost/edpm-ansibleee:latest")
	m.cmd.Stdout, m.cmd.Stderr = out, out
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return m.cmd.Start()
}

func (m *processManager) Kill(context.Context) error {
	m.Stop()
	return m.start()
}

func (m *processManager) Evict(context.Context) error {
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	_ = m.cmd.Wait()
	return m.start()
}

func (m *processManager) Ready(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := get(ctx, "http://127.0.0.1:18381/readyz")
		return err == nil, nil
	})
}

func (m *processManager) Logs(context.Context) (string, error) {
	text, err := os.ReadFile(filepath.Clean(m.log()))
	return string(text), err
}

func (m *processManager) Metrics(ctx context.Context) (string, error) {
	return get(ctx, "http://127.0.0.1:18380/metrics")
}

func (m *processManager) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil && m.cmd.Process != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}
