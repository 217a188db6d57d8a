package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BareMetalHostCRD is the name of the resource definition that
// baremetal-operator installs.
const BareMetalHostCRD = "baremetalhosts.metal3.io"

// Annotations by which people keep baremetal-operator from a host.
const (
	PausedAnnotation   = "baremetalhost.metal3.io/paused"
	DetachedAnnotation = "baremetalhost.metal3.io/detached"
)

// Marks by which people and other controllers keep hosts from new consumers: those of
// cluster-api-provider-metal3, chooseHost in baremetal/metal3machine_manager.go at commit 2f6d76b8, and
// the annotation, with a key of whoever set it, of hosts that baremetal-operator keeps powered off
// (docs/api.md of baremetal-operator).
const (
	UnhealthyAnnotation       = "capm3.metal3.io/unhealthy"
	FormerUnhealthyAnnotation = "capi.metal3.io/unhealthy"
	NodeReuseLabel            = "infrastructure.cluster.x-k8s.io/node-reuse"
	HeldOffAnnotation         = "reboot.metal3.io/"
)

// ProvisioningState is how far baremetal-operator has come with a host.
type ProvisioningState string

// The states of a host.
const (
	StateNone                  ProvisioningState = ""
	StateUnmanaged             ProvisioningState = "unmanaged"
	StateRegistering           ProvisioningState = "registering"
	StateMatchProfile          ProvisioningState = "match profile"
	StatePreparing             ProvisioningState = "preparing"
	StateReady                 ProvisioningState = "ready" // the former name of available
	StateAvailable             ProvisioningState = "available"
	StateProvisioning          ProvisioningState = "provisioning"
	StateProvisioned           ProvisioningState = "provisioned"
	StateExternallyProvisioned ProvisioningState = "externally provisioned"
	StateDeprovisioning        ProvisioningState = "deprovisioning"
	StateInspecting            ProvisioningState = "inspecting"
	StatePoweringOff           ProvisioningState = "powering off before delete"
	StateDeleting              ProvisioningState = "deleting"
)

// OperationalStatus says whether baremetal-operator can work with a host.
type OperationalStatus string

// Of the operational status what is looked at.
const (
	StatusError    OperationalStatus = "error"
	StatusDetached OperationalStatus = "detached"
)

// Image that is written to a disk of a host.
type Image struct {
	// URL of the image.
	// +kubebuilder:validation:MinLength=1
	URL string `json:"url"`

	// Checksum of the image, or the URL of a file that has it.
	// +optional
	Checksum string `json:"checksum,omitempty"`

	// ChecksumType is the algorithm; auto means by the length of the checksum.
	// +kubebuilder:validation:Enum=md5;sha256;sha512;auto
	// +optional
	ChecksumType string `json:"checksumType,omitempty"`

	// Format of the image.
	// +kubebuilder:validation:Enum=raw;qcow2;vdi;vmdk
	// +optional
	Format string `json:"format,omitempty"`
}

// BareMetalHostSpec is what people, and the consumer of a host, want of it.
type BareMetalHostSpec struct {
	// ConsumerRef is the object that uses the host.
	ConsumerRef *corev1.ObjectReference `json:"consumerRef,omitempty"`
	// Online reports whether the host is wanted to be powered on.
	Online bool `json:"online"`
	// Image to write.
	Image *Image `json:"image,omitempty"`
	// CustomDeploy is another way to deploy than by an image.
	CustomDeploy *CustomDeploy `json:"customDeploy,omitempty"`
	// UserData for cloud-init, key userData of a Secret of the same namespace.
	UserData *corev1.SecretReference `json:"userData,omitempty"`
	// NetworkData for cloud-init, key networkData of a Secret of the same namespace.
	NetworkData *corev1.SecretReference `json:"networkData,omitempty"`
	// ExternallyProvisioned hosts are installed by other means.
	ExternallyProvisioned bool `json:"externallyProvisioned,omitempty"`
	// AutomatedCleaningMode of deprovisioning: metadata or disabled.
	AutomatedCleaningMode string `json:"automatedCleaningMode,omitempty"`
	// RootDeviceHints say to which disk the image is written.
	RootDeviceHints *RootDeviceHints `json:"rootDeviceHints,omitempty"`
	// MetaData of the machine, a Secret.
	MetaData *corev1.SecretReference `json:"metaData,omitempty"`
	// DisablePowerOff reports whether the host is never to be powered off: then
	// baremetal-operator refuses that Online is false.
	DisablePowerOff bool `json:"disablePowerOff,omitempty"`
	// RAID volumes that baremetal-operator makes before the host is available.
	RAID *RAIDConfig `json:"raid,omitempty"`
	// Architecture of the host, when it was not inspected.
	Architecture string `json:"architecture,omitempty"`
	// BootMACAddress of the NIC that boots from the network.
	BootMACAddress string `json:"bootMACAddress,omitempty"`
}

