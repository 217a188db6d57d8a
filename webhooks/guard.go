package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// guardedManager is a manager whose webhooks judge only reviews of one namespace.
// The API server sends no others. Anybody else who reaches the webhooks could send
// an object without a namespace, and learn of objects in all of them: to a client
// that means every namespace.
type guardedManager struct{ ctrl.Manager }

// GetWebhookServer returns the server of the manager, guarded.
func (m guardedManager) GetWebhookServer() webhook.Server {
	return guardedServer{m.Manager.GetWebhookServer()}
}

type guardedServer struct{ webhook.Server }

// Register serves the webhook for reviews of one namespace.
func (s guardedServer) Register(path string, hook http.Handler) {
	if w, ok := hook.(*admission.Webhook); ok {
		w.Handler = oneNamespace{w.Handler}
	}
	s.Server.Register(path, hook)
}

// oneNamespace refuses reviews whose object is not in the namespace of the review.
// All kinds of edpm-operators have namespaces.
type oneNamespace struct{ admission.Handler }

// Handle refuses a review before anything is read for it.
func (h oneNamespace) Handle(ctx context.Context, req admission.Request) admission.Response {
	for _, object := range []runtime.RawExtension{req.Object, req.OldObject} {
		if len(object.Raw) == 0 {
			continue
		}
		meta := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(object.Raw, meta); err != nil {
			return admission.Errored(http.StatusBadRequest, errors.New("the object in the admission review cannot be decoded"))
		}
		if req.Namespace == "" || meta.Namespace != req.Namespace {
			return admission.Errored(http.StatusBadRequest, errors.New("the object is not in the namespace of the admission review, which no API server sends"))
		}
	}
	return h.Handler.Handle(ctx, req)
}
