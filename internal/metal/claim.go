package metal

import (
	"cmp"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// ConsumerKind is the kind of the objects that claim hosts.
const ConsumerKind = "OpenStackDataPlaneNode"

// ClaimedBy reports whether the host is that of the node: by the name of the node,
// not its UID, so that a node that was restored from a backup has its machine.
func ClaimedBy(host *metal3v1.BareMetalHost, namespace, node string) bool {
	return ofNode(host.Spec.ConsumerRef, namespace) && host.Spec.ConsumerRef.Name == node
}

// Consumer returns the name of the node that has claimed the host, empty if none has.
func Consumer(host *metal3v1.BareMetalHost) string {
	if !ofNode(host.Spec.ConsumerRef, host.Namespace) {
		return ""
	}
	return host.Spec.ConsumerRef.Name
}

// Claim is what a node writes to the host that it claims, all at once: a host that
// is claimed knows what it is to become.
type Claim struct {
	Node *dataplanev1.OpenStackDataPlaneNode
	// Secret with user data and network data, in the namespace of the host.
	Secret string
	Image  metal3v1.Image
	// Hints of the disk of the image; nil leaves those of the host.
	Hints *metal3v1.RootDeviceHints
	// CleaningMode of the host; empty leaves it as it is.
	CleaningMode string
}

// Patch is the JSON merge patch of the claim, which applies only to the host as it
// was read: no one else has claimed it meanwhile.
func (c Claim) Patch(host *metal3v1.BareMetalHost) ([]byte, error) {
	image := c.Image
	if image.Checksum != "" {
		image.ChecksumType = cmp.Or(image.ChecksumType, "auto") // baremetal-operator's own default is md5
	}
	claimed := borrowedOf(host)
	secret := &corev1.SecretReference{Name: c.Secret, Namespace: host.Namespace}
	claimed.Online, claimed.UserData, claimed.NetworkData = true, secret, secret
	claimed.AutomatedCleaningMode = cmp.Or(c.CleaningMode, claimed.AutomatedCleaningMode)
	claimed.RootDeviceHints = cmp.Or(c.Hints, claimed.RootDeviceHints)
	borrowing, err := newLoan(host, claimed)
	if err != nil {
		return nil, err
	}
	note, err := json.Marshal(borrowing)
	if err != nil {
		return nil, err
	}
	spec := replacing(fieldsOf(borrowedOf(host)), fieldsOf(claimed)).(map[string]any)
	spec["image"], spec["consumerRef"] = image, corev1.ObjectReference{
		APIVersion: dataplanev1.GroupVersion.String(), Kind: ConsumerKind, Namespace: c.Node.Namespace, Name: c.Node.Name, UID: c.Node.UID,
	}
	return onlyAsRead(host, map[string]any{"metadata": annotating(common.BeforeClaimAnnotation, string(note)), "spec": spec})
}

// annotating is the metadata of a merge patch that sets an annotation, or removes it.
func annotating(key string, value any) map[string]any {
	return map[string]any{"annotations": map[string]any{key: value}}
}

// Deprovision is the patch by which baremetal-operator removes the image from a
// host, and that gives back what the claim has borrowed, but for how the disks are cleaned: that
// is what the role says. The host stays claimed until it is clean.
func Deprovision(host *metal3v1.BareMetalHost) ([]byte, error) {
	spec := returned(host, cleaningModeField)
	spec["image"] = nil
	for field, ref := range map[string]*corev1.SecretReference{"userData": host.Spec.UserData, "networkData": host.Spec.NetworkData} {
		if _, given := spec[field]; !given && ref != nil && ref.Name == SecretName(Consumer(host)) {
			spec[field] = nil
		}
	}
	if loanOf(host) == nil && !host.Spec.DisablePowerOff {
		spec[onlineField] = false
	}
	return onlyAsRead(host, map[string]any{"spec": spec})
}

// Free is the patch that removes the claim, and gives back the rest.
func Free(host *metal3v1.BareMetalHost) ([]byte, error) {
	spec := returned(host)
	spec["consumerRef"] = nil
	return onlyAsRead(host, map[string]any{"metadata": annotating(common.BeforeClaimAnnotation, nil), "spec": spec})
}

// Detach is the patch that removes the claim and lets the machine run on, without
// baremetal-operator.
func Detach(host *metal3v1.BareMetalHost) ([]byte, error) {
	spec := returned(host, onlineField)
	spec["consumerRef"] = nil
	return onlyAsRead(host, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{common.BeforeClaimAnnotation: nil, metal3v1.DetachedAnnotation: "true"}},
		"spec":     spec,
	})
}

// onlyAsRead adds to a patch which version of the object it is for.
func onlyAsRead(host *metal3v1.BareMetalHost, patch map[string]any) ([]byte, error) {
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = host.UID, host.ResourceVersion
	return json.Marshal(patch)
}

// Deprovisioned reports whether nothing of an image is left on the host: it can be
// given to another node.
func Deprovisioned(host *metal3v1.BareMetalHost) bool {
	switch host.Status.Provisioning.State {
	case metal3v1.StateAvailable, metal3v1.StateReady, metal3v1.StateNone, metal3v1.StateUnmanaged, metal3v1.StateRegistering, metal3v1.StateMatchProfile:
		return true
	}
	return false
}
