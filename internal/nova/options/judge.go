package options

import (
	"context"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// judgement is what images say of texts.
type judgement struct {
	refused, warnings []string
	// known and unknown are the images of the texts by whether their options are known.
	known, unknown []string
}

// Judge says in ServiceConfigReady of an object what the options of images say of the texts that
// they read. It returns a *phase.Halt if an image refuses one.
func (f *Finder) Judge(ctx context.Context, obj phase.Object, texts ...podified.Texts) error {
	if f == nil || len(texts) == 0 {
		return nil
	}
	var j judgement
	for _, t := range texts {
		if err := f.judge(ctx, obj.GetNamespace(), t, &j); err != nil {
			return err
		}
	}
	if len(j.refused) > 0 {
		return phase.Stalled(condition.ServiceConfigReadyCondition, novav1.OptionsRefusedReason, "%s", Join(j.refused))
	}
	verdict := condition.TrueCondition(condition.ServiceConfigReadyCondition, "%s", j.message())
	if len(j.warnings) > 0 {
		verdict.Reason = novav1.OptionsWarnedReason
	}
	obj.GetConditions().Set(verdict)
	return nil
}

// JudgeWritten is Judge for services that have a text. Without any the condition stays as it is.
func (f *Finder) JudgeWritten(ctx context.Context, obj phase.Object, texts []podified.Texts) error {
	isText := func(p podified.Part) bool { return p.Text != "" }
	written := slices.DeleteFunc(slices.Clone(texts), func(t podified.Texts) bool { return !slices.ContainsFunc(t.Parts, isText) })
	return f.Judge(ctx, obj, written...)
}

func (f *Finder) judge(ctx context.Context, namespace string, t podified.Texts, j *judgement) error {
	catalogue, err := f.Find(ctx, namespace, t.Image)
	if err != nil {
		return err
	}
	if catalogue == nil {
		j.unknown = append(j.unknown, t.Image)
		return nil
	}
	j.known = append(j.known, t.Image)
	refused, warnings := Check(catalogue, t.Parts)
	j.refused, j.warnings = append(j.refused, refused...), append(j.warnings, warnings...)
	return nil
}

// message of texts of which none is refused.
func (j judgement) message() string {
	if len(j.warnings) == 0 && len(j.unknown) == 0 {
		return "customServiceConfig is valid, and " + list(j.known) + " has its options"
	}
	message := "customServiceConfig can be read."
	if len(j.unknown) > 0 {
		message += " The options of " + list(j.unknown) + " are not known: values are checked where they are used"
	}
	if len(j.warnings) == 0 {
		return message
	}
	if len(j.unknown) > 0 {
		message += "."
	}
	return message + " Warnings: " + Join(j.warnings)
}

// list has each image once.
func list(images []string) string {
	sorted := slices.Sorted(slices.Values(images))
	return strings.Join(slices.Compact(sorted), ", ")
}
