package baremetalclaim

import (
	"cmp"
	"context"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// replaceToken is that of the annotation, empty without one.
func (s *scope) replaceToken() string { return dataplane.ReplaceToken(s.node) }

// former is the machine that the node had before it was replaced.
func (s *scope) former() string {
	if s.node.Status.BareMetalHost == nil {
		return ""
	}
	return s.node.Status.BareMetalHost.Former
}

// replaceMachine releases the machine of a node whose annotation has a new token, as
// if the node were deleted, and forgets what ran on it. That the token was followed
// is noted only when the machine is released: whatever dies before does it again.
func (s *scope) replaceMachine(ctx context.Context) error {
	if !dataplane.Replacing(s.node) {
		return nil
	}
	token, claimed := s.replaceToken(), s.node.Status.BareMetalHost
	if problem := s.irreplaceable(); problem != "" {
		return phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalReplaceRefusedReason, "Annotation %s: the machine is not replaced: %s", common.ReplaceHostAnnotation, problem)
	}
	if err := s.needKind(ctx); err != nil {
		return err
	}
	host, err := s.presentHost(ctx)
	if err != nil {
		return err
	}
	if host != nil {
		if err := s.releaseHost(ctx, host, s.policy(), "Replacing"); err != nil {
			return err
		}
	}
	former := cmp.Or(s.node.Status.BareMetalHost.Name, claimed.Former)
	s.startAgain(token, former)
	return errNoted
}

// startAgain notes that a token is followed: another machine is another host.
func (s *scope) startAgain(token, former string) {
	s.node.Status.BareMetalHost = &dataplanev1.ClaimedHost{Replacement: token, Former: former}
	s.node.Status.Hash, s.node.Status.HostKey = nil, ""
}

// irreplaceable returns what has to be changed before the machine can be replaced.
func (s *scope) irreplaceable() string {
	switch {
	case !metal.Asked(s.role):
		return "role " + s.role.Name + " does not provision from bare metal: set baremetalSetTemplate and preProvisioned: false in it"
	case s.policy() == dataplanev1.ReclaimRetain:
		return "baremetalSetTemplate.reclaimPolicy of role " + s.role.Name + " is Retain, so the machine stays claimed: set Deprovision or Detach"
	case s.node.Annotations[common.HostKeyAnnotation] != "":
		return "annotation " + common.HostKeyAnnotation + " has the key of the present machine: remove it. The key of the new one is generated"
	}
	return ""
}
