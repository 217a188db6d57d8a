package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// readGiven reads the certificate of libvirt that the cell has people give for the host, if it does. What
// is wrong with it shows in LiveMigrationReady, and what is on the host stays.
func (m *Migration) readGiven(ctx context.Context, compute certificates.Compute, now time.Time) error {
	if m.given == nil {
		return nil
	}
	const ready = novav1.LiveMigrationReadyCondition
	name := m.given.SecretOf(m.compute.Spec.DataplaneNodeName)
	data, err := m.Inputs.Secret(ctx, m.compute.Namespace, name)
	if err != nil {
		return m.withoutGiven(inputs.Halt(ready, err))
	}
	given, err := certificates.ParseGiven(data, compute, now)
	if err != nil {
		return m.withoutGiven(phase.Failing(ready, novav1.MigrationCertificateInvalidReason,
			"Secret %s, which spec.migrationCertificates of NovaCell %s names for the host: %v", name, m.compute.Spec.CellName, err))
	}
	m.certified, m.secretName = given, name
	for _, at := range []time.Time{given.EndsSoon(), given.NotAfter()} {
		if at.After(now) {
			phase.Again(ctx, at.Sub(now)+time.Second)
		}
	}
	return nil
}

// withoutGiven keeps what there is to say of a certificate that cannot be used. Other errors are returned.
func (m *Migration) withoutGiven(err error) error {
	if errors.As(err, &m.problem) {
		return nil
	}
	return err
}

// ofLibvirt are the files of libvirt on the host.
func (m *Migration) ofLibvirt(authority *certificates.Authority, compute certificates.Compute, now time.Time) (map[string][]byte, error) {
	if m.certified != nil {
		return m.certified.Files(), nil
	}
	return authority.Libvirt(compute, now)
}

// clients is the pattern of the names that libvirt on the host lets in; empty for all that its authorities
// have signed.
func (m *Migration) clients() string {
	switch {
	case m.given != nil:
		return m.given.AllowedNames
	case m.refusesShared():
		return certificates.LibvirtNames(cellOf(m.compute).String())
	}
	return ""
}

// ends is that the certificate which is given for the host ends soon, nil if it does not.
func (m *Migration) ends() error {
	if m.certified == nil || m.Engine.Clock.Now().Before(m.certified.EndsSoon()) {
		return nil
	}
	return phase.Failing(novav1.LiveMigrationReadyCondition, novav1.MigrationCertificateEndsReason,
		"The certificate in Secret %s is valid until %s and has not been renewed: renew it, or guests can no longer be moved from and to the host then", m.secretName, m.certified.NotAfter().UTC().Format(time.RFC3339))
}

// validUntil is until when the certificate is valid that is given for the host; empty if none is.
func (m *Migration) validUntil() string {
	if m.certified == nil {
		return ""
	}
	return fmt.Sprintf(". The certificate in Secret %s is valid until %s", m.secretName, m.certified.NotAfter().UTC().Format(time.RFC3339))
}

// Certified returns a function from a Secret to the computes whose certificate of libvirt it may have.
func Certified(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []reconcile.Request {
		cells := &novav1.NovaCellList{}
		if c.List(ctx, cells, client.InNamespace(secret.GetNamespace()), client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		var requests []reconcile.Request
		for i := range cells.Items {
			if given := cells.Items[i].Spec.MigrationCertificates; given != nil {
				requests = append(requests, certifiedIn(ctx, c, &cells.Items[i], secret.GetName())...)
			}
		}
		return requests
	}
}

// certifiedIn are the computes of a cell for which a Secret is named.
func certifiedIn(ctx context.Context, c client.Reader, cell *novav1.NovaCell, secret string) []reconcile.Request {
	computes := &novav1.NovaExternalComputeList{}
	if c.List(ctx, computes, client.InNamespace(cell.Namespace), client.MatchingFields{"spec.cellName": cell.Name}, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range computes.Items {
		if name := computes.Items[i].Name; cell.Spec.MigrationCertificates.SecretOf(name) == secret {
			requests = append(requests, watch.Request(cell.Namespace, name))
		}
	}
	return requests
}
