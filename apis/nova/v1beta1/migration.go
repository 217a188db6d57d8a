package v1beta1

import "strings"

// LiveMigration is how guests are moved between the computes of a cell.
type LiveMigration struct {
	// MigrationNetwork is the network of nodes whose addresses computes on hosts use for live
	// migration. By default it is the address by which Ansible reaches a host.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	MigrationNetwork string `json:"migrationNetwork,omitempty"`

	// MigrationCASecretName is the Secret with the keys tls.crt and tls.key of an authority
	// that signs the certificates by which computes on hosts know one another in live
	// migrations. It should sign for nothing else. By default the operators make one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	MigrationCASecretName string `json:"migrationCASecretName,omitempty"`

	// MigrationCertificates are certificates of libvirt on each host from elsewhere, for example
	// of cert-manager, in place of those that the authority of the cell signs. It signs those of
	// QEMU still.
	// +optional
	MigrationCertificates *MigrationCertificates `json:"migrationCertificates,omitempty"`
}

// MigrationCertificates are certificates of libvirt that are given for each host.
type MigrationCertificates struct {
	// SecretName is the Secret of a host with its certificate, tls.crt, its key, tls.key, and the
	// authorities that hosts trust, ca.crt. {node} stands for the name of the node:
	// {node}-libvirt.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.replace('{node}', '').matches('^[-.a-z0-9]*$')",message="is no name of a Secret: use lower-case letters, digits, '-' and '.', and {node} for the name of the node, as in {node}-libvirt"
	SecretName string `json:"secretName"`

	// AllowedNames is the pattern of the distinguished names in certificates of the hosts, as
	// virt-pki-query-dn of libvirt prints them, in which * stands for any characters: O=example,CN=*.
	// libvirt lets in no others. Leave it empty only if the authorities sign for nothing else.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-A-Za-z0-9 =,.:/@_+()*?]*$')",message="has characters that cannot be written into the configuration of libvirt: use * or ? in their place, as in O=example,CN=*"
	AllowedNames string `json:"allowedNames,omitempty"`
}

// SecretOf is the name of the Secret of a node.
func (c *MigrationCertificates) SecretOf(node string) string {
	return strings.ReplaceAll(c.SecretName, "{node}", node)
}

// QEMUAuthority is what the authority is used for that signs the certificates of QEMU on hosts, and
// that libvirt does not trust. QEMU on each host has to accept what it has on others at any time: the
// uses follow one another, each once all computes of the cell have come to the one before.
//
// +kubebuilder:validation:Enum=Pending;Trusted;Signing;Only
type QEMUAuthority string

// Uses of the authority of QEMU, in their order.
const (
	// QEMUAuthorityPending : the next run of step libvirt-tls brings it to the host.
	QEMUAuthorityPending QEMUAuthority = "Pending"
	// QEMUAuthorityTrusted : QEMU trusts it, and also the one of libvirt, which signs a
	// certificate of its own for QEMU still.
	QEMUAuthorityTrusted QEMUAuthority = "Trusted"
	// QEMUAuthoritySigning : it signs the certificate of QEMU, which trusts both. From here on
	// libvirt lets in those with a name of libvirt only (tls_allowed_dn_list).
	QEMUAuthoritySigning QEMUAuthority = "Signing"
	// QEMUAuthorityOnly : QEMU trusts no other one.
	QEMUAuthorityOnly QEMUAuthority = "Only"
)

// LiveMigrationStatus is how guests are moved from and to a compute.
type LiveMigrationStatus struct {
	// Address that other computes of the cell connect to; empty if the host has none.
	// +optional
	Address string `json:"address,omitempty"`
	// UnreachablePeers are the computes, itself included, that the host did not reach when
	// step live-migration ran last, as the host says.
	// +optional
	// +listType=atomic
	UnreachablePeers []string `json:"unreachablePeers,omitempty"`
	// QEMUAuthority is what the authority of QEMU is used for on the host. Absent where a version
	// of the operators has deployed the host that gave libvirt and QEMU one certificate.
	// +optional
	QEMUAuthority QEMUAuthority `json:"qemuAuthority,omitempty"`
}

// ColdMigrationStatus is how disks of guests are copied from and to a compute.
type ColdMigrationStatus struct {
	// HostKey by which other computes know the host; empty if it is not known.
	// +optional
	HostKey string `json:"hostKey,omitempty"`
	// KeyFingerprint is that of the key of the cell which step live-migration gave the host last.
	// +optional
	KeyFingerprint string `json:"keyFingerprint,omitempty"`
}

// MigrationKeyStatus is a key of ssh that computes have.
type MigrationKeyStatus struct {
	// SecretName of its Secret.
	SecretName string `json:"secretName"`
	// Fingerprint of the key.
	Fingerprint string `json:"fingerprint"`
	// Previous is the fingerprint of the key before, which is accepted until all computes have
	// this one.
	// +optional
	Previous string `json:"previous,omitempty"`
}
