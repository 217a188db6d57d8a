package storagecluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/osd"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// inputs is the phase that checks what admission checks as well.
func (s *scope) inputs(context.Context) error {
	if err := osd.Check(&s.cluster.Spec); err != nil {
		return phase.Stalled(condition.InputReadyCondition, ocsv1.InvalidSpecReason, "%v", err)
	}
	if fields := osd.Unsupported(&s.cluster.Spec); len(fields) > 0 {
		return phase.Stalled(condition.InputReadyCondition, ocsv1.UnsupportedFieldReason,
			"These fields are not supported: %s. Without them the OSDs would be others than those that the spec asks for: remove them, or leave the StorageCluster to ocs-operator. Nothing is changed until then", strings.Join(fields, ", "))
	}
	if fields := osd.Ignored(&s.cluster.Spec); len(fields) > 0 {
		s.cluster.Status.Conditions.MarkTrue(condition.InputReadyCondition, "The inputs are ready. These fields have no effect, as only OSDs are managed: %s. Set them in the CephCluster", strings.Join(fields, ", "))
	}
	return nil
}

// findNodes is the phase that finds the nodes for OSDs.
func (s *scope) findNodes(ctx context.Context) error {
	nodes := &corev1.NodeList{}
	if err := s.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		s.nodes = append(s.nodes, &nodes.Items[i])
	}
	var err error
	if s.eligible, err = osd.Eligible(&s.cluster.Spec, s.nodes); err != nil {
		return err
	}
	status := &s.cluster.Status
	status.EligibleNodes = nil
	for _, node := range s.eligible {
		status.EligibleNodes = append(status.EligibleNodes, node.Name)
	}
	if need := s.minNodes(); len(s.eligible) < need {
		return phase.Failing(ocsv1.NodesReadyCondition, ocsv1.NotEnoughNodesReason,
			"Not enough nodes: expected %d, found %d. %s. Existing OSDs are not changed until then", need, len(s.eligible), s.howToAddNodes())
	}
	status.Conditions.MarkTrue(ocsv1.NodesReadyCondition, "OSDs are placed on %d nodes", len(s.eligible))
	return nil
}

func (s *scope) minNodes() int { return osd.MinNodes(&s.cluster.Spec, len(s.nodes)) }

func (s *scope) howToAddNodes() string {
	how := fmt.Sprintf("Label more nodes (kubectl label node <node> %s=)", ocsv1.StorageNodeLabel)
	if selector := s.cluster.Spec.LabelSelector; selector != nil {
		how = fmt.Sprintf("Label more nodes, so that spec.labelSelector (%s) selects them", metav1.FormatLabelSelector(selector))
	}
	if zone := osd.ArbiterZone(&s.cluster.Spec); zone != "" {
		how += fmt.Sprintf("; those in %s, the zone of the arbiter, do not count", zone)
	}
	return how
}

// failureDomain is the phase that decides the failure domain. Nodes get their racks
// before the label is used for anything.
func (s *scope) failureDomain(ctx context.Context) error {
	status := &s.cluster.Status
	status.FailureDomain = osd.Domain(&s.cluster.Spec, status.FailureDomain, s.eligible, len(s.nodes))
	if status.FailureDomain == ocsv1.FailureDomainRack {
		if err := s.labelRacks(ctx); err != nil {
			return err
		}
	}
	status.FailureDomainKey = osd.Key(status.FailureDomain)
	status.FailureDomainValues = osd.Values(s.eligible, status.FailureDomainKey)
	status.NodeTopologies = &ocsv1.NodeTopologyMap{ArbiterLocation: osd.ArbiterZone(&s.cluster.Spec), Labels: osd.Topologies(s.eligible)}
	s.judgeDomains()
	return nil
}

// labelRacks gives racks to nodes that have none, and continues with the nodes as
// they are then.
func (s *scope) labelRacks(ctx context.Context) error {
	racks := osd.Racks(s.eligible, s.minNodes())
	for _, name := range slices.Sorted(maps.Keys(racks)) {
		labelled, err := s.labelRack(ctx, find(s.nodes, name), racks[name])
		if err != nil {
			return err
		}
		for _, nodes := range [][]*corev1.Node{s.nodes, s.eligible} {
			nodes[index(nodes, name)] = labelled
		}
	}
	return nil
}

func (s *scope) labelRack(ctx context.Context, node *corev1.Node, rack string) (*corev1.Node, error) {
	labelled := node.DeepCopy()
	metav1.SetMetaDataLabel(&labelled.ObjectMeta, ocsv1.RackLabel, rack)
	// The lock keeps a rack that a person gives at the same moment.
	patch := client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
	ctrl.LoggerFrom(ctx).Info("Labelling node with its rack", "node", node.Name, "rack", rack)
	err := s.Patch(ctx, labelled, patch, client.FieldOwner(fieldManager))
	if apply.IsRefusal(err) {
		return nil, refusal(ocsv1.FailureDomainReadyCondition, err, "Label %s=%s of node %s is refused", ocsv1.RackLabel, rack, node.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("labelling node %s with %s=%s: %w", node.Name, ocsv1.RackLabel, rack, err)
	}
	return labelled, s.awaitRack(ctx, labelled)
}

// seen is how long the cache may take to show what was written.
const seen = 30 * time.Second

// awaitRack waits until the cache has the label of a node: predictions read it there.
func (s *scope) awaitRack(ctx context.Context, labelled *corev1.Node) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, seen, true, func(ctx context.Context) (bool, error) {
		node := &corev1.Node{}
		err := s.Get(ctx, client.ObjectKeyFromObject(labelled), node, client.UnsafeDisableDeepCopy)
		return node.Labels[ocsv1.RackLabel] != "", client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting until node %s is seen with its rack: %w", labelled.Name, err)
	}
	return nil
}

func index(nodes []*corev1.Node, name string) int {
	return slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
}

func find(nodes []*corev1.Node, name string) *corev1.Node { return nodes[index(nodes, name)] }

// judgeDomains sets the condition. Too few domains do not hold OSDs up: Ceph keeps
// fewer copies for a while, and that is better than none.
func (s *scope) judgeDomains() {
	status := &s.cluster.Status
	domain, key, found := status.FailureDomain, status.FailureDomainKey, len(status.FailureDomainValues)
	need, outside := osd.MinDomains(&s.cluster.Spec, domain), osd.Lacking(s.eligible, key)
	switch {
	case found < need:
		status.Conditions.MarkFalse(ocsv1.FailureDomainReadyCondition, ocsv1.TooFewDomainsReason, condition.SeverityWarning,
			"The failure domain is the %s, of which the OSDs need %d, but only %d exist: add storage nodes with other values of the label %s, or lower spec.storageDeviceSets[].replica where it is higher",
			domain, need, found, key)
	case len(outside) > 0:
		status.Conditions.MarkFalse(ocsv1.FailureDomainReadyCondition, ocsv1.NodesOutsideDomainsReason, condition.SeverityWarning,
			"No OSD is placed on %s: give them the label %s (kubectl label node %s %s=<%s>), or remove the storage label",
			names.List(outside, names.Few), key, outside[0], key, domain)
	default:
		status.Conditions.MarkTrue(ocsv1.FailureDomainReadyCondition, "Failure domain: %s (%d found)", domain, found)
	}
}
