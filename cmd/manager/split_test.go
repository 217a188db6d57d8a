package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// deploy applies what kustomize makes of a directory of config, and returns the
// Deployments, which no one runs here. The resource definitions are there, and what
// cert-manager would do a test does itself. It is all deleted when the test ends, but for
// the Namespace, which needs a controller for that.
func deploy(t *testing.T, api client.Client, dir string) []appsv1.Deployment {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as the program does it: namespaces first
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), envtest.File("config", dir))
	if err != nil {
		t.Fatal(err)
	}
	var found []appsv1.Deployment
	for _, r := range resources.Resources() {
		content, err := r.Map()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetKind() == "CustomResourceDefinition" || strings.HasPrefix(r.GetGvk().Group, "cert-manager") {
			continue
		}
		obj := &unstructured.Unstructured{Object: content}
		if r.GetKind() == "Namespace" {
			makeNamespace(t, api, obj)
			continue
		}
		create(t, api, obj)
		if r.GetKind() == "Deployment" {
			var d appsv1.Deployment
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &d); err != nil {
				t.Fatal(err)
			}
			found = append(found, d)
		}
	}
	return found
}

// makeNamespace makes a Namespace, unless it exists, and empties it of what managers make
// when the test ends.
func makeNamespace(t *testing.T, api client.Client, namespace client.Object) {
	t.Helper()
	if err := api.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, kind := range []client.Object{&coordinationv1.Lease{}, &corev1.Secret{}} {
			if err := api.DeleteAllOf(context.Background(), kind, client.InNamespace(namespace.GetName())); err != nil {
				t.Error(err)
			}
		}
	})
}

// freePort returns a port that no one listens at.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// runAs starts what a Deployment would run: with its arguments, variables and the
// rights of its account, in a Pod that exists. Only addresses differ, and the
// directory of the certificates.
func runAs(t *testing.T, env *envtest.Env, d appsv1.Deployment, dir string, port int) *process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := env.WriteKubeconfig(kubeconfig, "system:serviceaccount:"+d.Namespace+":"+d.Spec.Template.Spec.ServiceAccountName); err != nil {
		t.Fatal(err)
	}
	manager := d.Spec.Template.Spec.Containers[0]
	variables := []string{"POD_NAMESPACE=" + d.Namespace, "POD_NAME=" + d.Name}
	references := []string{}
	for _, e := range manager.Env {
		if e.ValueFrom == nil {
			variables = append(variables, e.Name+"="+e.Value)
			references = append(references, "$("+e.Name+")", e.Value)
		}
	}
	var flags []string
	for _, arg := range manager.Args {
		flags = append(flags, strings.NewReplacer(references...).Replace(arg))
	}
	create(t, env.Client, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}, Spec: corev1.PodSpec{
		SecurityContext: d.Spec.Template.Spec.SecurityContext, Containers: []corev1.Container{{Name: "manager", Image: "x", SecurityContext: manager.SecurityContext}},
	}})
	return start(t, variables, append(flags, "--kubeconfig="+kubeconfig, "--health-probe-bind-address=0", "--metrics-bind-address=0",
		fmt.Sprintf("--webhook-port=%d", port), "--webhook-cert-dir="+dir)...)
}

// authorities counts the webhooks of a Service, and those that have got an authority.
func authorities(t *testing.T, api client.Client, service string) (all, known int) {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{}
	for _, list := range []client.ObjectList{mutating, validating} {
		if err := api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	count := func(c admissionv1.WebhookClientConfig) {
		if c.Service.Name != service {
			return
		}
		if all++; len(c.CABundle) > 0 {
			known++
		}
	}
	for _, config := range mutating.Items {
		for _, w := range config.Webhooks {
			count(w.ClientConfig)
		}
	}
	for _, config := range validating.Items {
		for _, w := range config.Webhooks {
			count(w.ClientConfig)
		}
	}
	return all, known
}

var starting = regexp.MustCompile(`"msg":"Starting (EventSource|workers)","controller":"([^"]+)"`)

// idle says which controllers do not work yet: their caches are not full.
func (p *process) idle() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := map[string]bool{}
	for _, line := range p.log {
		if m := starting.FindStringSubmatch(line); m != nil {
			waiting[m[2]] = m[1] != "workers"
		}
	}
	all := len(waiting)
	maps.DeleteFunc(waiting, func(_ string, waits bool) bool { return !waits })
	if all <= 1 || len(waiting) > 0 { // one is for the certificate
		return fmt.Sprintf("of %d controllers these do not work: %v", all, slices.Sorted(maps.Keys(waiting)))
	}
	return ""
}

