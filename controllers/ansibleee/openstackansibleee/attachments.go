package openstackansibleee

import (
	"context"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/attachments"
)

// networks is the phase of a run with network attachments that checks that they exist.
func (s *scope) networks(ctx context.Context) error {
	if err := attachments.Check(ctx, s.Client, s.attachments, s.run.Namespace, s.run.Spec.NetworkAttachments); err != nil {
		return err
	}
	s.run.Status.Conditions.MarkTrue(ansibleeev1.NetworkAttachmentsReadyCondition, "Every network attachment definition exists")
	return nil
}
