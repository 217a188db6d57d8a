package podified

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// scale gives a set that is held back as many pods as are wanted, all like those
// that run.
func (p *deployment) scale(ctx context.Context) error {
	if !p.held || ptr.Deref(p.set.Spec.Replicas, 1) == p.Replicas || !p.set.DeletionTimestamp.IsZero() {
		return nil
	}
	var err error
	p.set, err = p.scaleSet(ctx, p.set, p.Replicas)
	return err
}

// follow gets the Topology that is wanted. What the pods follow until then stays noted.
func (p *deployment) follow(ctx context.Context) error {
	t, err := topology.Use(ctx, p.Client, p.owner, p.TopologyRef, p.Status.LastAppliedTopology)
	p.topology = t
	return err
}

// recordTopology notes which Topology the pods follow. If another one is held back that is the
// next, and the one that is noted is the way back.
func (p *deployment) recordTopology(context.Context) error {
	follows := p.TopologyRef
	if p.held {
		follows = p.followed()
	}
	p.Status.LastAppliedTopology = follows
	p.tellTopology(topology.NameOf(follows))
	return nil
}

// followed is the Topology that the template of the set was made with, nil for none.
func (p *deployment) followed() *topologyv1.TopologyRef {
	name := p.set.Spec.Template.Annotations[topologyv1.NameAnnotation]
	if name == "" {
		return nil
	}
	return &topologyv1.TopologyRef{Name: name}
}

// tellTopology says which Topology the pods follow, and what is held back.
func (p *deployment) tellTopology(follows string) {
	const format = "The pods use %s; %s is held back until every pod can be scheduled: see %s"
	held := func(now, next string) {
		p.mark().MarkFalse(condition.TopologyReadyCondition, topologyv1.TopologyHeldReason, condition.SeverityWarning,
			format, now, next, topologyv1.PlacementReadyCondition)
	}
	switch {
	case p.topology == nil:
	case p.held && follows == "":
		held("no Topology", "Topology "+p.topology.Name)
	case p.held && follows != p.topology.Name:
		held("Topology "+follows, "Topology "+p.topology.Name)
	case p.held && !p.sameRules():
		held("Topology "+follows+" as it was before", "its last change")
	default:
		p.mark().MarkTrue(condition.TopologyReadyCondition, "The pods use Topology %s", follows)
	}
}

// sameRules reports whether the pods that run have the rules that are wanted, so
// that it is another change that is held back.
func (p *deployment) sameRules() bool {
	have, want := &p.set.Spec.Template.Spec, &p.want.Spec.Template.Spec
	return equality.Semantic.DeepEqual(have.Affinity, want.Affinity) &&
		equality.Semantic.DeepEqual(have.TopologySpreadConstraints, want.TopologySpreadConstraints)
}
