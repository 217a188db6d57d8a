// Package migration has computes move guests to one another: over TLS, by certificates that
// only computes of the cell have, and through a firewall that is open for these only.
package migration

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/login"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// Steps of a compute: the certificate, which libvirt needs before it listens, and once
// everything runs, the firewall and whether the others can be reached.
var (
	certificateStep = edpm.Step{Name: "libvirt-tls", Playbook: "edpm.operators.libvirt_tls"}
	peersStep       = edpm.Step{Name: "live-migration", Playbook: "edpm.operators.live_migration"}
)

// libvirtStep is the step that restarts what listens.
const libvirtStep = "libvirt"

// Migration is one compute in the live migrations of its cell, in one reconciliation.
type Migration struct {
	*hosted.Scope
	compute *novav1.NovaExternalCompute
	network string
	address netip.Addr
	// files of the certificate, nil if none can be made.
	files map[string][]byte
	// peers are all computes of the cell, the compute among them, isSettled reports whether the cell
	// has settled on those that have an address, and othersJoin whether it waits for other computes
	// before it does.
	peers                 *peers
	isSettled, othersJoin bool
	// keys by which disks are copied, nil if there are none, and whether others are about to
	// take their place.
	keys       *login.Keys
	keysChange bool
	// hasConsoles reports whether the cell has an authority of consoles.
	hasConsoles bool
	// given is how people name the Secret with the certificate of libvirt, nil if they give none. certified is
	// what it has, and secretName its name, or problem says why it cannot be used.
	given      *novav1.MigrationCertificates
	certified  *certificates.Given
	secretName string
	problem    *phase.Halt
	// qemu is what the authority of QEMU is used for in the cell.
	qemu novav1.QEMUAuthority
	// certificateHash is what the step of the certificate brings the host to.
	certificateHash string
	// configured is a digest of what the steps before the last bring the host to.
	configured []string
}

// New returns the part of the compute of a scope in live migrations.
func New(s *hosted.Scope, cells *Cells) *Migration {
	compute := s.Object.(*novav1.NovaExternalCompute)
	return &Migration{Scope: s, compute: compute, peers: cells.peersOf(compute)}
}

// Prepare is the phase that finds out what the steps need. What is missing shows in Ready,
// and keeps nothing else from being deployed; but a host whose libvirt has never had a
// certificate waits until there is one.
func (m *Migration) Prepare(ctx context.Context, cell *novav1.NovaCell) error {
	m.network, m.given = cell.Spec.MigrationNetwork, cell.Spec.MigrationCertificates
	m.hasConsoles, m.qemu = cell.Status.ConsoleCA != nil, cell.Status.QEMUAuthority
	m.prepareDisks()
	status := &m.compute.Status
	switch {
	case status.LiveMigration != nil:
	case m.isEarlier():
		return nil
	default:
		status.LiveMigration = &novav1.LiveMigrationStatus{}
	}
	status.LiveMigration.Address = ""
	if m.address = addressIn(m.Vars, m.network); !m.address.IsValid() {
		return nil
	}
	status.LiveMigration.Address = m.address.String()
	if err := m.sign(ctx, cell); err != nil {
		return err
	}
	if m.files == nil && status.Hash[certificateStep.Name] == "" {
		return m.await()
	}
	if err := m.readKeys(ctx, cell); err != nil {
		return err
	}
	m.isSettled, m.othersJoin = m.peers.settled(m.compute, cell.Status.MigrationPeers)
	return nil
}

// await has the host wait for its first certificate.
func (m *Migration) await() error {
	if m.problem != nil {
		return phase.Waiting(novav1.NovaCellReadyCondition, novav1.CellNotReadyReason, "Waiting for the certificate of the host for live migration: %s", m.problem.Message)
	}
	return phase.Waiting(novav1.NovaCellReadyCondition, novav1.CellNotReadyReason,
		"Waiting until NovaCell %s can sign the certificate of the host for live migration: see its %s", m.compute.Spec.CellName, m.signers())
}

// isEarlier reports whether a version without live migration has deployed the host, and no one
// has asked for another run since: nothing is run on it only because the operators are newer.
func (m *Migration) isEarlier() bool {
	return m.compute.Status.Hash[novav1.NovaStep] != "" && !m.IsRerunDue(novav1.NovaStep)
}

// addressIn returns the address of a host in a network, or else that by which Ansible
// reaches it; not a valid one if it has none.
func addressIn(vars map[string]any, network string) netip.Addr {
	name := "ansible_host"
	if network != "" {
		name = strings.ToLower(network) + "_ip"
	}
	text, _ := vars[name].(string)
	address, err := netip.ParseAddr(text)
	if err != nil || !address.IsGlobalUnicast() || address.Zone() != "" {
		return netip.Addr{}
	}
	return address.Unmap()
}

// OfCell is what computes read of the live migrations of a cell.
func OfCell(cell client.Object) string {
	status, given := cell.(*novav1.NovaCell).Status, ptr.Deref(cell.(*novav1.NovaCell).Spec.MigrationCertificates, novav1.MigrationCertificates{})
	ready := status.Conditions.IsTrue(novav1.MigrationCAReadyCondition)
	ca, consoles := ptr.Deref(status.MigrationCA, novav1.AuthorityStatus{}), ptr.Deref(status.ConsoleCA, novav1.AuthorityStatus{})
	key := ptr.Deref(status.MigrationKey, novav1.MigrationKeyStatus{})
	return fmt.Sprintf("%s %s %t %s %s %s %s %s", ca.SecretName, ca.Hash, ready, status.MigrationPeers, key, consoles.Hash, status.QEMUAuthority, given)
}

