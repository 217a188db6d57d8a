package hosted

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// lookUpNode is the phase that finds the node and its role.
func (s *Scope) lookUpNode(ctx context.Context) error {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	err := s.Get(ctx, client.ObjectKey{Namespace: s.Object.GetNamespace(), Name: s.spec.DataplaneNodeName}, node)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	s.Node = node
	s.Role, err = s.roleOf(ctx, s.Client, node)
	return err
}

// lookUpService is the phase that finds the service that the object is for. One that is
// being deleted can do without.
func (s *Scope) lookUpService(ctx context.Context) error {
	if s.MultiInstance == nil {
		return nil
	}
	found, err := s.MultiInstance.Find(ctx, s.Object.GetNamespace(), s.class.Name)
	var halt *phase.Halt
	switch {
	case err == nil:
		s.class = found
	case errors.As(err, &halt) && !s.Object.GetDeletionTimestamp().IsZero():
		return nil
	}
	return err
}

// detectRestore is the phase that finds out whether the object was restored from a
// backup without its status: then it is unknown whether its service is on the host. It
// comes before every phase that can end with a status write, which would record the
// object as new, and marks it as unknown also if the API server does not answer.
func (s *Scope) detectRestore(ctx context.Context) error {
	if !s.restored {
		return nil
	}
	live := s.empty()
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.Object), live)
	if _, status := live.Hosted(); err == nil && (live.GetUID() != s.Object.GetUID() || status.ObservedGeneration != 0) {
		return apply.CacheBehind(live, s.name)
	}
	s.status.SetUnknown()
	return client.IgnoreNotFound(err)
}

// nodeExists is the phase that waits for the node, without which nothing is known of what people want.
func (s *Scope) nodeExists(context.Context) error {
	if s.Node == nil {
		return phase.Failing(condition.InputReadyCondition, hostedv1.NodeMissingReason,
			"spec.dataplaneNodeName: OpenStackDataPlaneNode %q does not exist: create it, or delete this object", s.spec.DataplaneNodeName)
	}
	return nil
}

// tryInputs is the phase that reads what all services need, and inputsReady the one that halts if
// that is not possible: what needs no run is done before that.
func (s *Scope) tryInputs(ctx context.Context) error {
	s.inputsError = s.readInputs(ctx)
	return nil
}

func (s *Scope) inputsReady(context.Context) error { return s.inputsError }

func (s *Scope) readInputs(ctx context.Context) error {
	if halt := s.selected(); halt != nil {
		return halt
	}
	if err := s.access(ctx); err != nil {
		return err
	}
	strategy, err := dataplane.Rollout(inherit.Strategy(s.Node, s.Role))
	if err != nil {
		return phase.Stalled(condition.InputReadyCondition, hostedv1.InvalidSpecReason, "deployStrategy of the node: %v", err)
	}
	s.strategy = strategy
	s.strategy.Deploy = ptr.Deref(s.spec.Deploy, true)
	return nil
}

// selected returns why the annotation of the node does not select the object, nil if
// it does. It is the last line of the rules that admission has for the annotation.
func (s *Scope) selected() *phase.Halt {
	value := s.value(s.Node, s.Role, s.class)
	if s.Role == nil && value == "" { // the node says that it has no role
		return nil
	}
	return s.mismatch(s.Object, s.class, value)
}

// access reads how the host is reached: the image and environment of runs, its
// variables and the key.
func (s *Scope) access(ctx context.Context) error {
	if s.runnerImage() == "" {
		return phase.Stalled(condition.InputReadyCondition, common.RunnerImageMissingReason, "%s", images.MissingRunner("spec.ansibleEEContainerImage"))
	}
	for field, value := range map[string]string{"spec.inventoryConfigMapName": s.spec.InventoryConfigMapName, "spec.sshKeySecretName": s.spec.SSHKeySecretName} {
		if value == "" {
			return phase.Stalled(condition.InputReadyCondition, hostedv1.InvalidSpecReason,
				"%s is empty: it is copied from the node; set ansibleSSHPrivateKeySecret on the node or its role", field)
		}
	}
	if err := s.ReadVars(ctx); err != nil {
		if s.inventoryComes(err) {
			return s.nodeReady(ctx)
		}
		return err
	}
	namespace := s.Object.GetNamespace()
	key, err := s.Inputs.SecretKey(ctx, namespace, s.spec.SSHKeySecretName, dataplane.SSHKeyKey)
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	s.keyHash = inputs.Digest(map[string][]byte{dataplane.SSHKeyKey: key})
	if err := s.readJumpHost(ctx); err != nil {
		return err
	}
	s.environment, err = s.Inputs.EnvDigests(ctx, namespace, nil, ansibleeev1.DefaultEnvConfigMap)
	return err
}

