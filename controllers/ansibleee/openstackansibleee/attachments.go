package openstackansibleee

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

var attachmentKind = schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// networksAnnotation tells Multus which networks a Pod is on.
const networksAnnotation = "k8s.v1.cni.cncf.io/networks"

func attachment() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(attachmentKind)
	return m
}

func hasAttachments(mgr ctrl.Manager) bool {
	_, err := mgr.GetRESTMapper().RESTMapping(attachmentKind.GroupKind(), attachmentKind.Version)
	return err == nil
}

// networks is the phase that checks that the network attachments exist.
func (s *scope) networks(ctx context.Context) error {
	names := s.run.Spec.NetworkAttachments
	if len(names) == 0 {
		return nil
	}
	t := ansibleeev1.NetworkAttachmentsReadyCondition
	if !s.attachments {
		return phase.Stalled(t, ansibleeev1.NetworkAttachmentMissingReason,
			"spec.networkAttachments names %v, but this cluster has no NetworkAttachmentDefinition: install Multus and restart the operator, or remove the names", names)
	}
	for _, name := range names {
		err := s.Get(ctx, types.NamespacedName{Namespace: s.run.Namespace, Name: name}, attachment())
		if apierrors.IsNotFound(err) {
			return phase.Failing(t, ansibleeev1.NetworkAttachmentMissingReason,
				"NetworkAttachmentDefinition %q does not exist: create it in namespace %s, or remove it from spec.networkAttachments", name, s.run.Namespace)
		}
		if err != nil {
			return err
		}
	}
	s.run.Status.Conditions.MarkTrue(t, "Every network attachment definition exists")
	return nil
}

// networksValue is the annotation for Multus.
func networksValue(namespace string, names []string) string {
	type element struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}
	elements := make([]element, 0, len(names))
	for _, name := range names {
		elements = append(elements, element{name, namespace})
	}
	text, _ := json.Marshal(elements) // strings always marshal
	return string(text)
}