// RootDeviceHints select a disk: it must match all that are set.
type RootDeviceHints struct {
	// DeviceName such as /dev/sda, or one below /dev/disk/by-path.
	// +optional
	DeviceName string `json:"deviceName,omitempty"`
	// HCTL is the SCSI address.
	// +optional
	HCTL string `json:"hctl,omitempty"`
	// Model, or a part of it.
	// +optional
	Model string `json:"model,omitempty"`
	// Vendor, or a part of it.
	// +optional
	Vendor string `json:"vendor,omitempty"`
	// SerialNumber of the disk.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
	// MinSizeGigabytes of the disk, in GiB: a disk that is sold as 480 GB has 447.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSizeGigabytes int `json:"minSizeGigabytes,omitempty"`
	// WWN of the disk.
	// +optional
	WWN string `json:"wwn,omitempty"`
	// WWNWithExtension of the disk.
	// +optional
	WWNWithExtension string `json:"wwnWithExtension,omitempty"`
	// WWNVendorExtension of the disk.
	// +optional
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`
	// Rotational says whether it is one that rotates.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
}

// RAIDConfig is what is looked at of the volumes of a host.
type RAIDConfig struct {
	// +nullable
	HardwareRAIDVolumes []RAIDVolume `json:"hardwareRAIDVolumes,omitempty"`
	// +nullable
	SoftwareRAIDVolumes []RAIDVolume `json:"softwareRAIDVolumes,omitempty"`
}

// RAIDVolume of a host.
type RAIDVolume struct {
	Level string `json:"level"`
	// RootVolume reports whether the image is written to the volume: then there are no
	// RootDeviceHints.
	RootVolume bool `json:"rootVolume,omitempty"`
}

// CustomDeploy of a host.
type CustomDeploy struct {
	// Method by which it is deployed.
	Method string `json:"method"`
}

// BareMetalHostStatus is what baremetal-operator has found and done.
type BareMetalHostStatus struct {
	OperationalStatus OperationalStatus `json:"operationalStatus,omitempty"`
	// ErrorType is the kind of the last error.
	ErrorType string `json:"errorType,omitempty"`
	// ErrorMessage is the last error.
	ErrorMessage string `json:"errorMessage,omitempty"`
	// Hardware that inspection has found.
	Hardware *HardwareDetails `json:"hardware,omitempty"`
	// Provisioning is how far it is.
	Provisioning ProvisionStatus `json:"provisioning,omitzero"`
	// PoweredOn reports whether the host is on.
	PoweredOn bool `json:"poweredOn,omitempty"`
}

// ProvisionStatus of a host.
type ProvisionStatus struct {
	State ProvisioningState `json:"state,omitempty"`
	// Image that was written.
	Image Image `json:"image,omitzero"`
}

// HardwareDetails of a host.
type HardwareDetails struct {
	RAMMebibytes int       `json:"ramMebibytes,omitempty"`
	NICs         []NIC     `json:"nics,omitempty"`
	Storage      []Storage `json:"storage,omitempty"`
	CPU          CPU       `json:"cpu,omitzero"`
}

// CPU of a host.
type CPU struct {
	// Arch such as x86_64.
	Arch string `json:"arch,omitempty"`
	// ClockMegahertz of one core.
	ClockMegahertz float64 `json:"clockMegahertz,omitempty"`
	// Count of the cores.
	Count int `json:"count,omitempty"`
}

// NIC of a host.
type NIC struct {
	// Name of the interface as the inspection saw it.
	Name string `json:"name,omitempty"`
	MAC  string `json:"mac,omitempty"`
	// IP that it had during inspection.
	IP string `json:"ip,omitempty"`
	// PXE reports whether the host boots from it.
	PXE bool `json:"pxe,omitempty"`
}

// Storage is a disk of a host.
type Storage struct {
	Name string `json:"name,omitempty"`
	// AlternateNames are its name, and the link to it below /dev/disk/by-path.
	AlternateNames     []string `json:"alternateNames,omitempty"`
	Rotational         bool     `json:"rotational,omitempty"`
	SizeBytes          int64    `json:"sizeBytes,omitempty"`
	Vendor             string   `json:"vendor,omitempty"`
	Model              string   `json:"model,omitempty"`
	SerialNumber       string   `json:"serialNumber,omitempty"`
	HCTL               string   `json:"hctl,omitempty"`
	WWN                string   `json:"wwn,omitempty"`
	WWNWithExtension   string   `json:"wwnWithExtension,omitempty"`
	WWNVendorExtension string   `json:"wwnVendorExtension,omitempty"`
}

// BareMetalHost is a machine that baremetal-operator can install. Its resource
// definition is Metal3's: none is made of it here.
//
// +kubebuilder:object:root=true
type BareMetalHost struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BareMetalHostSpec   `json:"spec,omitzero"`
	Status BareMetalHostStatus `json:"status,omitzero"`
}

// BareMetalHostList is a list of BareMetalHost.
//
// +kubebuilder:object:root=true
type BareMetalHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BareMetalHost `json:"items"`
}

func init() {
	register(&BareMetalHost{}, &BareMetalHostList{})
}
