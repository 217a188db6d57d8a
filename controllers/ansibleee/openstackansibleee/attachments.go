package openstackansibleee

import (
	"context"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/attachments"
)

// networks is the phase that checks that the network attachments exist.
func (s *scope) networks(ctx context.Context) error {
	names := s.run.Spec.NetworkAttachments
	if len(names) == 0 {
		return nil
	}
	if err := attachments.Check(ctx, s.Client, s.attachments, s.run.Namespace, names); err != nil {
		return err
	}
	s.run.Status.Conditions.MarkTrue(ansibleeev1.NetworkAttachmentsReadyCondition, "Every network attachment definition exists")
	return nil
}
