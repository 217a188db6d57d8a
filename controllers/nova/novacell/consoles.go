package novacell

import (
	"context"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// hasProxy reports whether the cell runs a console proxy of whom computes know.
func (s *scope) hasProxy() bool {
	replicas := s.cell.Spec.NoVNCProxyServiceTemplate.Replicas
	return s.cell.Spec.NoVNCProxyBaseURL != "" && replicas != nil && *replicas > 0 && s.withoutConductor() == ""
}

// hasConsoleCA reports whether the cell has an authority of consoles. One that has had it keeps it:
// so do its hosts.
func (s *scope) hasConsoleCA() bool { return s.hasProxy() || s.cell.Status.ConsoleCA != nil }

// consoleCA is the phase that provides the authority of consoles, and the certificate of the
// console proxy. A lost authority is made again: computes get what it signs like anything else.
func (s *scope) consoleCA(ctx context.Context) error {
	const ready = novav1.ConsoleCAReadyCondition
	name := novav1.ConsoleCASecretName(s.cell.Name)
	data, err := s.ownCA(ctx, ready, name, "consoles of ")
	if err != nil {
		return inputs.Halt(ready, err)
	}
	now, id := time.Now(), string(s.cell.UID)
	authority, err := certificates.Parse(data, now)
	if err != nil {
		return phase.Stalled(ready, novav1.ConsoleCAInvalidReason, "Secret %s: %v: restore it, or delete it to have another authority made", name, err)
	}
	if s.proxyCertificate, err = authority.ConsoleProxy(id, now); err != nil {
		return err
	}
	phase.Again(ctx, certificates.ConsoleProxyNext(id, now).Sub(now))
	phase.Again(ctx, authority.RenewalAt().Sub(now))
	s.cell.Status.ConsoleCA = statusOf(name, authority)
	s.cell.Status.Conditions.MarkTrue(ready, "Secret %s signs the certificates of the console proxy and of consoles on hosts until %s", name, authority.NotAfter().UTC().Format(time.RFC3339))
	return nil
}

// awaitCertificate keeps the console proxy that runs until another one could reach hosts whose
// consoles it needs a certificate for.
func (s *scope) awaitCertificate() error {
	if s.proxyCertificate != nil || s.cell.Status.ConsoleCA == nil || !s.hasProxy() {
		return nil
	}
	return phase.Waiting(condition.ServiceConfigReadyCondition, novav1.ConsoleCANotReadyReason,
		"Waiting for the certificate of the console proxy: see condition %s", novav1.ConsoleCAReadyCondition)
}
