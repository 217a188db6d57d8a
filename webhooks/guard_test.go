package webhooks

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	"github.com/edpm-operators/edpm-operators/webhooks/core"
)

// served collects webhooks.
type served struct {
	webhook.Server
	hooks map[string]http.Handler
}

func (s served) Register(path string, hook http.Handler) { s.hooks[path] = hook }
func (s served) WebhookMux() *http.ServeMux              { return http.NewServeMux() }

// serving is a manager that serves webhooks and nothing else.
type serving struct {
	ctrl.Manager
	scheme *runtime.Scheme
	server served
}

func (m serving) GetScheme() *runtime.Scheme       { return m.scheme }
func (m serving) GetWebhookServer() webhook.Server { return m.server }
func (serving) GetConfig() *rest.Config            { return &rest.Config{} }
func (serving) GetLogger() logr.Logger             { return logr.Discard() }

// TestAForgedReviewIsToldNothing : who reaches the webhooks is no API server yet.
func TestAForgedReviewIsToldNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := openstackv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	theirs := &openstackv1.OpenStackControlPlane{}
	theirs.Name, theirs.Namespace = "their-cloud", "theirs"
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(theirs).Build()
	ask := func(wrap func(ctrl.Manager) ctrl.Manager, review, object string) string {
		m := serving{scheme: scheme, server: served{hooks: map[string]http.Handler{}}}
		if err := core.SetupOpenStackControlPlaneWithManager(wrap(m), client.Reader(reader), nil); err != nil {
			t.Fatal(err)
		}
		hook := m.server.hooks["/validate-core-openstack-org-v1beta1-openstackcontrolplane"].(*admission.Webhook)
		raw := `{"apiVersion": "core.openstack.org/v1beta1", "kind": "OpenStackControlPlane", "metadata": {"name": "mine", "namespace": "` + object + `"}, "spec": {}}`
		response := hook.Handler.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Namespace: review, Object: runtime.RawExtension{Raw: []byte(raw)},
		}})
		return response.Result.Message + strings.Join(response.Warnings, " ")
	}
	plain, guarded := func(m ctrl.Manager) ctrl.Manager { return m }, func(m ctrl.Manager) ctrl.Manager { return guardedManager{m} }
	if got := ask(plain, "", ""); !strings.Contains(got, "their-cloud") {
		t.Fatalf("without the guard a review without a namespace gets %q; this test expects a name in it", got)
	}
	for _, c := range [][2]string{{"", ""}, {"mine", ""}, {"mine", "theirs"}} {
		review, object := c[0], c[1]
		if got := ask(guarded, review, object); strings.Contains(got, "their") || !strings.Contains(got, "not in the namespace of the admission review") {
			t.Errorf("a review in namespace %q of an object in %q gets %q", review, object, got)
		}
	}
	if got := ask(guarded, "mine", "mine"); strings.Contains(got, "their") || strings.Contains(got, "no API server") {
		t.Errorf("a review as the API server sends it gets %q", got)
	}
}
