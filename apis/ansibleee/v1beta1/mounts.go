package v1beta1

import corev1 "k8s.io/api/core/v1"

// ExtraMount is a group of volumes and their mounts for the runner Pod.
// The shape is that of VolMounts in lib-common's storage module.
type ExtraMount struct {
	// ExtraVolType names what the volumes are for, for example Ceph.
	// +optional
	ExtraVolType string `json:"extraVolType,omitempty"`

	// Volumes that the mounts refer to.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Volumes []ExtraVolume `json:"volumes,omitempty"`

	// Mounts of those volumes in the runner container.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Mounts []corev1.VolumeMount `json:"mounts,omitempty"`
}

// ExtraVolume is a volume of the object's own namespace. Volumes of the
// Kubernetes host (hostPath) and of the network (NFS and the like) are left
// out on purpose: a runner Pod is meant to run under the restricted Pod
// security standard.
//
// +kubebuilder:validation:XValidation:rule="[has(self.secret), has(self.configMap), has(self.persistentVolumeClaim), has(self.projected), has(self.emptyDir)].exists_one(x, x)",message="set exactly one of secret, configMap, persistentVolumeClaim, projected, emptyDir"
type ExtraVolume struct {
	// Name by which mounts refer to the volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Secret of the same namespace.
	// +optional
	Secret *corev1.SecretVolumeSource `json:"secret,omitempty"`

	// ConfigMap of the same namespace.
	// +optional
	ConfigMap *corev1.ConfigMapVolumeSource `json:"configMap,omitempty"`

	// PersistentVolumeClaim of the same namespace.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`

	// Projected Secrets, ConfigMaps and downward API values.
	// +optional
	Projected *ExtraProjection `json:"projected,omitempty"`

	// EmptyDir that lives as long as the runner Pod.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`
}

// ExtraProjection puts several sources into one volume. Of what a Pod can have
// projected the credentials are omitted on purpose: a runner Pod gets no token
// of its service account and no certificate in its name.
type ExtraProjection struct {
	// Sources of the files.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Sources []ExtraProjectionSource `json:"sources,omitempty"`

	// DefaultMode of the files.
	// +optional
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// ExtraProjectionSource is exactly one of its fields.
type ExtraProjectionSource struct {
	// Secret of the same namespace.
	// +optional
	Secret *corev1.SecretProjection `json:"secret,omitempty"`

	// ConfigMap of the same namespace.
	// +optional
	ConfigMap *corev1.ConfigMapProjection `json:"configMap,omitempty"`

	// DownwardAPI has fields of the runner Pod.
	// +optional
	DownwardAPI *corev1.DownwardAPIProjection `json:"downwardAPI,omitempty"`
}

// Volume returns the Pod volume that v stands for.
func (v ExtraVolume) Volume() corev1.Volume {
	return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
		Secret: v.Secret, ConfigMap: v.ConfigMap, PersistentVolumeClaim: v.PersistentVolumeClaim,
		Projected: v.Projected.volumeSource(), EmptyDir: v.EmptyDir,
	}}
}

func (p *ExtraProjection) volumeSource() *corev1.ProjectedVolumeSource {
	if p == nil {
		return nil
	}
	source := &corev1.ProjectedVolumeSource{DefaultMode: p.DefaultMode}
	for _, s := range p.Sources {
		source.Sources = append(source.Sources, corev1.VolumeProjection{Secret: s.Secret, ConfigMap: s.ConfigMap, DownwardAPI: s.DownwardAPI})
	}
	return source
}
