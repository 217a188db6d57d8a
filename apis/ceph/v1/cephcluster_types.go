package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CephClusterCRD is the name of the resource definition that Rook installs.
const CephClusterCRD = "cephclusters.ceph.rook.io"

// PlacementAll is the key of the placement that all daemons have in common. Rook
// merges it with that of a daemon: required node affinity is combined, pod
// affinities and constraints of the daemon replace those here, tolerations add up.
const PlacementAll = "all"

// Labels that Rook puts on the PersistentVolumeClaims and the pods of OSDs
// (rook/rook pkg/operator/ceph/cluster/osd).
const (
	// AppLabel tells what a pod is: [AppOSD] or [AppOSDPrepare].
	AppLabel = "app"
	// DeviceSetLabel has the name of the StorageClassDeviceSet.
	DeviceSetLabel = "ceph.rook.io/DeviceSet"
	// DeviceSetPVCIDLabel is the identity of a claim: <set>-<template>-<index>.
	DeviceSetPVCIDLabel = "ceph.rook.io/DeviceSetPVCId"
	// SetIndexLabel has the index of a claim in its set.
	SetIndexLabel = "ceph.rook.io/setIndex"
	// PVCLabel of a pod has the name of its claim.
	PVCLabel = "ceph.rook.io/pvc"
	// OSDIDLabel of a pod has the number of its OSD.
	OSDIDLabel = "ceph-osd-id"
)

// Values of [AppLabel].
const (
	AppOSD        = "rook-ceph-osd"
	AppOSDPrepare = "rook-ceph-osd-prepare"
)

// DataTemplate is the name of the claims of a template that has none.
const DataTemplate = "data"

// Annotations of the claims of OSDs that Rook reads.
const (
	// CrushDeviceClassAnnotation is the class of the device in the CRUSH map.
	CrushDeviceClassAnnotation = "crushDeviceClass"
)

// Placement says where the pods of a daemon go.
type Placement struct {
	// NodeAffinity of the pods. Rook takes the first of several required terms.
	// +optional
	NodeAffinity *corev1.NodeAffinity `json:"nodeAffinity,omitempty"`
	// PodAffinity of the pods.
	// +optional
	PodAffinity *corev1.PodAffinity `json:"podAffinity,omitempty"`
	// PodAntiAffinity of the pods.
	// +optional
	PodAntiAffinity *corev1.PodAntiAffinity `json:"podAntiAffinity,omitempty"`
	// Tolerations of the pods.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// TopologySpreadConstraints of the pods.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// VolumeClaimTemplate is a PersistentVolumeClaim without a status.
type VolumeClaimTemplate struct {
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec corev1.PersistentVolumeClaimSpec `json:"spec,omitzero"`
}

// StorageClassDeviceSet is a number of OSDs on claims that are made alike.
type StorageClassDeviceSet struct {
	// Name is part of the identity of the claims: with another name they are
	// other claims, and other OSDs.
	Name string `json:"name"`
	// Count of the OSDs; at least 1.
	Count int `json:"count"`
	// Resources of the daemons.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// Placement of the daemons.
	Placement Placement `json:"placement,omitzero"`
	// PreparePlacement of the Jobs that prepare the devices; nil means Placement.
	PreparePlacement *Placement `json:"preparePlacement,omitempty"`
	// VolumeClaimTemplates of each OSD.
	VolumeClaimTemplates []VolumeClaimTemplate `json:"volumeClaimTemplates"`
	// Portable OSDs can move to another node of the domain they were prepared in.
	Portable bool `json:"portable,omitempty"`
	// Encrypted devices. Without it, those of a new set are not.
	Encrypted *bool `json:"encrypted,omitempty"`
	// TuneSlowDeviceClass adapts the daemons to slow devices.
	TuneSlowDeviceClass bool `json:"tuneDeviceClass,omitempty"`
	// TuneFastDeviceClass adapts the daemons to fast devices.
	TuneFastDeviceClass bool `json:"tuneFastDeviceClass,omitempty"`
}

// StorageSpec has the OSDs of a cluster.
type StorageSpec struct {
	// StorageClassDeviceSets is one value in Rook's resource definition, which
	// gives it no list type: who applies it owns all of it.
	StorageClassDeviceSets []StorageClassDeviceSet `json:"storageClassDeviceSets,omitempty"`
	// OnlyApplyOSDPlacement keeps the placement of all daemons from OSDs.
	OnlyApplyOSDPlacement bool `json:"onlyApplyOSDPlacement,omitempty"`
}

// CephClusterSpec is the part that this project writes.
type CephClusterSpec struct {
	// Placement by daemon; see [PlacementAll].
	Placement map[string]Placement `json:"placement,omitempty"`
	// Storage has the OSDs.
	Storage StorageSpec `json:"storage,omitzero"`
}

// CephCluster is a Ceph cluster that Rook runs. Its resource definition is Rook's:
// none is made of it here.
//
// +kubebuilder:object:root=true
type CephCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CephClusterSpec `json:"spec,omitzero"`
}

// CephClusterList is a list of CephCluster.
//
// +kubebuilder:object:root=true
type CephClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CephCluster `json:"items"`
}

func init() {
	register(&CephCluster{}, &CephClusterList{})
}
