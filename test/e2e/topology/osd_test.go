package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

const (
	storageNamespace = "openshift-storage"
	// rackKey is the label of racks, which the operator gives.
	rackKey = "topology.rook.io/rack"
)

// seeds/003, with the hosts of the storage cluster as pretend nodes, and Rook played
// by the suite.
var _ = Describe("OSDs", func() {
	const storyTimeout = SpecTimeout(6 * time.Minute)
	BeforeEach(enterStorage)

	DescribeTable("spread over all zones as evenly as possible, and over the hosts of each",
		func(ctx SpecContext, zones int, osds int32, perZone, perHost []int) {
			boot(ctx, storageHosts(slices.Repeat([]int{2}, zones)...))
			createStorageCluster(ctx, osds/3)
			expectProjection(ctx, corev1.LabelTopologyZone, perZone)
			rook{}.provision(ctx, cephCluster(ctx))
			expectSpread(ctx, corev1.LabelTopologyZone, perZone, perHost)
		},
		// OSDs of the zones and of their hosts, two in each, from the most to the fewest.
		Entry("3 zones, 3 OSDs", tier.Long, storyTimeout, 3, int32(3), []int{1, 1, 1}, []int{1, 1, 1, 0, 0, 0}),
		Entry("3 zones, 6 OSDs", tier.Long, storyTimeout, 3, int32(6), []int{2, 2, 2}, []int{1, 1, 1, 1, 1, 1}),
		Entry("3 zones, 9 OSDs", storyTimeout, 3, int32(9), []int{3, 3, 3}, []int{2, 2, 2, 1, 1, 1}),
		Entry("3 zones, 12 OSDs", tier.Long, storyTimeout, 3, int32(12), []int{4, 4, 4}, []int{2, 2, 2, 2, 2, 2}),
		Entry("4 zones, 3 OSDs", tier.Long, storyTimeout, 4, int32(3), []int{1, 1, 1, 0}, []int{1, 1, 1, 0, 0, 0, 0, 0}),
		Entry("4 zones, 6 OSDs", tier.Long, storyTimeout, 4, int32(6), []int{2, 2, 1, 1}, []int{1, 1, 1, 1, 1, 1, 0, 0}),
		Entry("4 zones, 9 OSDs", tier.Long, storyTimeout, 4, int32(9), []int{3, 2, 2, 2}, []int{2, 1, 1, 1, 1, 1, 1, 1}),
		Entry("4 zones, 12 OSDs", tier.Long, storyTimeout, 4, int32(12), []int{3, 3, 3, 3}, []int{2, 2, 2, 2, 1, 1, 1, 1}),
		Entry("5 zones, 3 OSDs", tier.Long, storyTimeout, 5, int32(3), []int{1, 1, 1, 0, 0}, []int{1, 1, 1, 0, 0, 0, 0, 0, 0, 0}),
		Entry("5 zones, 6 OSDs", tier.Long, storyTimeout, 5, int32(6), []int{2, 1, 1, 1, 1}, []int{1, 1, 1, 1, 1, 1, 0, 0, 0, 0}),
		Entry("5 zones, 9 OSDs", tier.Long, storyTimeout, 5, int32(9), []int{2, 2, 2, 2, 1}, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 0}),
		Entry("5 zones, 12 OSDs", storyTimeout, 5, int32(12), []int{3, 3, 2, 2, 2}, []int{2, 2, 1, 1, 1, 1, 1, 1, 1, 1}),
	)

	DescribeTable("spread likewise",
		func(ctx SpecContext, mutate func(*ocsv1.StorageCluster), sets int) {
			boot(ctx, storageHosts(2, 2, 2, 2))
			sc := storageCluster(3)
			mutate(sc)
			Expect(k8s.Create(ctx, sc)).To(Succeed())
			expectProjection(ctx, corev1.LabelTopologyZone, []int{3, 2, 2, 2})
			rook{}.provision(ctx, cephClusterWithSets(ctx, sets))
			expectSpread(ctx, corev1.LabelTopologyZone, []int{3, 2, 2, 2}, []int{2, 1, 1, 1, 1, 1, 1, 1})
		},
		Entry("from one set instead of three", tier.Long, storyTimeout, func(sc *ocsv1.StorageCluster) { sc.Spec.DeviceSetLayout = ocsv1.LayoutSingle }, 1),
		Entry("by constraints of their own", tier.Long, storyTimeout, func(sc *ocsv1.StorageCluster) { sc.Spec.OSDPlacement.Mode = ocsv1.OSDPlacementFailureDomain }, 3),
		Entry("on devices that stay in their host", tier.Long, storyTimeout, func(sc *ocsv1.StorageCluster) {
			sc.Spec.StorageDeviceSets[0].Portable = false
			sc.Spec.StorageDeviceSets[0].DataPVCTemplate.Spec.StorageClassName = ptr.To(storageClass)
		}, 3),
	)

	It("spread evenly when they come in steps, each of which is prepared before the next begins", tier.Long, func(ctx SpecContext) {
		boot(ctx, storageHosts(2, 2, 2, 2, 2))
		sc := createStorageCluster(ctx, 1)
		for i, perZone := range [][]int{{1, 1, 1, 0, 0}, {2, 1, 1, 1, 1}, {2, 2, 2, 2, 1}, {3, 3, 2, 2, 2}} {
			count := i + 1
			change(ctx, sc, func(c *ocsv1.StorageCluster) { c.Spec.StorageDeviceSets[0].Count = int32(count) })
			rook{oneByOne: true}.provision(ctx, cephClusterWith(ctx, count))
			expectZones(ctx, perZone)
		}
	}, SpecTimeout(9*time.Minute))

	It("share zones evenly even if one has twice the hosts, and use tainted hosts of the storage cluster only", tier.Long, func(ctx SpecContext) {
		hosts := storageHosts(4, 2, 2)
		machines := labels{"app-0": {corev1.LabelTopologyZone: "zone-a"}, "app-1": {corev1.LabelTopologyZone: "zone-d"}}
		maps.Copy(machines, hosts)
		boot(ctx, machines)
		for name := range hosts {
			change(ctx, node(name), func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: ocsv1.StorageTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule})
			})
		}
		createStorageCluster(ctx, 4)
		rook{}.provision(ctx, cephCluster(ctx))
		expectSpread(ctx, corev1.LabelTopologyZone, []int{4, 4, 4}, []int{2, 2, 2, 2, 1, 1, 1, 1})
		Expect(osdsBy(ctx, corev1.LabelHostname)).NotTo(Or(HaveKey("app-0"), HaveKey("app-1")))
	}, SpecTimeout(6*time.Minute))

	It("spread over three racks that the operator makes of hosts without any topology", func(ctx SpecContext) {
		boot(ctx, storageHosts(6).without(corev1.LabelTopologyZone))
		sc := storageCluster(3)
		sc.Spec.StorageDeviceSets[0].DataPVCTemplate.Spec.StorageClassName = ptr.To(storageNetwork)
		Expect(k8s.Create(ctx, sc)).To(Succeed())
		expectProjection(ctx, rackKey, []int{3, 3, 3})
		Expect(nodesBy(ctx, rackKey)).To(Equal(map[string]int{"rack0": 2, "rack1": 2, "rack2": 2}))

		ceph := cephCluster(ctx)
		for _, set := range ceph.Spec.Storage.StorageClassDeviceSets {
			Expect(set.PreparePlacement.TopologySpreadConstraints[0].TopologyKey).To(Equal(rackKey), "of %s, from the beginning", set.Name)
		}
		rook{}.provision(ctx, ceph)
		expectSpread(ctx, rackKey, []int{3, 3, 3}, []int{2, 2, 2, 1, 1, 1})
	}, SpecTimeout(6*time.Minute))

	It("stay as they are on upgrade, and those that come use the zone that was left out", func(ctx SpecContext) {
		boot(ctx, storageHosts(2, 2, 2, 2))

		By("running three OSDs, each bound to one of three zones, as ocs-operator did it")
		legacy := legacyCluster()
		Expect(k8s.Create(ctx, legacy)).To(Succeed())
		rook{}.provision(ctx, legacy)
		Expect(osdsBy(ctx, corev1.LabelTopologyZone)).To(Equal(map[string]int{"zone-a": 1, "zone-b": 1, "zone-c": 1, "zone-d": 0}))
		running, sets := daemons(ctx), legacy.Spec.Storage.StorageClassDeviceSets

		By("waiting until a person hands the CephCluster over")
		sc := createStorageCluster(ctx, 1)
		Eventually(current(ctx, sc)).Should(expect.Problem(ocsv1.CephClusterReadyCondition, common.ConflictReason, common.OwnerAnnotation))
		Expect(cephCluster(ctx).Spec.Storage.StorageClassDeviceSets).To(Equal(sets))
		change(ctx, cephCluster(ctx), func(c *cephv1.CephCluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, common.OwnerAnnotation, "StorageCluster.ocs.openshift.io/"+sc.Name)
		})

		By("leaving their device sets alone")
		Eventually(current(ctx, sc)).Should(expect.Ready())
		Expect(placements(sc)).To(Equal(map[string]ocsv1.DeviceSetPlacement{"ocs-deviceset": ocsv1.PlacementLegacy}))
		Expect(cephCluster(ctx).Spec.Storage.StorageClassDeviceSets).To(Equal(sets))

		By("spreading a new device set, which counts the OSDs that are there")
		change(ctx, sc, func(c *ocsv1.StorageCluster) {
			c.Spec.StorageDeviceSets = append(c.Spec.StorageDeviceSets, deviceSetOf("more", 1))
		})
		ceph := cephClusterWithSets(ctx, 6)
		Expect(ceph.Spec.Storage.StorageClassDeviceSets).To(ContainElements(sets))
		rook{oneByOne: true}.provision(ctx, ceph)
		expectZones(ctx, []int{2, 2, 1, 1})
		Eventually(current(ctx, sc)).Should(expect.Ready())
		Expect(placements(sc)).To(Equal(map[string]ocsv1.DeviceSetPlacement{"ocs-deviceset": ocsv1.PlacementLegacy, "more": ocsv1.PlacementConstraints}))

		By("spreading the old one once an annotation names it, under the same names")
		change(ctx, sc, func(c *ocsv1.StorageCluster) {
			c.Spec.StorageDeviceSets[0].Count = 2
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, ocsv1.ReplacePlacementAnnotation, "ocs-deviceset")
		})
		ceph = cephClusterWith(ctx, 2)
		Expect(names(ceph)).To(ConsistOf("ocs-deviceset-0", "ocs-deviceset-1", "ocs-deviceset-2", "more-0", "more-1", "more-2"))
		rook{oneByOne: true}.provision(ctx, ceph)
		expectZones(ctx, []int{3, 2, 2, 2})
		Eventually(current(ctx, sc)).Should(expect.Ready())
		Expect(placements(sc)).To(HaveKeyWithValue("ocs-deviceset", ocsv1.PlacementConstraints))
		now := daemons(ctx)
		for name, uid := range running {
			Expect(now).To(HaveKeyWithValue(name, uid), "the OSD that ran before")
		}
	}, SpecTimeout(9*time.Minute))
})

