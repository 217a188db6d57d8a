package certificates

import (
	"crypto/x509/pkix"
	"slices"
	"time"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// Files of QEMU on a compute, by the names that roles of the collection know.
const (
	QEMUCertificateFile = "qemu.crt"
	QEMUKeyFile         = "qemu.key"
	QEMUTrustedFile     = "qemu-ca.crt"
)

// QEMU runs as a user whom a guest becomes that breaks out of it, and has to read its own key. libvirt
// lets in as root who has a certificate of an authority that it trusts, whatever that certificate is for. So
// certificates of QEMU are signed by an authority that libvirt does not trust, and libvirt lets in those with
// a name of libvirt only: an authority of people may sign for others, and has signed those of QEMU before.

// Libvirt returns the certificate of libvirt on a compute with its key, and those that it trusts.
func (a *Authority) Libvirt(c Compute, now time.Time) (map[string][]byte, error) {
	certificate, key, err := a.sign(c, "libvirt", nameOf("libvirt", c), now)
	return map[string][]byte{CertificateFile: certificate, KeyFile: key, TrustedFile: a.Trusted()}, err
}

// QEMU returns the certificate of QEMU on a compute with its key, and those that it trusts, by what
// the authority of QEMU is used for on its host.
func (a *Authority) QEMU(c Compute, use novav1.QEMUAuthority, now time.Time) (map[string][]byte, error) {
	own, err := a.further("QEMU", "")
	if err != nil {
		return nil, err
	}
	signing, trusted := a, slices.Concat(own.Trusted(), a.Trusted())
	if use == novav1.QEMUAuthoritySigning || use == novav1.QEMUAuthorityOnly {
		signing = own
	}
	if use == novav1.QEMUAuthorityOnly {
		trusted = own.Trusted()
	}
	certificate, key, err := signing.sign(c, "QEMU", nameOf("QEMU", c), now)
	return map[string][]byte{QEMUCertificateFile: certificate, QEMUKeyFile: key, QEMUTrustedFile: trusted}, err
}

// nameOf is the distinguished name of what a certificate of a compute is for.
func nameOf(what string, c Compute) pkix.Name {
	return pkix.Name{OrganizationalUnit: []string{unit(what, c.Cell)}, CommonName: c.Name}
}

func unit(what, cell string) string { return what + " of " + cell }

// LibvirtNames is the pattern of the names in certificates of Libvirt in a cell, <namespace>/<name>, as
// tls_allowed_dn_list of libvirt has it. It is the same whatever computes there are.
func LibvirtNames(cell string) string { return "OU=" + unit("libvirt", cell) + ",CN=*" }
