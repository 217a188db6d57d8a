package osd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// hashVersion is that of the fields in hashed, and of how they are written. A hash of
// another version says nothing about whether a user has changed a set.
const hashVersion = "v2:"

// hashed are the fields by which a device set is known again. They are named one by
// one, so that a field that a library or the resource definition adds changes no hash.
// A new field must be omitted where it is empty.
type hashed struct {
	Name        string                              `json:"name"`
	DeviceType  string                              `json:"deviceType"`
	DeviceClass string                              `json:"deviceClass"`
	Portable    bool                                `json:"portable"`
	TopologyKey string                              `json:"topologyKey"`
	Placement   hashedPlacement                     `json:"placement"`
	Prepare     *hashedPlacement                    `json:"preparePlacement"`
	Requests    corev1.ResourceList                 `json:"requests"`
	Limits      corev1.ResourceList                 `json:"limits"`
	Encrypted   *bool                               `json:"encrypted,omitempty"`
	ClaimName   string                              `json:"claimName"`
	Labels      map[string]string                   `json:"labels"`
	Annotations map[string]string                   `json:"annotations"`
	Class       *string                             `json:"storageClassName"`
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes"`
	VolumeMode  *corev1.PersistentVolumeMode        `json:"volumeMode"`
	Storage     string                              `json:"storage"`
	Selector    *metav1.LabelSelector               `json:"selector,omitempty"`
	Attributes  *string                             `json:"volumeAttributesClassName,omitempty"`
}

// hashedPlacement has the parts of a placement.
type hashedPlacement struct {
	NodeAffinity    *corev1.NodeAffinity              `json:"nodeAffinity"`
	PodAffinity     *corev1.PodAffinity               `json:"podAffinity"`
	PodAntiAffinity *corev1.PodAntiAffinity           `json:"podAntiAffinity"`
	Tolerations     []corev1.Toleration               `json:"tolerations"`
	Constraints     []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
}

// Hash returns a hash of what the spec says of a device set, followed by the number of
// OSDs: more of them change nothing about those that there are. It is stored, and stays
// the same in all versions of this project with the same hashVersion.
func Hash(set *ocsv1.StorageDeviceSet) (string, error) {
	claim := set.DataPVCTemplate
	content := hashed{
		Name: set.Name, DeviceType: set.DeviceType, DeviceClass: set.DeviceClass,
		Portable: set.Portable, TopologyKey: set.TopologyKey, Placement: partsOf(set.Placement), Encrypted: set.Encrypted,
		Requests: set.Resources.Requests, Limits: set.Resources.Limits,
		ClaimName: claim.Name, Labels: claim.Labels, Annotations: claim.Annotations,
		Class: claim.Spec.StorageClassName, AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
		Storage: claim.Spec.Resources.Requests.Storage().String(), Selector: claim.Spec.Selector, Attributes: claim.Spec.VolumeAttributesClassName,
	}
	if set.PreparePlacement != nil {
		prepare := partsOf(*set.PreparePlacement)
		content.Prepare = &prepare
	}
	hash, err := digest(content)
	if err != nil {
		return "", fmt.Errorf("hashing device set %s: %w", set.Name, err)
	}
	return fmt.Sprintf("%s:%dx%d", hash, set.Count, set.Replica), nil
}

func partsOf(p cephv1.Placement) hashedPlacement {
	return hashedPlacement{p.NodeAffinity, p.PodAffinity, p.PodAntiAffinity, p.Tolerations, p.TopologySpreadConstraints}
}

// hashOfPlacement is that of what the spec says of the placement of a daemon, nil if
// it says nothing.
func hashOfPlacement(given *cephv1.Placement) string {
	if given == nil {
		return hashVersion
	}
	hash, err := digest(partsOf(*given))
	if err != nil {
		return "" // of no version: the types can always be written as JSON
	}
	return hash
}

func digest(content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hashVersion + hex.EncodeToString(sum[:8]), nil
}

// sameVersion reports whether two hashes are of the same version.
func sameVersion(a, b string) bool {
	return strings.HasPrefix(a, hashVersion) && strings.HasPrefix(b, hashVersion)
}

// SameButCount reports whether two hashes of one version are of device sets that
// differ in the number of OSDs at most.
func SameButCount(a, b string) bool {
	return sameVersion(a, b) && withoutCount(a) == withoutCount(b)
}

func withoutCount(hash string) string { return hash[:max(0, strings.LastIndex(hash, ":"))] }