// readJumpHost repeats what admission refuses, and reads the key of the jump host.
func (s *Scope) readJumpHost(ctx context.Context) (err error) {
	if wrong := validate.JumpHost(field.NewPath("spec", "jumpHost"), s.spec.JumpHost); len(wrong) > 0 {
		return phase.Stalled(condition.InputReadyCondition, hostedv1.InvalidSpecReason, "%v", wrong.ToAggregate())
	}
	s.jumpKeyHash, err = dataplane.JumpKeyDigest(ctx, s.Inputs, s.Object.GetNamespace(), s.spec.JumpHost)
	return inputs.Halt(condition.InputReadyCondition, err)
}

// inventoryComes reports whether what is missing is the inventory that the node, which is new,
// is about to generate. A person has nothing to do then.
func (s *Scope) inventoryComes(err error) bool {
	var halt *phase.Halt
	return errors.As(err, &halt) && halt.Reason == common.ConfigMapMissingReason &&
		!s.Node.IsReady() && s.Node.Status.InventoryConfigMapName == "" && s.spec.InventoryConfigMapName == dataplane.InventoryName(s.Node.Name)
}

func (s *Scope) runnerImage() string { return cmp.Or(s.chosenImage(), s.RunnerImage) }

// chosenImage is the execution environment that a person chose; empty for none.
func (s *Scope) chosenImage() string {
	return cmp.Or(s.spec.AnsibleEEContainerImage, s.class.RunnerImage)
}

// ReadVars reads Vars from the inventory. The error is a *phase.Halt when it is
// missing or invalid.
func (s *Scope) ReadVars(ctx context.Context) error {
	name := s.spec.InventoryConfigMapName
	data, err := s.Inputs.ConfigMap(ctx, s.Object.GetNamespace(), name)
	if err == nil && len(data[dataplane.InventoryKey]) == 0 {
		err = &inputs.MissingError{Kind: "ConfigMap", Name: name, Key: dataplane.InventoryKey}
	}
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	if s.Vars, err = edpm.ParseInventory(data[dataplane.InventoryKey], s.spec.DataplaneNodeName); err != nil {
		return phase.Stalled(condition.InputReadyCondition, hostedv1.InvalidInventoryReason, "ConfigMap %q, key %q: %v", name, dataplane.InventoryKey, err)
	}
	if errs := validate.HostVars(field.NewPath("data").Key(dataplane.InventoryKey), s.Vars); len(errs) > 0 {
		return phase.Stalled(condition.InputReadyCondition, hostedv1.InvalidInventoryReason, "ConfigMap %q: %v", name, errs.ToAggregate())
	}
	return nil
}

// nodeReady is the phase that waits for phases -1 and 0.
func (s *Scope) nodeReady(context.Context) error {
	if !s.Node.DeletionTimestamp.IsZero() {
		return phase.Waiting(hostedv1.DataPlaneNodeReadyCondition, hostedv1.NodeNotReadyReason,
			"OpenStackDataPlaneNode %s is being deleted: nothing is deployed on its host", s.Node.Name)
	}
	if !s.Node.IsReady() {
		return phase.Waiting(hostedv1.DataPlaneNodeReadyCondition, hostedv1.NodeNotReadyReason,
			"Waiting for OpenStackDataPlaneNode %s to become Ready: see its conditions", s.Node.Name)
	}
	if halt := s.belongs(); halt != nil {
		return halt
	}
	s.status.Conditions.MarkTrue(hostedv1.DataPlaneNodeReadyCondition, "OpenStackDataPlaneNode %s is Ready", s.Node.Name)
	return nil
}

// belongs makes sure that the node cannot be deleted without this object: the node
// shows an object before the object belongs to it.
func (s *Scope) belongs() *phase.Halt {
	switch owner := metav1.GetControllerOf(s.Object); {
	case owner == nil:
		return phase.Waiting(hostedv1.DataPlaneNodeReadyCondition, hostedv1.NodeNotReadyReason, "Waiting until OpenStackDataPlaneNode %s is set as the owner of this object", s.Node.Name)
	case owner.UID != s.Node.UID:
		return phase.Stalled(hostedv1.DataPlaneNodeReadyCondition, common.ConflictReason,
			"This object is owned by %s/%s, not by OpenStackDataPlaneNode %s: delete it, and a new one is created for the node", owner.Kind, owner.Name, s.Node.Name)
	}
	return nil
}

