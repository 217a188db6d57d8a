package options

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// Judge says in ServiceConfigReady of an object what the options of its image say of its texts.
// It returns a *phase.Halt if the image refuses one.
func (f *Finder) Judge(ctx context.Context, obj phase.Object, image string, parts []podified.Part) error {
	if f == nil {
		return nil
	}
	known, err := f.Find(ctx, obj.GetNamespace(), image)
	if err != nil {
		return err
	}
	if known == nil {
		obj.GetConditions().MarkTrue(condition.ServiceConfigReadyCondition, "customServiceConfig can be read. The options of %s are not known: values are checked where they are used", image)
		return nil
	}
	warnings, err := Check(known, parts)
	switch {
	case err != nil:
		return phase.Stalled(condition.ServiceConfigReadyCondition, novav1.OptionsRefusedReason, "%v", err)
	case len(warnings) > 0:
		warned := condition.TrueCondition(condition.ServiceConfigReadyCondition, "customServiceConfig can be read. Warnings: %s", Join(warnings))
		warned.Reason = novav1.OptionsWarnedReason
		obj.GetConditions().Set(warned)
	default:
		obj.GetConditions().MarkTrue(condition.ServiceConfigReadyCondition, "customServiceConfig is valid, and %s has its options", image)
	}
	return nil
}
