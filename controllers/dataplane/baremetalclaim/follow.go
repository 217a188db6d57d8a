package baremetalclaim

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// followHost is what a claimed host is on its way to, and what happens to it later.
func (s *scope) followHost(ctx context.Context) error {
	if err := s.needKind(ctx); err != nil {
		return err
	}
	if err := s.markMachine(ctx); err != nil {
		return err
	}
	claimed := s.node.Status.BareMetalHost
	if policy := s.policy(); policy != "" {
		claimed.ReclaimPolicy = policy
	}
	host, err := s.presentHost(ctx)
	if err != nil {
		return err
	}
	claimed = s.node.Status.BareMetalHost
	if claimed.PoweredOff = host != nil && metal.IsOff(host); host == nil {
		return phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalHostLostReason,
			"BareMetalHost %s no longer exists, or its spec.consumerRef is no longer this node. The machine is left alone: restore the object or the field, or set annotation %s of the node to have another machine", cmp.Or(claimed.Name, "of this node"), common.ReplaceHostAnnotation)
	}
	if err := s.recallBootData(ctx, host); err != nil {
		return err
	}
	if v := metal.Judge(host, claimed.Provisioned); !v.Done() {
		return s.waitFor(v)
	}
	claimed.Provisioned, claimed.Waiting, claimed.Since = true, "", nil
	if err := s.findAddress(ctx, host); err != nil {
		return err
	}
	return s.compareBootData(ctx, host)
}

// waitFor is the condition of a verdict, which knows since when it is the same.
func (s *scope) waitFor(v metal.Verdict) error {
	claimed, now := s.node.Status.BareMetalHost, s.Clock.Now()
	if claimed.Waiting != string(v.Reason) || claimed.Since == nil {
		claimed.Waiting, claimed.Since = string(v.Reason), ptr.To(metav1.NewTime(now))
	}
	v, after := v.At(now, claimed.Since.Time)
	return &phase.Halt{Type: dataplanev1.ProvisionReadyCondition, Reason: v.Reason, Severity: v.Severity, Message: v.Message, After: after}
}

// presentHost returns the host of the node, nil if it is lost. The cache can be late,
// and the name of the host was lost if the status was.
func (s *scope) presentHost(ctx context.Context) (*metal3v1.BareMetalHost, error) {
	if s.node.Status.BareMetalHost.Name == "" {
		if found, err := s.recallHost(ctx); err != nil || !found {
			return nil, err
		}
	}
	host, err := s.ownHost(ctx, s.Client)
	if err != nil || host != nil {
		return host, err
	}
	return s.ownHost(ctx, s.Live)
}

// ownHost returns the host of the node, nil if it is not there, or not the node's.
func (s *scope) ownHost(ctx context.Context, from client.Reader) (*metal3v1.BareMetalHost, error) {
	host := &metal3v1.BareMetalHost{}
	err := from.Get(ctx, types.NamespacedName{Namespace: s.node.Namespace, Name: s.node.Status.BareMetalHost.Name}, host)
	if apierrors.IsNotFound(err) || err == nil && !metal.ClaimedBy(host, s.node.Namespace, s.node.Name) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading BareMetalHost %s: %w", s.node.Status.BareMetalHost.Name, err)
	}
	return host, nil
}

// findAddress notes the address of the machine, once: its static one, else the one
// that the NIC had during inspection.
func (s *scope) findAddress(ctx context.Context, host *metal3v1.BareMetalHost) error {
	claimed := s.node.Status.BareMetalHost
	if s.node.Spec.AnsibleHost != "" || claimed.Address != "" {
		return nil
	}
	address, err := s.hardwareAddress(ctx, host)
	if err == nil {
		claimed.Address = address
	}
	return err
}

// hardwareAddress is the address that the machine itself reported during inspection:
// it cannot be anything else than an address, nor that of another node.
func (s *scope) hardwareAddress(ctx context.Context, host *metal3v1.BareMetalHost) (string, error) {
	unknown := func(why string) error {
		return phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalAddressUnknownReason,
			"BareMetalHost %s is provisioned, and its address is unknown: %s. Set spec.ansibleHost", host.Name, why)
	}
	name := ""
	if s.role != nil && s.role.Spec.BaremetalSetTemplate != nil {
		name = s.role.Spec.BaremetalSetTemplate.CtlplaneInterface
	}
	address := metal.AddressOf(host, name)
	if !address.IsValid() {
		return "", unknown("its hardware data have none for the NIC of the management network")
	}
	rival, err := s.nodeAt(ctx, address.String())
	if err == nil && rival != nil {
		err = unknown(fmt.Sprintf("its hardware data have %s, which is that of %s", address, rival.Name()))
	}
	return address.String(), err
}

// nodeAt is another node with an address, nil if there is none.
func (s *scope) nodeAt(ctx context.Context, address string) (*dataplane.Rival, error) {
	host := dataplane.Host{Namespace: s.node.Namespace, Node: s.node.Name, Vars: map[string]any{"ansible_host": address}, Jump: s.eff.JumpHost}
	return dataplane.FindRival(ctx, s.Client, host)
}
