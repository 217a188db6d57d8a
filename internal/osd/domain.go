package osd

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

const (
	// zonesForData is how many zones make the zone the failure domain: Ceph keeps
	// three copies.
	zonesForData = 3
	// zonesBesideArbiter is the same for a stretched cluster, which keeps two
	// copies in each of two zones.
	zonesBesideArbiter = 2
	// nodesBesideArbiter are for those copies.
	nodesBesideArbiter = 4
)

// keys are the labels of nodes that have a failure domain.
var keys = map[ocsv1.FailureDomain]string{
	ocsv1.FailureDomainZone: corev1.LabelTopologyZone,
	ocsv1.FailureDomainRack: ocsv1.RackLabel,
	ocsv1.FailureDomainHost: corev1.LabelHostname,
	ocsv1.FailureDomainOSD:  corev1.LabelHostname,
}

// Key returns the label of nodes that has the failure domain, empty if there is
// no such failure domain.
func Key(domain ocsv1.FailureDomain) string { return keys[domain] }

// ArbiterZone returns the zone of the arbiter, where no OSD goes; empty without an
// arbiter.
func ArbiterZone(spec *ocsv1.StorageClusterSpec) string {
	if !spec.Arbiter.Enable || spec.NodeTopologies == nil {
		return ""
	}
	return spec.NodeTopologies.ArbiterLocation
}

// Eligible returns the nodes that OSDs go to, by name: those with the storage
// label, or those that labelSelector selects, and none in the zone of the arbiter.
// The error is about labelSelector.
//
// The label may have any value, as the node affinity of the daemons asks for no
// particular one; ocs-operator only counts nodes with an empty value.
func Eligible(spec *ocsv1.StorageClusterSpec, nodes []*corev1.Node) ([]*corev1.Node, error) {
	selector, err := nodeSelector(spec.LabelSelector)
	if err != nil {
		return nil, err
	}
	arbiter := ArbiterZone(spec)
	var eligible []*corev1.Node
	for _, node := range nodes {
		if selector.Matches(labels.Set(node.Labels)) && (arbiter == "" || node.Labels[corev1.LabelTopologyZone] != arbiter) {
			eligible = append(eligible, node)
		}
	}
	slices.SortFunc(eligible, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return eligible, nil
}

func nodeSelector(given *metav1.LabelSelector) (labels.Selector, error) {
	if given != nil {
		selector, err := metav1.LabelSelectorAsSelector(given)
		if err != nil {
			return nil, fmt.Errorf("spec.labelSelector: %w: fix the selector", err)
		}
		return selector, nil
	}
	requirement, err := labels.NewRequirement(ocsv1.StorageNodeLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return labels.NewSelector().Add(*requirement), nil
}

// MinNodes returns how many nodes the OSDs need: one for each copy of the data,
// and for each StorageClassDeviceSet of a device set (ocs-operator,
// getMinimumNodes). clusterNodes is the number of all nodes of the cluster.
func MinNodes(spec *ocsv1.StorageClusterSpec, clusterNodes int) int {
	least := zonesForData
	switch {
	case spec.Arbiter.Enable:
		least = nodesBesideArbiter
	case singleNode(spec, clusterNodes):
		least = 1
	}
	return max(least, maxReplica(spec))
}

// maxReplica returns the number of failure domains that the device sets ask for.
func maxReplica(spec *ocsv1.StorageClusterSpec) int {
	most := 0
	for i := range spec.StorageDeviceSets {
		most = max(most, int(spec.StorageDeviceSets[i].Replica))
	}
	return most
}

// singleNode reports whether the cluster has one node and is meant to: every device
// set says replica: 1. A cluster whose other nodes are still to come does not, and
// waits for them: the failure domain cannot be changed later.
func singleNode(spec *ocsv1.StorageClusterSpec, clusterNodes int) bool {
	return clusterNodes == 1 && len(spec.StorageDeviceSets) > 0 &&
		!slices.ContainsFunc(spec.StorageDeviceSets, func(s ocsv1.StorageDeviceSet) bool { return s.Replica != 1 })
}

// Domain returns the failure domain. One that was decided before stays: copies of
// the data are placed by it. Otherwise it is the OSD on a single node, the host
// with flexibleScaling, the zone where there are three (two next to an arbiter),
// and else the rack (ocs-operator, setFailureDomain).
func Domain(spec *ocsv1.StorageClusterSpec, before ocsv1.FailureDomain, eligible []*corev1.Node, clusterNodes int) ocsv1.FailureDomain {
	zones := len(Values(eligible, corev1.LabelTopologyZone))
	switch {
	case before != "":
		return before
	case singleNode(spec, clusterNodes):
		return ocsv1.FailureDomainOSD
	case spec.FlexibleScaling:
		return ocsv1.FailureDomainHost
	case zones >= zonesForData, spec.Arbiter.Enable && zones >= zonesBesideArbiter:
		return ocsv1.FailureDomainZone
	}
	return ocsv1.FailureDomainRack
}

// MinDomains returns how many failure domains the OSDs need for the copies of the
// data, and for what the device sets ask for.
func MinDomains(spec *ocsv1.StorageClusterSpec, domain ocsv1.FailureDomain) int {
	switch {
	case domain == ocsv1.FailureDomainOSD:
		return 1
	case spec.Arbiter.Enable:
		return zonesBesideArbiter
	}
	return max(zonesForData, maxReplica(spec))
}

// Values returns the values that nodes have of a label, sorted.
func Values(nodes []*corev1.Node, key string) []string {
	values := sets.New[string]()
	for _, node := range nodes {
		if value, ok := node.Labels[key]; ok {
			values.Insert(value)
		}
	}
	return sets.List(values)
}

// Lacking returns the names of the nodes without a label.
func Lacking(nodes []*corev1.Node, key string) []string {
	var names []string
	for _, node := range nodes {
		if _, ok := node.Labels[key]; !ok {
			names = append(names, node.Name)
		}
	}
	return names
}

// Topologies returns the values of the labels by which failure domains are known
// apart, and of the region, as far as the nodes have them.
func Topologies(nodes []*corev1.Node) map[string][]string {
	found := map[string][]string{}
	for _, key := range []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone, ocsv1.RackLabel, corev1.LabelHostname} {
		if values := Values(nodes, key); len(values) > 0 {
			found[key] = values
		}
	}
	return found
}
