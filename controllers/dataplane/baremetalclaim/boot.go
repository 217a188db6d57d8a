package baremetalclaim

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// writeBootData writes the Secret with what the machine boots with: the host key
// that an earlier attempt generated for this machine stays. The key is trusted from
// then on.
func (s *scope) writeBootData(ctx context.Context, host *metal3v1.BareMetalHost) (metal.Plan, error) {
	plan, err := s.plan(ctx, host)
	if err != nil {
		return plan, err
	}
	present, err := s.Inputs.Generated(ctx, s.node.Namespace, metal.SecretName(s.node.Name))
	if err != nil {
		return plan, inputs.Halt(dataplanev1.ProvisionReadyCondition, err)
	}
	plan.Machine = fmt.Sprintf("%s %s", host.UID, dataplane.Replacement(s.node))
	if present != nil && metav1.IsControlledBy(present, s.node) && string(present.Data[metal.MachineKey]) == plan.Machine {
		plan.User.HostKey = metal.KnownKey(present.Data)
	}
	if plan.User.HostKey.Private == "" {
		if plan.User.HostKey, err = metal.NewHostKey(); err != nil {
			return plan, err
		}
	}
	data, err := plan.Data()
	if err != nil {
		return plan, s.badBootData(err)
	}
	desired := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.node.Namespace, Name: metal.SecretName(s.node.Name)}, Data: data}
	if err := apply.Secret(ctx, s.Client, fieldManager, s.node, desired, present); err != nil {
		return plan, apply.Halt(dataplanev1.ProvisionReadyCondition, err)
	}
	s.node.Status.HostKey = plan.User.HostKey.Public
	return plan, nil
}

func (s *scope) badBootData(err error) error {
	return phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.InvalidSpecReason, "Role %s, spec.baremetalSetTemplate: %v", s.role.Name, err)
}

// plan is what the machine is to boot with, but for its host key.
func (s *scope) plan(ctx context.Context, host *metal3v1.BareMetalHost) (metal.Plan, error) {
	t, sources := s.role.Spec.BaremetalSetTemplate, metal.SourcesOf(s.node, s.role, s.eff.HostName)
	plan := metal.Plan{Image: *t.Image, User: metal.UserData{HostName: s.eff.HostName, Domain: t.DomainName, User: s.eff.AnsibleUser}}
	private, err := s.Inputs.SecretKey(ctx, s.node.Namespace, s.eff.SSHKeySecret, dataplane.SSHKeyKey)
	if err != nil {
		return plan, inputs.Halt(dataplanev1.ProvisionReadyCondition, err)
	}
	if plan.User.AuthorizedKey, err = metal.AuthorizedKey(private); err != nil {
		return plan, phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.InvalidSpecReason, "Secret %s, key %s: %v", s.eff.SSHKeySecret, dataplane.SSHKeyKey, err)
	}
	if t.CABundleSecretName != "" {
		if plan.User.CABundle, err = s.Inputs.SecretKey(ctx, s.node.Namespace, t.CABundleSecretName, metal.CABundleKey); err != nil {
			return plan, inputs.Halt(dataplanev1.ProvisionReadyCondition, err)
		}
	}
	if plan.User.Additions, err = s.given(ctx, sources.UserData, metal.UserDataKey); err != nil {
		return plan, err
	}
	if plan.Network, err = s.given(ctx, sources.NetworkData, metal.NetworkDataKey); err != nil || plan.Network != nil {
		return plan, err
	}
	if plan.Network, err = metal.NetworkOf(s.node, s.eff, t).Render(host); err != nil {
		return plan, s.badBootData(err)
	}
	return plan, nil
}

// given is the value of a Secret that a person refers to, nil without a reference.
// As for baremetal-operator, the key can be "value" as well.
func (s *scope) given(ctx context.Context, ref *corev1.SecretReference, key string) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	if other := cmp.Or(ref.Namespace, s.node.Namespace); other != s.node.Namespace {
		return nil, s.badBootData(fmt.Errorf("%s: Secret %s is in namespace %s: copy it into namespace %s, and remove the namespace", key, ref.Name, other, s.node.Namespace))
	}
	data, err := s.Inputs.Secret(ctx, s.node.Namespace, ref.Name)
	if err != nil {
		return nil, inputs.Halt(dataplanev1.ProvisionReadyCondition, err)
	}
	for _, name := range []string{key, "value"} {
		if len(data[name]) > 0 {
			return data[name], nil
		}
	}
	return nil, inputs.Halt(dataplanev1.ProvisionReadyCondition, &inputs.MissingError{Kind: "Secret", Name: ref.Name, Key: key})
}

// recallBootData notes the key that was generated for the machine, and what it was
// given, when the status was lost. Without the key the first host that answers would
// be trusted.
func (s *scope) recallBootData(ctx context.Context, host *metal3v1.BareMetalHost) error {
	claimed, trusted := s.node.Status.BareMetalHost, s.node.Status.HostKey != "" || s.node.Annotations[common.HostKeyAnnotation] != ""
	if trusted && claimed.InputHash != "" {
		return nil
	}
	present, err := s.Inputs.Generated(ctx, s.node.Namespace, metal.SecretName(s.node.Name))
	if err != nil {
		return inputs.Halt(dataplanev1.ProvisionReadyCondition, err)
	}
	if present != nil && apply.Check(s.Client, s.node, present) == nil {
		claimed.InputHash = string(present.Data[metal.InputHashKey])
		if s.node.Status.HostKey == "" {
			s.node.Status.HostKey = metal.KnownKey(present.Data).Public
		}
	}
	if trusted || s.node.Status.HostKey != "" {
		return nil
	}
	return phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalHostKeyUnknownReason,
		"Secret %s, which had the key that was generated for BareMetalHost %s, is lost: copy the public key from the console of the machine (/etc/ssh/ssh_host_ed25519_key.pub), and set annotation %s of the node to it",
		metal.SecretName(s.node.Name), host.Name, common.HostKeyAnnotation)
}

// compareBootData notes whether what the machine was given is still what is wanted. It
// stays as it is.
func (s *scope) compareBootData(ctx context.Context, host *metal3v1.BareMetalHost) error {
	claimed := s.node.Status.BareMetalHost
	if claimed.InputHash == "" || !metal.Asked(s.role) || s.role.Spec.BaremetalSetTemplate.Image == nil {
		claimed.Outdated = false
		return nil
	}
	plan, err := s.plan(ctx, host)
	if halt := (*phase.Halt)(nil); errors.As(err, &halt) {
		return nil // the machine needs it no more, and the node reports its own inputs
	}
	if err != nil {
		return err
	}
	hash, err := plan.Hash()
	claimed.Outdated = hash != claimed.InputHash
	return err
}
