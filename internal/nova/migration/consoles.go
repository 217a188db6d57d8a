package migration

import (
	"context"
	"fmt"
	"maps"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
)

// signConsoles adds the certificate of the consoles on the host, if the cell has an authority for
// it. Without one that it has had, and that cannot be read now, there are no files at all: what is
// on the host stays.
func (m *Migration) signConsoles(ctx context.Context, cell *novav1.NovaCell, compute certificates.Compute) error {
	if !m.compute.Status.ConsoleTLS && (!m.hasConsoles || m.isEarlier()) {
		return nil
	}
	authority, err := m.consoleAuthority(ctx, cell)
	if err != nil {
		return inputs.Halt(novav1.NovaCellReadyCondition, err)
	}
	if authority == nil {
		m.files = nil
		return nil
	}
	files, err := authority.ConsoleHost(compute)
	maps.Copy(m.files, files)
	m.compute.Status.ConsoleTLS = true
	return err
}

// consoleAuthority is the authority that the cell has noted, nil if its Secret has another one, or
// none that can be used.
func (m *Migration) consoleAuthority(ctx context.Context, cell *novav1.NovaCell) (*certificates.Authority, error) {
	noted := cell.Status.ConsoleCA
	if noted == nil {
		return nil, nil
	}
	secret, err := m.Inputs.Generated(ctx, cell.Namespace, noted.SecretName)
	if err != nil || secret == nil {
		return nil, err
	}
	authority, err := certificates.Parse(secret.Data, m.Engine.Clock.Now())
	if err != nil || authority.Hash() != noted.Hash {
		return nil, nil //nolint:nilerr // the cell is about to say so
	}
	return authority, nil
}

// signers are the conditions of the cell about what signs certificates of the host.
func (m *Migration) signers() string {
	if !m.hasConsoles {
		return fmt.Sprintf("condition %s", novav1.MigrationCAReadyCondition)
	}
	return fmt.Sprintf("conditions %s and %s", novav1.MigrationCAReadyCondition, novav1.ConsoleCAReadyCondition)
}

// inClear is that consoles of guests cross the network in clear; empty if they do not, or if the
// cell has no console proxy that could do otherwise.
func (m *Migration) inClear() string {
	if m.compute.Status.ConsoleTLS || !m.hasConsoles {
		return ""
	}
	return fmt.Sprintf(". Consoles cross the network in clear: the host was deployed without certificates for them. kubectl edpm rerun %s configures them", m.compute.Spec.DataplaneNodeName)
}