// serviceConfig is the phase that checks customServiceConfig again:
// admission may have been off when it was written.
func (s *Scope) serviceConfig(context.Context) error {
	config, err := oslo.Parse(s.spec.CustomServiceConfig)
	if err == nil {
		err = identity.Check(s.Identity, config)
	}
	if err != nil {
		return phase.Stalled(condition.ServiceConfigReadyCondition, hostedv1.InvalidConfigReason, "spec.customServiceConfig: %v", err)
	}
	return nil
}

// deploy is phase 1: the steps of the service.
func (s *Scope) deploy(ctx context.Context) error {
	s.converging = true
	var targets []edpm.Target
	for _, step := range s.parts.Steps {
		if step.Applies == nil || step.Applies() {
			targets = append(targets, s.target(step))
		}
	}
	state, err := s.Engine.Converge(ctx, &s.status.Ledger, targets...)
	if err != nil {
		return err
	}
	if s.parts.Vacate != nil {
		if err := s.parts.Vacate(ctx, &state); err != nil {
			return err
		}
	}
	s.state = state
	edpm.ShowDrift(&s.status.Conditions, &s.status.Ledger, s.strategy.Checks.Repair)
	if state.Phase != edpm.Converged && !s.onlyOptionalDue(state) {
		return edpm.Halt(condition.DeploymentReadyCondition, state)
	}
	return nil
}

// onlyOptionalDue reports whether only optional steps have not been done.
func (s *Scope) onlyOptionalDue(state edpm.State) bool {
	steps := state.Due
	if len(steps) == 0 { // restricted by tags
		steps = append([]string{state.Step}, state.More...)
	}
	return !slices.ContainsFunc(s.parts.Steps, func(step Step) bool { return !step.Optional && slices.Contains(steps, step.Name) })
}

// MayInterrupt is how many hosts of the role may be unavailable at a time for a step that
// interrupts a service, as far as the inputs have been read.
func (s *Scope) MayInterrupt() int {
	return s.Engine.MayInterrupt(s.strategy, s.Object.GetNamespace(), s.roleName())
}

// State of the steps, once they decide that the service is deployed.
func (s *Scope) State() edpm.State { return s.state }

// target is what the step is to do on the host.
func (s *Scope) target(step Step) edpm.Target {
	t := edpm.Target{
		Namespace: s.Object.GetNamespace(), Host: s.spec.DataplaneNodeName, OwnerKind: s.name, OwnerUID: s.Object.GetUID(), Step: step.Step,
		Role: s.roleName(), Cell: s.parts.Cell, Strategy: s.strategy, Rerun: s.rerun(), Tokens: s.tokens(), Replacement: dataplane.Replacement(s.Node),
		Image: s.runnerImage(), ImageChosen: s.chosenImage() != "",
		SSHKeySecret: s.spec.SSHKeySecretName, SSHKeyDigest: s.keyHash, JumpHost: s.spec.JumpHost, JumpKeyDigest: s.jumpKeyHash, NetworkAttachments: s.spec.NetworkAttachments,
		Topology: topology.NameOf(inherit.TopologyRef(s.Node, s.Role)), HostKey: s.hostKey(),
		EnvDigests: s.environment, Vars: maps.Clone(s.Vars),
	}
	if s.MultiInstance != nil {
		t.Owner, t.Service = s.Object.GetName(), s.class.Name
	}
	if step.Complete != nil {
		step.Complete(&t)
	}
	return t
}

// hostKey is the key by which the node knows its host.
func (s *Scope) hostKey() string {
	if s.Node == nil {
		return ""
	}
	return s.Node.Status.HostKey
}

func (s *Scope) roleName() string {
	if s.Node == nil {
		return ""
	}
	return s.Node.Spec.Role
}

// IsRerunDue reports whether a rerun is asked for that the last run of a step has not done.
func (s *Scope) IsRerunDue(step string) bool {
	return !edpm.IsHonored(s.status.Runs[step], s.rerun())
}

// rerun is the token on the object, else on its node, else on the role.
func (s *Scope) rerun() string {
	if token, ok := s.Object.GetAnnotations()[common.RerunAnnotation]; ok {
		return token
	}
	return inherit.Annotation(s.Node, s.Role, common.RerunAnnotation)
}

// tokens are those of the object, its node and the role.
func (s *Scope) tokens() map[string]string {
	tokens := inherit.RerunTokens(s.Node, s.Role)
	if token := s.Object.GetAnnotations()[common.RerunAnnotation]; token != "" {
		tokens["service"] = token
	}
	return tokens
}
