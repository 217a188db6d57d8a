package novaexternalcompute

import (
	"context"
	"errors"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inherit"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nodes"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// ensureFinalizer makes sure that a compute cannot go while its services are on
// the host.
func (s *scope) ensureFinalizer(ctx context.Context) error {
	return s.patchFinalizers(ctx, controllerutil.AddFinalizer)
}

func (s *scope) patchFinalizers(ctx context.Context, change func(client.Object, string) bool) error {
	patched := s.compute.DeepCopy()
	if !change(patched, novav1.NovaExternalComputeFinalizer) {
		return nil
	}
	if err := s.Patch(ctx, patched, client.MergeFromWithOptions(s.compute, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the finalizers: %w", err)
	}
	// Not the new resource version: the status write needs no lock.
	s.compute.Finalizers = patched.Finalizers
	return nil
}

// lookUpNode is the phase that finds the node and its role.
func (s *scope) lookUpNode(ctx context.Context) error {
	node, role := &dataplanev1.OpenStackDataPlaneNode{}, &dataplanev1.OpenStackDataPlaneRole{}
	err := s.Get(ctx, types.NamespacedName{Namespace: s.compute.Namespace, Name: s.compute.Spec.DataplaneNodeName}, node)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	s.node = node
	if err := s.Get(ctx, types.NamespacedName{Namespace: node.Namespace, Name: node.Spec.Role}, role); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.role = role
	return nil
}

// recall is the phase that finds out whether the object was restored from a
// backup without its status: then nobody knows whether its services are on the
// host.
func (s *scope) recall(ctx context.Context) error {
	if !s.restored {
		return nil
	}
	live := &novav1.NovaExternalCompute{}
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.compute), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.UID == s.compute.UID && live.Status.ObservedGeneration == 0 {
		s.compute.Status.SetUnknown()
	}
	return nil
}

// readInputs is the phase that reads the inventory and the key.
func (s *scope) readInputs(ctx context.Context) error {
	if s.node == nil {
		return phase.Failing(condition.InputReadyCondition, novav1.NodeMissingReason,
			"spec.dataplaneNodeName: OpenStackDataPlaneNode %q does not exist: create it, or delete this object", s.compute.Spec.DataplaneNodeName)
	}
	if err := s.sameCell(); err != nil {
		return err
	}
	if err := s.access(ctx); err != nil {
		return err
	}
	var section dataplanev1.DeployStrategySection
	if s.role != nil {
		section = s.role.Spec.DeployStrategy
	}
	strategy, err := nodes.Strategy(inherit.Strategy(s.node.Spec.DeployStrategy, section))
	if err != nil {
		return phase.Stalled(condition.InputReadyCondition, novav1.InvalidSpecReason, "deployStrategy of the node: %v", err)
	}
	s.strategy = strategy
	s.strategy.Deploy = ptr.Deref(s.compute.Spec.Deploy, true)
	s.compute.Status.Conditions.MarkTrue(condition.InputReadyCondition, condition.InputReadyMessage)
	return nil
}

// sameCell waits for the node to be in the cell. It is the last line of the rule
// that a compute never changes its cell.
func (s *scope) sameCell() error {
	cell := inherit.Annotation(s.node, s.role, novav1.CellAnnotation)
	switch {
	case cell == s.compute.Spec.CellName, s.role == nil && cell == "": // the node says that it has no role
		return nil
	case cell == "":
		return phase.Waiting(condition.InputReadyCondition, novav1.AnnotationMissingReason,
			"OpenStackDataPlaneNode %s is in no cell: set annotation %s: %q on it or on its role. Nothing is deployed on its host until then", s.node.Name, novav1.CellAnnotation, s.compute.Spec.CellName)
	}
	return phase.Stalled(condition.InputReadyCondition, novav1.CellMismatchReason,
		"spec.cellName is %q, but the annotation of the node or its role is %q: nova cannot move a compute between cells; restore annotation %s, or delete the node and create it again",
		s.compute.Spec.CellName, cell, novav1.CellAnnotation)
}

// access reads how the host is reached: the image and environment of runs, its
// variables and the key.
func (s *scope) access(ctx context.Context) error {
	spec := s.compute.Spec
	if first(spec.AnsibleEEContainerImage, s.Images.NovaAnsibleEE) == "" {
		return phase.Stalled(condition.InputReadyCondition, edpmv1.RunnerImageMissingReason, "%s", images.MissingRunner("spec.ansibleEEContainerImage"))
	}
	for field, value := range map[string]string{"spec.inventoryConfigMapName": spec.InventoryConfigMapName, "spec.sshKeySecretName": spec.SSHKeySecretName} {
		if value == "" {
			return phase.Stalled(condition.InputReadyCondition, novav1.InvalidSpecReason,
				"%s is empty: it is copied from the node; set ansibleSSHPrivateKeySecret on the node or its role", field)
		}
	}
	if err := s.readVars(ctx); err != nil {
		return err
	}
	key, err := s.Inputs.SecretKey(ctx, s.compute.Namespace, spec.SSHKeySecretName, nodes.SSHKeyKey)
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	s.keyHash = inputs.Digest(map[string][]byte{nodes.SSHKeyKey: key})
	s.environment, err = s.Inputs.EnvDigests(ctx, s.compute.Namespace, nil, ansibleeev1.DefaultEnvConfigMap)
	return err
}

// readVars reads the variables of the host from its inventory.
func (s *scope) readVars(ctx context.Context) error {
	name := s.compute.Spec.InventoryConfigMapName
	data, err := s.Inputs.ConfigMap(ctx, s.compute.Namespace, name)
	if err == nil && len(data[nodes.InventoryKey]) == 0 {
		err = &inputs.MissingError{Kind: "ConfigMap", Name: name, Key: nodes.InventoryKey}
	}
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	if s.vars, err = edpm.ParseInventory(data[nodes.InventoryKey], s.compute.Spec.DataplaneNodeName); err != nil {
		return phase.Stalled(condition.InputReadyCondition, novav1.InvalidInventoryReason, "ConfigMap %q, key %q: %v", name, nodes.InventoryKey, err)
	}
	if errs := validate.HostVars(field.NewPath("data").Key(nodes.InventoryKey), s.vars); len(errs) > 0 {
		return phase.Stalled(condition.InputReadyCondition, novav1.InvalidInventoryReason, "ConfigMap %q: %v", name, errs.ToAggregate())
	}
	return nil
}

// cell is the phase that waits for the cell.
func (s *scope) cell(ctx context.Context) error {
	name := s.compute.Spec.CellName
	cell := &novav1.NovaCell{}
	err := s.Get(ctx, types.NamespacedName{Namespace: s.compute.Namespace, Name: name}, cell)
	switch {
	case apierrors.IsNotFound(err):
		return phase.Failing(novav1.NovaCellReadyCondition, novav1.CellMissingReason,
			"NovaCell %q does not exist in namespace %s: create it, for example through a Nova", name, s.compute.Namespace)
	case err != nil:
		return err
	case cell.ShortName() == novav1.Cell0Name:
		return phase.Stalled(novav1.NovaCellReadyCondition, novav1.CellZeroReason,
			"NovaCell %q is cell0, which has no computes: delete the node and create it again with annotation %s naming another cell", name, novav1.CellAnnotation)
	case !cell.ConfiguresComputes():
		return phase.Waiting(novav1.NovaCellReadyCondition, novav1.CellNotReadyReason, "Waiting until NovaCell %s provides the configuration of its computes: see its conditions", name)
	}
	if s.config, err = s.Inputs.SecretKey(ctx, s.compute.Namespace, cell.Status.ComputeConfigSecretName, novav1.GeneratedConfigKey); err != nil {
		var missing *inputs.MissingError
		if errors.As(err, &missing) {
			return phase.Waiting(novav1.NovaCellReadyCondition, novav1.CellNotReadyReason, "Waiting for the configuration of NovaCell %s: %v", name, missing)
		}
		return inputs.Halt(novav1.NovaCellReadyCondition, err)
	}
	s.compute.Status.Conditions.MarkTrue(novav1.NovaCellReadyCondition, "NovaCell %s provides the configuration of its computes", name)
	return nil
}

// nodeReady is the phase that waits for phases -1 and 0.
func (s *scope) nodeReady(context.Context) error {
	if !s.node.DeletionTimestamp.IsZero() {
		return phase.Waiting(novav1.DataPlaneNodeReadyCondition, novav1.NodeNotReadyReason,
			"OpenStackDataPlaneNode %s is being deleted: nothing is deployed on its host", s.node.Name)
	}
	if !s.node.IsReady() {
		return phase.Waiting(novav1.DataPlaneNodeReadyCondition, novav1.NodeNotReadyReason,
			"Waiting for OpenStackDataPlaneNode %s to become Ready: see its conditions", s.node.Name)
	}
	if err := s.belongs(); err != nil {
		return err
	}
	s.compute.Status.Conditions.MarkTrue(novav1.DataPlaneNodeReadyCondition, "OpenStackDataPlaneNode %s is Ready", s.node.Name)
	return nil
}

// belongs makes sure that the node cannot go without this compute: the node
// shows a compute before the compute belongs to it.
func (s *scope) belongs() error {
	switch owner := metav1.GetControllerOf(s.compute); {
	case owner == nil:
		return phase.Waiting(novav1.DataPlaneNodeReadyCondition, novav1.NodeNotReadyReason, "Waiting until OpenStackDataPlaneNode %s is set as the owner of this object", s.node.Name)
	case owner.UID != s.node.UID:
		return phase.Stalled(novav1.DataPlaneNodeReadyCondition, edpmv1.ConflictReason,
			"This object is owned by %s/%s, not by OpenStackDataPlaneNode %s: delete it, and a new one is created for the node", owner.Kind, owner.Name, s.node.Name)
	}
	return nil
}

// serviceConfig is the phase that checks customServiceConfig again:
// admission may have been off when it was written.
func (s *scope) serviceConfig(context.Context) error {
	if _, err := oslo.Parse(s.compute.Spec.CustomServiceConfig); err != nil {
		return phase.Stalled(condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason, "spec.customServiceConfig: %v", err)
	}
	s.compute.Status.Conditions.MarkTrue(condition.ServiceConfigReadyCondition, condition.ServiceConfigReadyMessage)
	return nil
}
