// Package attachments checks the networks that pods are on next to that of the
// cluster, and names them to Multus.
package attachments

import (
	"context"
	"encoding/json"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=list;watch

var kind = schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// Annotation of a pod tells Multus which networks it is on.
const Annotation = "k8s.v1.cni.cncf.io/networks"

// Object returns an empty NetworkAttachmentDefinition, of which only metadata is
// of interest.
func Object() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind)
	return m
}

// Installed returns whether the cluster has NetworkAttachmentDefinitions.
func Installed(mapper meta.RESTMapper) bool {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil
}

// Check returns nil if every network of the namespace exists, and otherwise a
// *phase.Halt of the condition NetworkAttachmentsReady.
func Check(ctx context.Context, c client.Reader, installed bool, namespace string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if !installed {
		return phase.Stalled(condition.NetworkAttachmentsReadyCondition, ansibleeev1.NetworkAttachmentMissingReason,
			"spec.networkAttachments names %v, but the resource definition of NetworkAttachmentDefinition does not exist: install Multus and restart the operator, or remove the names", names)
	}
	for _, name := range names {
		err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, Object())
		if apierrors.IsNotFound(err) {
			return phase.Failing(condition.NetworkAttachmentsReadyCondition, ansibleeev1.NetworkAttachmentMissingReason,
				"NetworkAttachmentDefinition %q does not exist: create it in namespace %s, or remove it from spec.networkAttachments", name, namespace)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Value returns the value of the annotation for networks of the namespace.
func Value(namespace string, names []string) string {
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