// enterStorage makes the namespace of the storage clusters, which is empty again at
// the end of the story.
func enterStorage(ctx SpecContext) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: storageNamespace}}
	Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, ns))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		removeAll(ctx, storageNamespace, &ocsv1.StorageCluster{}, &cephv1.CephCluster{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{})
	}, NodeTimeout(6*time.Minute))
}

// storageHosts are as many hosts for OSDs as given in zone-a, zone-b and so on.
func storageHosts(perZone ...int) labels {
	hosts := labels{}
	for i, n := range perZone {
		zone := "zone-" + string(rune('a'+i))
		for j := range n {
			hosts[fmt.Sprintf("%s-%d", zone, j)] = map[string]string{corev1.LabelTopologyZone: zone, ocsv1.StorageNodeLabel: ""}
		}
	}
	return hosts
}

// without takes a label off all nodes.
func (l labels) without(key string) labels {
	for name := range l {
		delete(l[name], key)
	}
	return l
}

func deviceSetOf(name string, count int32) ocsv1.StorageDeviceSet {
	set := ocsv1.StorageDeviceSet{Name: name, Count: count, Replica: 3, Portable: true}
	set.DataPVCTemplate.Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To(cloudDisks), VolumeMode: ptr.To(corev1.PersistentVolumeBlock),
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("512Gi")}},
	}
	return set
}

