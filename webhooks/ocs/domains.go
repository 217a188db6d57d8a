package ocs

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/osd"
)

// domainWarnings reports failure domains that are missing. More nodes may come
// after the storage cluster, so this is no error, and the conditions say it too.
// Nodes that cannot be read are no reason to refuse anything.
func (v validator) domainWarnings(ctx context.Context, c *ocsv1.StorageCluster) []string {
	nodes, err := v.cluster.nodes(ctx)
	if err != nil || len(c.Spec.StorageDeviceSets) == 0 {
		return nil
	}
	eligible, err := osd.Eligible(&c.Spec, nodes)
	if err != nil {
		return nil // the rules have refused the selector
	}
	return append(missingDomains(c, eligible, len(nodes)), missingKeys(c, eligible)...)
}

// missingKeys reports a topologyKey that no node for OSDs has. Racks will come.
func missingKeys(c *ocsv1.StorageCluster, eligible []*corev1.Node) []string {
	var warnings []string
	for i := range c.Spec.StorageDeviceSets {
		key := osd.TopologyKey(&c.Spec.StorageDeviceSets[i], ocsv1.RackLabel)
		if len(eligible) > 0 && key != ocsv1.RackLabel && len(osd.Values(eligible, key)) == 0 {
			at := field.NewPath("spec", "storageDeviceSets").Index(i).Child("topologyKey")
			warnings = append(warnings, fmt.Sprintf("%s: none of the %d nodes for OSDs has the label %s, so the OSDs wait: label the nodes, or remove topologyKey", at, len(eligible), key))
		}
	}
	return warnings
}

func missingDomains(c *ocsv1.StorageCluster, eligible []*corev1.Node, clusterNodes int) []string {
	at := field.NewPath("spec", "storageDeviceSets")
	wanted := "label " + ocsv1.StorageNodeLabel
	if c.Spec.LabelSelector != nil {
		wanted = "labels of spec.labelSelector, " + metav1.FormatLabelSelector(c.Spec.LabelSelector)
	}
	if len(eligible) == 0 {
		return []string{fmt.Sprintf("%s: no node has the %s, so the OSDs wait: label the nodes for the OSDs", at, wanted)}
	}
	domain := osd.Domain(&c.Spec, c.Status.FailureDomain, eligible, clusterNodes)
	need, have := osd.MinDomains(&c.Spec, domain), domains(domain, eligible, osd.MinDomains(&c.Spec, domain))
	if have >= need {
		return nil
	}
	problem := fmt.Sprintf("%d failure domains (%s) are needed, and the %d nodes with the %s are in %d", need, domain, len(eligible), wanted, have)
	i := slices.IndexFunc(c.Spec.StorageDeviceSets, func(s ocsv1.StorageDeviceSet) bool { return int(s.Replica) == need })
	if i >= 0 && have >= ocsv1.DefaultReplica {
		return []string{fmt.Sprintf("%s: %s: add nodes in other domains, or set at most %d", at.Index(i).Child("replica"), problem, have)}
	}
	return []string{fmt.Sprintf("%s: %s, too few for the copies of the data: add nodes in other domains", at, problem)}
}

// domains counts the failure domains that the nodes are in, or will be in once each
// has a rack.
func domains(domain ocsv1.FailureDomain, eligible []*corev1.Node, need int) int {
	values := sets.New(osd.Values(eligible, osd.Key(domain))...)
	if domain == ocsv1.FailureDomainRack {
		values.Insert(slices.Collect(maps.Values(osd.Racks(eligible, need)))...)
	}
	return values.Len()
}