// TestEveryManagerOfItsOwnWorksWithItsRights : what an account may not do, its
// manager says in its log.
func TestEveryManagerOfItsOwnWorksWithItsRights(t *testing.T) {
	t.Parallel() // with TestALargeClusterCostsLittle, which has another API server
	env := cluster(t)
	for _, d := range deploy(t, env.Client, "overlays/split/operators") {
		t.Run(d.Name, func(t *testing.T) {
			operator := strings.TrimSuffix(strings.TrimPrefix(d.Name, "edpm-operators-"), "-manager")
			p := runAs(t, env, d, t.TempDir(), freePort(t))
			p.eventually(func() string {
				all, known := authorities(t, env.Client, "edpm-operators-"+operator+"-webhook-service")
				lease := &coordinationv1.Lease{}
				switch err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: d.Namespace, Name: "edpm-operators-" + operator}, lease); {
				case err != nil:
					return "the manager does not lead: " + err.Error()
				case p.idle() != "":
					return p.idle()
				case all == 0 || all != known:
					return fmt.Sprintf("the authority of %d of %d webhooks is known", known, all)
				}
				pod := &corev1.Pod{}
				if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: d.Namespace, Name: d.Name}, pod); err != nil {
					return err.Error()
				}
				if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Message == "Running: "+operator }) {
					return fmt.Sprintf("the Pod says %+v", pod.Status.Conditions)
				}
				return ""
			})
			if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			p.ends()
			for _, line := range p.log {
				if strings.Contains(line, "is forbidden") {
					t.Error(line)
				}
			}
		})
	}
}

// writeCertificate puts a certificate and its key where the manager reads them, and
// returns what trusts it.
func writeCertificate(t *testing.T, dir, host string) *x509.CertPool {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{corev1.TLSPrivateKeyKey: key, corev1.TLSCertKey: cert} {
		if err := replace(filepath.Join(dir, name), content); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return roots
}

func TestWebhooksAreServedWithCertificatesOfOthers(t *testing.T) {
	const host = "edpm-operators-webhook-service.edpm-operators-system.svc"
	env := cluster(t)
	dir, port := t.TempDir(), freePort(t)
	d := deploy(t, env.Client, "overlays/cert-manager")[0]
	roots := writeCertificate(t, dir, host)
	p := runAs(t, env, d, dir, port)
	ask := func(roots *x509.CertPool) string {
		c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host}}}
		answer, err := c.Post(fmt.Sprintf("https://127.0.0.1:%d/validate-topology-openstack-org-v1beta1-topology", port), "application/json", strings.NewReader(
			`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": "CREATE",
			"object": {"apiVersion": "topology.openstack.org/v1beta1", "kind": "Topology", "metadata": {"name": "t"}, "spec": {"topologySpreadConstraints": [
			{"maxSkew": 1, "topologyKey": "no label!", "whenUnsatisfiable": "DoNotSchedule"}]}}}}`))
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || !strings.Contains(string(body), `"allowed":false`) {
			return fmt.Sprintf("the answer is %s (%v); want a refusal", body, err)
		}
		return ""
	}
	p.eventually(func() string { return ask(roots) })

	t.Log("The certificate is renewed, by another authority")
	renewed := writeCertificate(t, dir, host)
	p.eventually(func() string { return ask(renewed) })
	if ask(roots) == "" {
		t.Error("the certificate of before is served still")
	}
	if p.said("is forbidden") {
		t.Error(strings.Join(p.log, "\n"))
	}
}