// storageCluster has one device set with count OSDs in each of three sets.
func storageCluster(count int32) *ocsv1.StorageCluster {
	return &ocsv1.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: storageNamespace, Name: "ocs"},
		Spec:       ocsv1.StorageClusterSpec{StorageDeviceSets: []ocsv1.StorageDeviceSet{deviceSetOf("ocs-deviceset", count)}},
	}
}

func createStorageCluster(ctx context.Context, count int32) *ocsv1.StorageCluster {
	GinkgoHelper()
	sc := storageCluster(count)
	Expect(k8s.Create(ctx, sc)).To(Succeed())
	return sc
}

// cephCluster waits for the CephCluster and returns it.
func cephCluster(ctx context.Context) *cephv1.CephCluster {
	GinkgoHelper()
	return cephClusterWithSets(ctx, 3)
}

// cephClusterWithSets waits until the CephCluster has that many sets.
func cephClusterWithSets(ctx context.Context, n int) *cephv1.CephCluster {
	GinkgoHelper()
	return awaitCeph(ctx, HaveLen(n))
}

// cephClusterWith waits until the sets of the first device set have that many OSDs each.
func cephClusterWith(ctx context.Context, count int) *cephv1.CephCluster {
	GinkgoHelper()
	return awaitCeph(ctx, ContainElement(And(HaveField("Name", "ocs-deviceset-2"), HaveField("Count", count))))
}

