package migration

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/login"
)

// prepareDisks notes by which key other computes know the host, if disks of guests are copied
// from and to it.
func (m *Migration) prepareDisks() {
	status := &m.compute.Status
	if status.ColdMigration == nil && m.isEarlier() {
		return
	}
	if status.ColdMigration == nil {
		status.ColdMigration = &novav1.ColdMigrationStatus{}
	}
	if m.Node != nil {
		status.ColdMigration.HostKey = dataplane.HostKey(m.Node)
	}
}

// readKeys reads the keys by which disks are copied, if the cell has any. A host keeps those that
// it has while the cell has not noted what its Secret holds.
func (m *Migration) readKeys(ctx context.Context, cell *novav1.NovaCell) error {
	noted := cell.Status.MigrationKey
	if m.compute.Status.ColdMigration == nil || noted == nil {
		return nil
	}
	secret, err := m.Inputs.Generated(ctx, cell.Namespace, noted.SecretName)
	if err != nil {
		return inputs.Halt(novav1.NovaCellReadyCondition, err)
	}
	m.keysChange = true
	if secret == nil {
		return nil
	}
	keys, err := login.Parse(secret.Data)
	if err == nil && keys.Fingerprint() == noted.Fingerprint && keys.Previous() == noted.Previous {
		m.keys, m.keysChange = keys, false
	}
	return nil
}

// copiesDisks reports whether all is there that it takes to copy disks.
func (m *Migration) copiesDisks() bool {
	return m.keys != nil && hostKeyOf(m.compute) != ""
}

// disks completes the step that lets the others in for what it takes to copy disks.
func (m *Migration) disks(t *edpm.Target) {
	t.Vars["edpm_migration_ssh_port"] = login.Port
	t.Vars["edpm_nova_compute_image"] = m.compute.Status.Images[novav1.ComputeComponent]
	t.Files = m.keys.Private()
	maps.Copy(t.Files, m.peers.files(m.keys))
}

// noteKey notes which key the host has, once the steps have run.
func (m *Migration) noteKey() {
	if m.copiesDisks() {
		m.compute.Status.ColdMigration.KeyFingerprint = m.keys.Fingerprint()
	}
}

// notCopied is why disks are not copied to or from other computes, or to how many of how many they
// are; empty if they are copied to all.
func (m *Migration) notCopied(of, copying int) string {
	const not = ". Cold migration and resize to other hosts are not configured: "
	switch why := WhyNotCopied(m.compute); {
	case why != "":
		return not + why
	case m.keys == nil:
		return fmt.Sprintf(not+"see condition %s of NovaCell %s", novav1.MigrationKeyReadyCondition, m.compute.Spec.CellName)
	case copying < of:
		return fmt.Sprintf(". Cold migration and resize are configured on %d of them only", copying)
	}
	return ""
}

// WhyNotCopied returns why disks of guests are not copied from and to the host of a compute, and what
// helps; empty if they are, as far as its status says.
func WhyNotCopied(compute *novav1.NovaExternalCompute) string {
	status, node := &compute.Status, compute.Spec.DataplaneNodeName
	switch {
	case status.ColdMigration == nil:
		return fmt.Sprintf("an earlier version of the operators has deployed the host. kubectl edpm rerun %s configures it", node)
	case hostKeyOf(compute) == "":
		return fmt.Sprintf("the key of the host is not known. Set annotation %s on OpenStackDataPlaneNode %s", common.HostKeyAnnotation, node)
	case !IsConfigured(compute) || status.ColdMigration.KeyFingerprint == "":
		return fmt.Sprintf("step %s has not given the host the key of its cell. See conditions %s of NovaCell %s and %s of NovaExternalCompute %s",
			peersStep.Name, novav1.MigrationKeyReadyCondition, compute.Spec.CellName, novav1.LiveMigrationReadyCondition, compute.Name)
	}
	return ""
}

// WithoutKey returns how many computes have another key than that of the fingerprint.
func WithoutKey(fingerprint string, computes []novav1.NovaExternalCompute) int {
	count := 0
	for i := range computes {
		status := computes[i].Status.ColdMigration
		if status != nil && status.KeyFingerprint != "" && status.KeyFingerprint != fingerprint {
			count++
		}
	}
	return count
}

// hostKeyOf is the key by which others know the host of a compute; empty if no disks are copied to it.
func hostKeyOf(obj client.Object) string {
	if status := obj.(*novav1.NovaExternalCompute).Status.ColdMigration; status != nil {
		return status.HostKey
	}
	return ""
}
