package migration

import (
	"fmt"
	"maps"
	"slices"
	"time"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
)

// uses of the authority of QEMU, in the order in which hosts come to them.
var uses = []novav1.QEMUAuthority{"", novav1.QEMUAuthorityPending, novav1.QEMUAuthorityTrusted, novav1.QEMUAuthoritySigning, novav1.QEMUAuthorityOnly}

// reached reports whether a use of the authority is the given one, or comes after it.
func reached(use, given novav1.QEMUAuthority) bool {
	return slices.Index(uses, use) >= slices.Index(uses, given)
}

// certificates are those of libvirt and QEMU on the host. A host that an earlier version has deployed
// keeps the one certificate of both until a person has its steps run again, or gives others.
func (m *Migration) certificates(authority *certificates.Authority, compute certificates.Compute, now time.Time) (map[string][]byte, error) {
	live := m.compute.Status.LiveMigration
	if live.QEMUAuthority == "" && m.isEarlier() && m.given == nil {
		return authority.Shared(compute, now)
	}
	if live.QEMUAuthority == "" {
		live.QEMUAuthority = novav1.QEMUAuthorityPending
	}
	ofLibvirt, err := m.ofLibvirt(authority, compute, now)
	if err != nil {
		return nil, err
	}
	files, err := authority.QEMU(compute, m.qemu, now)
	maps.Copy(files, ofLibvirt)
	return files, err
}

// refusesShared reports whether libvirt on the host lets in only those who have a certificate with
// a name of libvirt: all computes of the cell have one.
func (m *Migration) refusesShared() bool {
	return m.compute.Status.LiveMigration.QEMUAuthority != "" && reached(m.qemu, novav1.QEMUAuthoritySigning)
}

// noteAuthority notes what the authority of QEMU is used for on the host, once the step has run.
func (m *Migration) noteAuthority() {
	live := m.compute.Status.LiveMigration
	if live.QEMUAuthority != "" && m.qemu != "" && m.files != nil && m.compute.Status.Hash[certificateStep.Name] == m.certificateHash {
		live.QEMUAuthority = m.qemu
	}
}

// shared is that QEMU on the host has the certificate of libvirt; empty if it does not.
func (m *Migration) shared() string {
	if m.compute.Status.LiveMigration.QEMUAuthority != "" {
		return ""
	}
	return fmt.Sprintf(". QEMU has the key of libvirt, by which a guest that breaks out of it could connect to libvirt of other computes: the host was deployed by an earlier version of the operators. kubectl edpm rerun %s gives QEMU one of its own", m.compute.Spec.DataplaneNodeName)
}

// Advance says in the status of a cell what the authority of QEMU is used for: what all computes
// have come to, and then what comes next. It returns how many are not there yet.
func Advance(cell *novav1.NovaCell, computes []novav1.NovaExternalCompute) (behind int) {
	use := &cell.Status.QEMUAuthority
	if *use == "" {
		*use = novav1.QEMUAuthorityTrusted
	}
	for {
		if behind = countBehind(*use, computes); behind > 0 || *use == novav1.QEMUAuthorityOnly {
			return behind
		}
		*use = uses[slices.Index(uses, *use)+1]
	}
}

// countBehind returns how many computes have certificates, and have not come to a use of the
// authority of QEMU.
func countBehind(use novav1.QEMUAuthority, computes []novav1.NovaExternalCompute) int {
	count := 0
	for i := range computes {
		if c := &computes[i]; hasCertificate(c) && !reached(authorityOf(c), use) {
			count++
		}
	}
	return count
}

// hasCertificate reports whether the host of a compute may have a certificate, whatever became of
// the run that brought it.
func hasCertificate(compute *novav1.NovaExternalCompute) bool {
	_, hasRun := compute.Status.Runs[certificateStep.Name]
	return hasRun && addressOf(compute) != ""
}

// authorityOf is what the authority of QEMU is used for on the host of a compute.
func authorityOf(compute *novav1.NovaExternalCompute) novav1.QEMUAuthority {
	if live := compute.Status.LiveMigration; live != nil {
		return live.QEMUAuthority
	}
	return ""
}
