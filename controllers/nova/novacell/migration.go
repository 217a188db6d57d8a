package novacell

import (
	"context"
	"fmt"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/login"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes,verbs=list;watch

// migrationCA is the phase that provides the authority which signs the certificates of
// computes for live migration.
func (s *scope) migrationCA(ctx context.Context) error {
	const ready = novav1.MigrationCAReadyCondition
	name, given := s.cell.Spec.MigrationCASecretName, s.cell.Spec.MigrationCASecretName != ""
	var data map[string][]byte
	var err error
	if given {
		data, err = s.Inputs.Secret(ctx, s.cell.Namespace, name)
	} else {
		name = novav1.MigrationCASecretName(s.cell.Name)
		data, err = s.ownCA(ctx, ready, name, "")
	}
	if err != nil {
		return inputs.Halt(ready, err)
	}
	authority, err := certificates.Parse(data, time.Now())
	if err != nil {
		return phase.Stalled(ready, novav1.MigrationCAInvalidReason, "Secret %s: %v: correct it", name, err)
	}
	if !given {
		phase.Again(ctx, time.Until(authority.RenewalAt()))
	}
	s.cell.Status.MigrationCA = statusOf(name, authority)
	s.cell.Status.Conditions.MarkTrue(ready, "Secret %s signs the certificates of computes until %s%s", name, authority.NotAfter().UTC().Format(time.RFC3339), s.separating())
	return nil
}

// separating is what to know as long as computes are on their way to certificates of QEMU that
// libvirt lets no one in with.
func (s *scope) separating() string {
	behind := migration.Advance(s.cell, s.computes)
	if behind == 0 {
		return ""
	}
	remedy := ""
	if s.cell.Status.QEMUAuthority == novav1.QEMUAuthorityTrusted { // later none is left
		remedy = fmt.Sprintf(": kubectl edpm rerun <node> for those whose %s says that QEMU has the key of libvirt", novav1.LiveMigrationReadyCondition)
	}
	return fmt.Sprintf("; QEMU gets certificates of an authority of its own, and %d computes have not reached %s (status.qemuAuthority)%s", behind, s.cell.Status.QEMUAuthority, remedy)
}

// statusOf is what the cell notes of an authority.
func statusOf(name string, authority *certificates.Authority) *novav1.AuthorityStatus {
	return &novav1.AuthorityStatus{SecretName: name, NotAfter: metav1.NewTime(authority.NotAfter()), Hash: authority.Hash()}
}

// ownCA returns the Secret of an authority that the operators keep for the cell. It is made
// once, and renewed before it ends. That of live migration is not replaced while computes have
// certificates of it.
func (s *scope) ownCA(ctx context.Context, ready condition.Type, name, purpose string) (map[string][]byte, error) {
	present, err := s.Inputs.Generated(ctx, s.cell.Namespace, name)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.cell.Namespace, Name: name}}
	if present == nil {
		if err := s.lostCA(ctx, name); err != nil {
			return nil, err
		}
		secret.Data, err = certificates.NewAuthority(purpose+"NovaCell "+s.cell.Name+" in "+s.cell.Namespace, time.Now())
	} else if secret.Data, err = certificates.Renew(present.Data, time.Now()); err != nil {
		secret.Data, err = present.Data, nil // the caller finds the same, if it is ours
	}
	if err != nil {
		return nil, err
	}
	err = apply.Secret(ctx, s.Client, fieldManager, s.cell, secret, present, apply.Own)
	return secret.Data, apply.Halt(ready, err)
}

// lostCA returns why a Secret that does not exist is not made again, nil if it is.
func (s *scope) lostCA(ctx context.Context, name string) error {
	if used := s.cell.Status.MigrationCA; used == nil || used.SecretName != name {
		return nil
	}
	computes := &novav1.NovaExternalComputeList{}
	err := s.List(ctx, computes, client.InNamespace(s.cell.Namespace), client.MatchingFields{"spec.cellName": s.cell.Name}, client.Limit(1))
	if err != nil || len(computes.Items) == 0 {
		return err
	}
	return phase.Stalled(novav1.MigrationCAReadyCondition, novav1.MigrationCALostReason,
		"Secret %s no longer exists, by which the computes of the cell know one another in live migrations: restore it from a backup, or name that of another authority in spec.migrationCASecretName", name)
}

// migrationKey is the phase that provides the key by which computes copy disks of guests to one
// another. A lost one is made again: computes get it like any other.
func (s *scope) migrationKey(ctx context.Context) error {
	const ready = novav1.MigrationKeyReadyCondition
	name := novav1.MigrationKeySecretName(s.cell.Name)
	present, err := s.Inputs.Generated(ctx, s.cell.Namespace, name)
	if err != nil {
		return inputs.Halt(ready, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.cell.Namespace, Name: name}}
	if present != nil {
		secret.Data = present.Data
	}
	isEverywhere := func(fingerprint string) bool { return migration.WithoutKey(fingerprint, s.computes) == 0 }
	if secret.Data, err = login.Next(secret.Data, s.cell.Annotations[novav1.RotateMigrationKeyAnnotation], isEverywhere); err != nil {
		return err
	}
	if err := apply.Secret(ctx, s.Client, fieldManager, s.cell, secret, present, apply.Own); err != nil {
		return apply.Halt(ready, err)
	}
	keys, err := login.Parse(secret.Data)
	if err != nil {
		return err
	}
	s.cell.Status.MigrationKey = &novav1.MigrationKeyStatus{SecretName: name, Fingerprint: keys.Fingerprint(), Previous: keys.Previous()}
	s.cell.Status.Conditions.MarkTrue(ready, "Computes copy disks of guests to one another with the key in Secret %s%s", name, s.changing())
	return nil
}

// changing is what to know as long as two keys are accepted.
func (s *scope) changing() string {
	key := s.cell.Status.MigrationKey
	if key.Previous == "" {
		return ""
	}
	return fmt.Sprintf("; the one before, %s, is accepted until all have it, and %d of them do not", key.Previous, migration.WithoutKey(key.Fingerprint, s.computes))
}