func awaitCeph(ctx context.Context, sets OmegaMatcher) *cephv1.CephCluster {
	GinkgoHelper()
	ceph := &cephv1.CephCluster{}
	Eventually(func() ([]cephv1.StorageClassDeviceSet, error) {
		ceph = &cephv1.CephCluster{}
		err := k8s.Get(ctx, client.ObjectKey{Namespace: storageNamespace, Name: "ocs-cephcluster"}, ceph)
		return ceph.Spec.Storage.StorageClassDeviceSets, err
	}).Should(sets)
	return ceph
}

// legacyCluster is a CephCluster of the time before constraints: three sets, each
// bound to a zone by node affinity (ocs-operator before 62e1a82b9).
func legacyCluster() *cephv1.CephCluster {
	ceph := &cephv1.CephCluster{ObjectMeta: metav1.ObjectMeta{Namespace: storageNamespace, Name: "ocs-cephcluster"}}
	template := cephv1.VolumeClaimTemplate{Spec: deviceSetOf("", 0).DataPVCTemplate.Spec}
	for i, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		apart := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: cephv1.AppLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{cephv1.AppOSD}}},
		}}
		ceph.Spec.Storage.StorageClassDeviceSets = append(ceph.Spec.Storage.StorageClassDeviceSets, cephv1.StorageClassDeviceSet{
			Name: fmt.Sprintf("ocs-deviceset-%d", i), Count: 1, Portable: true, VolumeClaimTemplates: []cephv1.VolumeClaimTemplate{template},
			Placement: cephv1.Placement{
				NodeAffinity: requires(corev1.LabelTopologyZone, zone),
				PodAntiAffinity: &corev1.PodAntiAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}},
				},
			},
		})
	}
	return ceph
}