// sign has the authority of the cell sign the certificate, if it can be used.
func (m *Migration) sign(ctx context.Context, cell *novav1.NovaCell) error {
	if cell.Status.MigrationCA == nil || !cell.Status.Conditions.IsTrue(novav1.MigrationCAReadyCondition) {
		return nil
	}
	data, err := m.Inputs.Secret(ctx, cell.Namespace, cell.Status.MigrationCA.SecretName)
	if err != nil {
		return inputs.Halt(novav1.NovaCellReadyCondition, err)
	}
	now := m.Engine.Clock.Now()
	authority, err := certificates.Parse(data, now)
	if err != nil {
		return nil //nolint:nilerr // the cell is about to say so
	}
	name, _ := m.Vars["canonical_hostname"].(string)
	compute := certificates.Compute{ID: string(m.compute.UID), Name: name, Address: m.address, Cell: cellOf(m.compute).String()}
	phase.Again(ctx, compute.Next(now).Sub(now))
	if err := m.readGiven(ctx, compute, now); err != nil || m.problem != nil {
		return err
	}
	if m.files, err = m.certificates(authority, compute, now); err != nil {
		return err
	}
	return m.signConsoles(ctx, cell, compute)
}

// Join is the phase that waits, before a host is deployed for the first time, until the cell
// has taken note of its address and key, so that one run does all steps. It does not wait for
// the runs of other computes.
func (m *Migration) Join(context.Context) error {
	if m.files == nil || m.isSettled || m.othersJoin || m.compute.Status.Hash[novav1.NovaStep] != "" {
		return nil
	}
	return phase.Waiting(novav1.NovaCellReadyCondition, novav1.CellNotReadyReason,
		"Waiting until NovaCell %s has taken note of the host among the computes that move guests to one another", m.compute.Spec.CellName)
}

// Steps returns the steps of the service with those that live migration needs before and
// after them.
func (m *Migration) Steps(service ...hosted.Step) []hosted.Step {
	possible := func() bool { return m.files != nil }
	settled := func() bool { return possible() && m.isSettled && !m.keysChange }
	return slices.Concat(
		[]hosted.Step{{Step: certificateStep, Complete: m.certificate, Optional: true, Applies: possible}}, service,
		[]hosted.Step{{Step: peersStep, Complete: m.firewall, Optional: true, Applies: settled}})
}

// Configure gives a step of the service what libvirt and nova need for live migration.
func (m *Migration) Configure(t *edpm.Target) {
	if m.address.IsValid() {
		t.Vars["edpm_migration_address"] = m.address.String()
	}
	if t.Step.Name == libvirtStep {
		m.configureLibvirt(t)
	}
	if t.Step.Name == novav1.NovaStep && m.compute.Status.ColdMigration != nil {
		t.Vars["edpm_migration_ssh_port"] = login.Port
	}
}

// configureLibvirt says whom libvirt lets in, and has consoles encrypted.
func (m *Migration) configureLibvirt(t *edpm.Target) {
	if m.address.IsValid() && m.compute.Status.ConsoleTLS {
		t.Vars["edpm_libvirt_console_tls"] = true
	}
	if m.address.IsValid() && m.clients() != "" {
		t.Vars["edpm_libvirt_tls_clients"] = m.clients()
	}
	m.configured = append(m.configured, t.Hash()) // others connect to libvirt only
}

func (m *Migration) certificate(t *edpm.Target) {
	t.Vars["edpm_libvirt_image"] = m.compute.Status.Images[novav1.LibvirtComponent]
	t.Files = m.files
	m.certificateHash = t.Hash()
	m.configured = append(m.configured, m.certificateHash)
}

// firewall completes the step that lets the others in, and reaches for them.
func (m *Migration) firewall(t *edpm.Target) {
	t.Vars["edpm_migration_address"] = m.address.String()
	// It looks again when something was changed that others connect to. Peers are in the hash by
	// their digest, as there may be thousands.
	t.Vars["edpm_migration_configured"] = inputs.Digest(map[string][]byte{"steps": []byte(strings.Join(m.configured, " ")), "peers": []byte(m.peers.digestOfAddresses())})
	t.Hints = map[string]any{"edpm_migration_running": running{m.peers}, "edpm_migration_peers": addressesByName{m.peers}}
	if m.copiesDisks() {
		m.disks(t)
	}
	m.reachAgain(t)
}

// ended is when the last run of a step ended that is recorded.
func ended(compute *novav1.NovaExternalCompute, step string) time.Time {
	if end := compute.Status.Runs[step].End; end != nil {
		return end.Time
	}
	return time.Time{}
}

// listensSince is when the last run ended that may have changed what others connect to.
func listensSince(compute *novav1.NovaExternalCompute) time.Time {
	tls, libvirt := ended(compute, certificateStep.Name), ended(compute, libvirtStep)
	if tls.After(libvirt) {
		return tls
	}
	return libvirt
}
