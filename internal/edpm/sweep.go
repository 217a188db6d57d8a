package edpm

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// sweeper removes, once after a start, inputs whose run was never created
// because the manager died in between. It looks in the namespaces of owners: the
// manager need not have a right on the Secrets of others.
type sweeper struct {
	runs   runStore
	owners owners
	clock  clock.PassiveClock
}

// sweepAge spares inputs whose run may be about to be created.
const sweepAge = 10 * time.Minute

// NeedLeaderElection is true: only the leader creates runs.
func (sweeper) NeedLeaderElection() bool { return true }

// Start sweeps and returns.
func (s sweeper) Start(ctx context.Context) error {
	namespaces, err := s.owners.namespaces(ctx)
	if err != nil {
		return err
	}
	for namespace := range namespaces {
		if err := s.sweepNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

func (s sweeper) sweepNamespace(ctx context.Context, namespace string) error {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := s.runs.live.List(ctx, secrets, client.InNamespace(namespace), client.HasLabels{common.RunInputsLabel})
	if apierrors.IsForbidden(err) {
		return nil // the owners say so in their conditions
	}
	if err != nil {
		return fmt.Errorf("listing the inputs of runs in namespace %s: %w", namespace, err)
	}
	for i := range secrets.Items {
		if err := s.sweep(ctx, &secrets.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s sweeper) sweep(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	if s.clock.Since(secret.CreationTimestamp.Time) < sweepAge {
		return nil
	}
	err := s.runs.live.Get(ctx, client.ObjectKeyFromObject(secret), &ansibleeev1.OpenStackAnsibleEE{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	return client.IgnoreNotFound(s.runs.client.Delete(ctx, secret))
}