func names(ceph *cephv1.CephCluster) []string {
	var all []string
	for _, set := range ceph.Spec.Storage.StorageClassDeviceSets {
		all = append(all, set.Name)
	}
	return all
}

// placements are how the device sets are placed, as the status says.
func placements(sc *ocsv1.StorageCluster) map[string]ocsv1.DeviceSetPlacement {
	all := map[string]ocsv1.DeviceSetPlacement{}
	for _, set := range sc.Status.DeviceSets {
		all[set.Name] = set.Placement
	}
	return all
}

// daemons are the identities of the OSDs.
func daemons(ctx context.Context) map[string]types.UID {
	GinkgoHelper()
	uids := map[string]types.UID{}
	for _, pod := range osdPods(ctx) {
		uids[pod.Name] = pod.UID
	}
	return uids
}

func osdPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(k8s.List(ctx, list, client.InNamespace(storageNamespace), client.MatchingLabels{cephv1.AppLabel: cephv1.AppOSD})).To(Succeed())
	return list.Items
}

// osdsBy counts the OSDs by a label of their nodes; a value that only nodes without
// OSDs have is there too, if the nodes are for OSDs.
func osdsBy(ctx context.Context, key string) map[string]int {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(k8s.List(ctx, nodes)).To(Succeed())
	values, counts := map[string]string{}, map[string]int{}
	for _, n := range nodes.Items {
		values[n.Name] = n.Labels[key]
		if _, ours := n.Labels[ocsv1.StorageNodeLabel]; ours {
			counts[n.Labels[key]] += 0
		}
	}
	for _, pod := range osdPods(ctx) {
		counts[values[pod.Spec.NodeName]]++
	}
	return counts
}

// nodesBy counts the nodes for OSDs by a label.
func nodesBy(ctx context.Context, key string) map[string]int {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(k8s.List(ctx, nodes, client.HasLabels{ocsv1.StorageNodeLabel})).To(Succeed())
	counts := map[string]int{}
	for _, n := range nodes.Items {
		counts[n.Labels[key]]++
	}
	return counts
}

// descending returns the numbers from the most to the fewest.
func descending(counts map[string]int) []int {
	var all []int
	for _, n := range counts {
		all = append(all, n)
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// expectSpread checks where the OSDs run, and that the status says the same.
func expectSpread(ctx context.Context, key string, perDomain, perHost []int) {
	GinkgoHelper()
	counts := osdsBy(ctx, key)
	Expect(descending(counts)).To(Equal(perDomain), "OSDs by %s: %v", key, counts)
	hosts := osdsBy(ctx, corev1.LabelHostname)
	Expect(descending(hosts)).To(Equal(perHost), "OSDs by host: %v", hosts)
	sc := storageCluster(0)
	Eventually(current(ctx, sc)).Should(expect.Ready())
	Eventually(func() (map[string]int, error) {
		_, err := current(ctx, sc)()
		return distribution(sc), err
	}).Should(Equal(counts), "what the status says")
}

// expectZones is expectSpread for all device sets, whatever the hosts.
func expectZones(ctx context.Context, perZone []int) {
	GinkgoHelper()
	counts := osdsBy(ctx, corev1.LabelTopologyZone)
	Expect(descending(counts)).To(Equal(perZone), "OSDs by zone: %v", counts)
}

// expectProjection checks what the status says before there is any OSD.
func expectProjection(ctx context.Context, key string, perDomain []int) {
	GinkgoHelper()
	sc := storageCluster(0)
	Eventually(current(ctx, sc)).Should(expect.Ready())
	Expect(sc.Status.FailureDomainKey).To(Equal(key))
	Expect(descending(distribution(sc))).To(Equal(perDomain), "projected: %v", distribution(sc))
}

// distribution is what the status says of all device sets together.
func distribution(sc *ocsv1.StorageCluster) map[string]int {
	counts := map[string]int{}
	for _, set := range sc.Status.DeviceSets {
		for _, d := range set.Distribution {
			counts[d.Domain] += int(d.OSDs)
		}
	}
	return counts
}
