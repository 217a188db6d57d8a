// Package rotation says which pods and computes run the present configuration of a Nova or a
// NovaCell, and holds the Secrets that others may still use.
package rotation

import (
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// mostNames is how many are named that do not run the present configuration.
const mostNames = 10

// Part is a service in pods, a compute or a cell.
type Part struct {
	Total, Current int32
	// Outdated are names, of some at least, if not all are current.
	Outdated []string
}

// Pods is the part of a service in pods that was deployed with the present configuration.
func Pods(name string, status *podifiedv1.Status, replicas int32) Part {
	current := int32(0)
	if status != nil {
		current = min(status.UpdatedCount, replicas)
	}
	return part(name, current, replicas)
}

// Compute is the part of a compute on a host; it is empty if nothing was deployed there.
func Compute(c *novav1.NovaExternalCompute, present string) Part {
	deployed := c.Status.Conditions.Get(condition.DeploymentReadyCondition)
	began := deployed != nil && deployed.Status != corev1.ConditionUnknown
	switch {
	case c.Status.ConfigHash == present && present != "":
		return part(c.Name, 1, 1)
	case c.Status.Hash[novav1.NovaStep] == "" && !began:
		return Part{}
	}
	return part(c.Name, 0, 1)
}

// PodCompute is the part of a compute in pods, which change together.
func PodCompute(c *novav1.NovaCompute, present string) Part {
	replicas := ptr.Deref(c.Spec.Replicas, 1)
	if c.Status.ConfigHash == present && present != "" && c.Status.ObservedGeneration == c.Generation {
		return part(c.Name, replicas, replicas)
	}
	return part(c.Name, 0, max(replicas, 1))
}

// Cell is the part of a cell. What it says counts only if it is of the present inputs.
func Cell(c *novav1.NovaCell, present string) Part {
	rollout := c.Status.ConfigRollout
	switch {
	case rollout == nil:
		return part(c.Name, 0, 1)
	case c.Status.ObservedGeneration != c.Generation || rollout.Inputs != present:
		return part(c.Name, 0, max(rollout.Total, 1))
	}
	return Part{Total: rollout.Total, Current: rollout.Current, Outdated: rollout.Outdated}
}

func part(name string, current, total int32) Part {
	p := Part{Total: total, Current: current}
	if current < total {
		p.Outdated = []string{name}
	}
	return p
}

// Sum counts the parts of what was made from inputs.
func Sum(inputs string, parts ...Part) *novav1.ConfigRollout {
	sum := &novav1.ConfigRollout{Inputs: inputs}
	for _, p := range parts {
		sum.Total += p.Total
		sum.Current += p.Current
		sum.Outdated = append(sum.Outdated, p.Outdated...)
	}
	slices.Sort(sum.Outdated)
	sum.Outdated = sum.Outdated[:min(len(sum.Outdated), mostNames)]
	return sum
}

// IsComplete reports whether all run the present configuration.
func IsComplete(r *novav1.ConfigRollout) bool { return r.Current >= r.Total }

// Inputs identifies what the configuration of a cell is made from that its spec does not have:
// the content of its Secret, and what its Nova annotates it with.
func Inputs(secret map[string][]byte, annotations map[string]string) string {
	all := map[string][]byte{"secret": []byte(inputs.Digest(secret))}
	for _, name := range []string{novav1.ComputesReleaseAnnotation, novav1.CellMappingsAnnotation} {
		all[name] = []byte(annotations[name])
	}
	return inputs.Digest(all)[:32]
}

// mark sets the condition. former are Secrets that no field names any more and that are held,
// troubles say which cannot be held.
func mark(conditions *condition.Conditions, r *novav1.ConfigRollout, former, troubles []string) {
	reason, severity := novav1.ConfigRollingOutReason, condition.SeverityInfo
	tail := ""
	if len(former) > 0 {
		tail = ". Held until then: Secret " + names.List(former, mostNames)
	}
	if len(troubles) > 0 {
		reason, severity = novav1.SecretNotHeldReason, condition.SeverityWarning
		tail += ". " + names.List(troubles, 3)
	}
	switch {
	case !IsComplete(r):
		conditions.MarkFalse(novav1.ConfigRolledOutCondition, reason, severity,
			"%d of %d pods and computes run the present configuration. Others: %s%s", r.Current, r.Total, outdated(r), tail)
	case r.Total == 0:
		conditions.MarkTrue(novav1.ConfigRolledOutCondition, "No pod or compute uses the configuration%s", tail)
	default:
		conditions.MarkTrue(novav1.ConfigRolledOutCondition, "All %d pods and computes run the present configuration%s", r.Total, tail)
	}
}

// outdated names who does not run the present configuration.
func outdated(r *novav1.ConfigRollout) string {
	text := names.List(r.Outdated, mostNames)
	if len(r.Outdated) == mostNames && int(r.Total-r.Current) > mostNames {
		text += fmt.Sprintf(", of %d", r.Total-r.Current)
	}
	return text
}
