package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NovaStep is the step of a compute on a host that runs nova-compute.
const NovaStep = "nova"

// DrainStatus is a drain that the operators asked for.
type DrainStatus struct {
	// Step that needs the host empty; absent for one of the node.
	// +optional
	Step string `json:"step,omitempty"`
	// Role of the node when its turn came: maxUnavailable hosts of a role are drained at a time.
	Role string `json:"role,omitempty"`
	// Since when guests are moved off the host.
	Since metav1.Time `json:"since"`
}

// GuestsStatus is how many guests nova has on a host, as it said last.
type GuestsStatus struct {
	// Total is how many are on the host.
	Total int32 `json:"total"`
	// Moving is how many are being moved, or shut down; those on their way to the host are among them.
	// +optional
	Moving int32 `json:"moving,omitempty"`
	// Waiting is how many wait for their turn.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
	// Remaining is how many cannot be moved, as the condition says that has the reason GuestsRemain.
	// +optional
	Remaining int32 `json:"remaining,omitempty"`
	// ShutOff is how many are shut off, and stay on the host.
	// +optional
	ShutOff int32 `json:"shutOff,omitempty"`
}

// FenceStatus is what is known of a host that is off, or was.
type FenceStatus struct {
	// By is who says that the host is off.
	By string `json:"by"`
	// Since when that is known. The steps of the compute are run once more after it.
	Since metav1.Time `json:"since"`
	// Ended reports whether no one says so any more: the host returns.
	// +optional
	Ended bool `json:"ended,omitempty"`
}

// ComputeServiceStatus is a service nova-compute as nova's API shows it.
type ComputeServiceStatus struct {
	// ID of the service in nova.
	ID string `json:"id"`

	// Host is the name of the host in nova.
	Host string `json:"host"`

	// ComputeID is the id of the compute node of the host, by which placement knows it too. A
	// machine that replaces the present one gets it.
	// +optional
	ComputeID string `json:"computeID,omitempty"`

	// Up reports whether nova considers the service to be alive.
	Up bool `json:"up"`

	// RestartedAt is when the step nova ended that may have restarted the service, as long as
	// the service has not reported since.
	// +optional
	RestartedAt *metav1.Time `json:"restartedAt,omitempty"`

	// DownSince is when the service reported last. Absent while it is up.
	// +optional
	DownSince *metav1.Time `json:"downSince,omitempty"`

	// ForcedDown reports whether the service is forced down: nova treats its host as dead.
	// +optional
	ForcedDown bool `json:"forcedDown,omitempty"`

	// Mapped reports whether the host is mapped to its cell, without which nova
	// puts no guest there.
	Mapped bool `json:"mapped"`

	// Duplicated reports whether nova has a service of the same host in another cell.
	// +optional
	Duplicated bool `json:"duplicated,omitempty"`

	// Disabled reports whether the scheduler passes the host over.
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// DisabledReason is why, as nova has it.
	// +optional
	DisabledReason string `json:"disabledReason,omitempty"`

	// DisabledFor is the reason with which the operator has disabled the service, for
	// the annotation of the node. It enables nothing that another user has disabled.
	// +optional
	DisabledFor string `json:"disabledFor,omitempty"`
}
