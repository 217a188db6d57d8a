package osd

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

const (
	ns   = "openshift-storage"
	zone = corev1.LabelTopologyZone
	rack = ocsv1.RackLabel
	host = corev1.LabelHostname
)

// makeNode returns a storage node with room, and labels of alternating keys and values.
func makeNode(name string, labels ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{host: name, ocsv1.StorageNodeLabel: ""}}}
	for i := 0; i < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return node
}

// inZones returns as many nodes as said in each of zone0, zone1, ...
func inZones(counts ...int) []*corev1.Node {
	var nodes []*corev1.Node
	for z, count := range counts {
		for i := range count {
			nodes = append(nodes, makeNode(fmt.Sprintf("z%d-n%d", z, i), zone, fmt.Sprintf("zone%d", z)))
		}
	}
	return nodes
}

// plain returns nodes without zone or rack.
func plain(n int) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range n {
		nodes = append(nodes, makeNode(fmt.Sprintf("n%d", i)))
	}
	return nodes
}

func makeSet(name string, count, replica int32, change ...func(*ocsv1.StorageDeviceSet)) ocsv1.StorageDeviceSet {
	set := ocsv1.StorageDeviceSet{Name: name, Count: count, Replica: replica, Portable: true}
	set.DataPVCTemplate.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: ptr.To(corev1.PersistentVolumeBlock), StorageClassName: ptr.To("gp2"),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")}},
	}
	for _, c := range change {
		c(&set)
	}
	return set
}

func specOf(sets ...ocsv1.StorageDeviceSet) *ocsv1.StorageClusterSpec {
	return &ocsv1.StorageClusterSpec{StorageDeviceSets: sets, DeviceSetLayout: ocsv1.LayoutSplit, OSDPlacement: ocsv1.OSDPlacementSpec{Mode: ocsv1.OSDPlacementSeedPhase1}}
}

// cephWith is a CephCluster that has the sets.
func cephWith(t testing.TB, sets ...cephv1.StorageClassDeviceSet) Ceph {
	t.Helper()
	ceph := Ceph{Exists: true}
	for i := range sets {
		item, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&sets[i])
		if err != nil {
			t.Fatal(err)
		}
		ceph.Sets = append(ceph.Sets, item)
	}
	return ceph
}

// decide decides about zones.
func decide(t testing.TB, spec *ocsv1.StorageClusterSpec, ceph Ceph, before ...ocsv1.DeviceSetStatus) *Decision {
	t.Helper()
	d, err := Decide(spec, zone, ceph, Record{DeviceSets: before}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// none is no placement.
var none cephv1.Placement

func inMode(mode ocsv1.OSDPlacementMode) *ocsv1.StorageClusterSpec {
	spec := specOf()
	spec.OSDPlacement.Mode = mode
	return spec
}

func withArbiter(spec *ocsv1.StorageClusterSpec, location string) *ocsv1.StorageClusterSpec {
	spec.Arbiter.Enable = true
	spec.NodeTopologies = &ocsv1.NodeTopologyMap{ArbiterLocation: location}
	return spec
}

// spread is a constraint as people would write it down.
func spread(key string, otherwise corev1.UnsatisfiableConstraintAction, apps ...string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: otherwise,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: apps}}},
	}
}

func constraints(all ...corev1.TopologySpreadConstraint) cephv1.Placement {
	return cephv1.Placement{TopologySpreadConstraints: all}
}

// requires is an affinity to nodes with one of the values in each term.
func requires(terms ...corev1.NodeSelectorRequirement) *corev1.NodeAffinity {
	required := &corev1.NodeSelector{}
	for _, t := range terms {
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{t}})
	}
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func toleration(key string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}

// storageToleration is what every daemon tolerates.
var storageToleration = corev1.Toleration{Key: "node.ocs.openshift.io/storage", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule}
