package openstackansibleee

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// ownInputs reports whether the inputs were made for this run alone, by the
// execution engine. Those that a person named are left as they are: else who may
// make a run could have any Secret deleted, by giving the run its name.
func (s *scope) ownInputs() bool {
	return len(s.run.Spec.Targets) > 0 && s.run.Spec.InputsSecretName == s.run.Name
}

// adoptInputs lets the Secret with the inputs be deleted with the run. The test in
// the patch leaves a Secret alone that the execution engine did not make.
func (s *scope) adoptInputs(ctx context.Context) error {
	if !s.ownInputs() {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.run.Namespace, Name: s.run.Spec.InputsSecretName}}
	if err := controllerutil.SetOwnerReference(s.run, secret, s.Scheme()); err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/labels/" + strings.ReplaceAll(common.RunInputsLabel, "/", "~1"), "value": "true"},
		{"op": "add", "path": "/metadata/ownerReferences", "value": secret.OwnerReferences},
	})
	if err != nil {
		return err
	}
	err = s.Patch(ctx, secret, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case apierrors.IsNotFound(err):
		s.fail() // nobody creates it again for this run
		return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.InvalidSpecReason, "Secret %s with the inputs of the run does not exist", s.run.Spec.InputsSecretName)
	case apierrors.IsInvalid(err):
		s.fail()
		return apply.Halt(ansibleeev1.JobReadyCondition, &apply.ConflictError{Kind: "Secret", Name: s.run.Spec.InputsSecretName, For: "OpenStackAnsibleEE/" + s.run.Name})
	}
	return err
}

// dropInputs deletes inputs that have served: they hold passwords. A Secret of
// the name that the execution engine did not make is left alone.
func (s *scope) dropInputs(ctx context.Context) error {
	if !s.ownInputs() {
		return nil
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.run.Namespace, Name: s.run.Spec.InputsSecretName}, secret)
	if err == nil && secret.Labels[common.RunInputsLabel] == "true" {
		err = s.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	}
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting the inputs of the run: %w", err)
	}
	return nil
}
