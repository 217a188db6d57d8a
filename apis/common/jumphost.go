package common

// JumpHost is an SSH server through which runs reach hosts that the cluster cannot
// connect to.
type JumpHost struct {
	// Address of the jump host as the runner Pods reach it: an IP address or a host name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Address string `json:"address"`

	// Port of its SSH server.
	// +kubebuilder:default=22
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// User that logs in to the jump host. It needs no shell, only TCP forwarding.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	User string `json:"user"`

	// SSHPrivateKeySecret names a Secret whose key ssh-privatekey is the key with which
	// that user logs in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SSHPrivateKeySecret string `json:"sshPrivateKeySecret"`

	// HostKey is the public key of the jump host, as in
	// /etc/ssh/ssh_host_ed25519_key.pub. No other key is accepted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	HostKey string `json:"hostKey"`
}
