package storagecluster_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/story"
)

var _ = Describe("A StorageCluster", func() {
	var w *world
	BeforeEach(func() {
		withRook()
		w = newWorld()
	})

	It("becomes three device sets with constraints that are all the same, over however many zones there are", func() {
		w.zones(5)
		c := w.cluster([]string{set("ocs-deviceset", 2, 3)})
		ready(c)
		Expect(w.counts()).To(Equal([]string{"ocs-deviceset-0=2", "ocs-deviceset-1=2", "ocs-deviceset-2=2"}))
		for _, s := range w.sets(Default) {
			Expect(summary(s.Placement)).To(Equal([]string{"kubernetes.io/hostname/ScheduleAnyway"}))
			Expect(summary(*s.PreparePlacement)).To(Equal([]string{"topology.kubernetes.io/zone/DoNotSchedule", "kubernetes.io/hostname/ScheduleAnyway"}))
			Expect(s.Portable).To(BeTrue())
		}
		ceph := get(Default, w.ceph())
		Expect(metav1.IsControlledBy(ceph, c)).To(BeTrue(), "a CephCluster that was made for a StorageCluster is its own")
		terms, _, _ := unstructured.NestedSlice(ceph.Object, "spec", "placement", "all", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		Expect(terms).To(HaveLen(1))
		tolerations, _, _ := unstructured.NestedSlice(ceph.Object, "spec", "placement", "all", "tolerations")
		Expect(tolerations).To(HaveLen(1))

		status := c.Status
		Expect(status.FailureDomain).To(Equal(ocsv1.FailureDomainZone))
		Expect(status.FailureDomainKey).To(Equal(zone))
		Expect(status.FailureDomainValues).To(Equal([]string{"z0", "z1", "z2", "z3", "z4"}))
		Expect(status.EligibleNodes).To(Equal([]string{"n0", "n1", "n2", "n3", "n4"}))
		Expect(status.NodeTopologies.Labels).To(HaveKeyWithValue(zone, status.FailureDomainValues))
		Expect(status.OSDs).To(BeEquivalentTo(6))
		Expect(status.DeviceSets).To(HaveLen(1))
		one := status.DeviceSets[0]
		Expect([]any{one.Name, one.Placement, one.OSDs, one.Skew, one.StorageClassDeviceSets}).To(Equal(
			[]any{"ocs-deviceset", ocsv1.PlacementConstraints, int32(6), int32(1), []string{"ocs-deviceset-0", "ocs-deviceset-1", "ocs-deviceset-2"}}))
		Expect(one.Distribution).To(HaveLen(5))
		Expect(status.LayoutSwitch).To(HaveValue(HaveField("OrphanedPVCCount", BeZero())), "nothing is lost by a switch while there is no OSD")
	})

	It("writes nothing while nothing changes, whatever causes a reconciliation", func() {
		w.nodes("a", "b", "c")
		c := w.cluster([]string{set("x", 1, 3, "deviceClass: ssd", "resources: {requests: {cpu: \"0.5\", memory: 5Gi}}"), set("new", 4, 0)},
			"placement: {all: {tolerations: [{key: mine, operator: Exists}]}, mon: {tolerations: [{key: mine, operator: Exists}]}}")
		ready(c)
		w.quiet()
		for range 2 {
			w.restart()
			Consistently(w.wire.all).Should(BeEmpty(), "what a resync writes")
		}
		Expect(get(Default, w.ceph()).GetGeneration()).To(BeEquivalentTo(1), "it was written once")
	})

	It("names fields of ocs-operator that have no effect, and is ready all the same", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3)}, "monPVCTemplate: {spec: {storageClassName: gp2-csi}}", "resourceProfile: lean", "encryption: {kms: {enable: true}}")
		ready(c)
		shows(c, condition.InputReadyCondition, "True/Ready/", "have no effect", "spec.resourceProfile, spec.monPVCTemplate, spec.encryption.kms")
		w.quiet()
	})

	It("changes nothing while a device set has fields that are not supported, and continues without them", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3, "metadataPVCTemplate: {spec: {storageClassName: nvme}}", "initialWeight: 1.5TiB")})
		shows(c, condition.InputReadyCondition, "False/UnsupportedField/Error", "spec.storageDeviceSets[0].metadataPVCTemplate", "spec.storageDeviceSets[0].initialWeight")
		w.quiet()
		Expect(api.Get(ctx, client.ObjectKeyFromObject(w.ceph()), w.ceph())).NotTo(Succeed(), "there is no CephCluster")
		change(c, func(c *ocsv1.StorageCluster) {
			c.Spec.StorageDeviceSets[0].UnsupportedSetFields = ocsv1.UnsupportedSetFields{}
		})
		ready(c)
	})

	It("names the zone that has no OSD of a device class of which others have several", func() {
		w.zones(3)
		w.cluster([]string{set("ssd", 4, 0, "deviceClass: ssd")})
		for i, at := range []string{"n0", "n1", "n2", "n2"} {
			w.osd(i, []string{"ssd-0", "ssd-1", "ssd-2", "ssd-0"}[i], at)
		}
		c := w.cluster([]string{set("ssd", 4, 0, "deviceClass: ssd"), set("hdd", 3, 0, "deviceClass: hdd")})
		shows(c, topologyv1.PlacementReadyCondition, "False/DeviceClassUneven/Warning", "z2 has no OSD of device class hdd (z0 2, z1 1, z2 0)", "spec.osdPlacement.mode: FailureDomain")
	})

	It("gives nodes their racks before the label is used", func() {
		w.nodes("a", "b", "c")
		c := w.cluster([]string{set("x", 1, 3)})
		ready(c)
		for node, want := range map[string]string{"a": "rack0", "b": "rack1", "c": "rack2"} {
			Expect(get(Default, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}).Labels).To(HaveKeyWithValue(rack, want))
		}
		Expect(c.Status.FailureDomainKey).To(Equal(rack))
		Expect(c.Status.FailureDomainValues).To(Equal([]string{"rack0", "rack1", "rack2"}))
		Expect(summary(*w.sets(Default)[0].PreparePlacement)).To(Equal([]string{rack + "/DoNotSchedule", "kubernetes.io/hostname/ScheduleAnyway"}))
		Expect(get(Default, w.ceph()).GetGeneration()).To(BeEquivalentTo(1), "it was never written without the key")
		Expect(c.Status.SpreadSummary).To(Equal("rack0=1,rack1=1,rack2=1"))

		By("a node that joins")
		w.nodes("d")
		Eventually(func(g Gomega) {
			g.Expect(get(g, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "d"}}).Labels).To(HaveKeyWithValue(rack, "rack0"))
		}).Should(Succeed())
	})

	It("keeps its failure domain, and says so when there is too little of it", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3)})
		ready(c)
		w.quiet()
		before := get(Default, w.ceph()).GetResourceVersion()
		label("n2", zone, "")
		wrong(c, ocsv1.FailureDomainReadyCondition, "TooFewDomains/Warning", "the zone", "need 3", "only 2 exist", zone)
		Expect(c.Status.FailureDomain).To(Equal(ocsv1.FailureDomainZone))
		Expect(get(Default, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}).Labels).NotTo(HaveKey(rack), "no rack is made where there are zones")
		w.quiet()
		Expect(get(Default, w.ceph()).GetResourceVersion()).To(Equal(before))
		Eventually(w.events).Should(ContainElement(HavePrefix("Warning TooFewDomains")))

		label("n2", zone, "z9")
		ready(c)
		Expect(c.Status.FailureDomainValues).To(Equal([]string{"z0", "z1", "z9"}))
		w.nodes("outside")
		wrong(c, ocsv1.FailureDomainReadyCondition, "NodesOutsideDomains/Warning", "outside", "kubectl label node outside "+zone+"=")
		label("outside", ocsv1.StorageNodeLabel, "")
		ready(c)
	})

	It("spreads daemons over the failure domain too when asked to", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3)}, "osdPlacement: {mode: FailureDomain}")
		ready(c)
		Expect(summary(w.sets(Default)[0].Placement)).To(Equal([]string{zone + "/DoNotSchedule", "kubernetes.io/hostname/ScheduleAnyway"}))
		w.cluster([]string{set("x", 1, 3)}, "osdPlacement: {mode: SeedPhase1}")
		Eventually(func() []string { return summary(w.sets(Default)[0].Placement) }).Should(Equal([]string{"kubernetes.io/hostname/ScheduleAnyway"}))
	})

	It("survives an empty placement, which removes the constraints", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 3, 0, "deviceClass: ssd")}, "placement: {osd: {}, prepareosd: {}}")
		ready(c)
		Expect(summary(w.sets(Default)[0].Placement)).To(BeEmpty())
		Expect(c.Status.DeviceSets[0].Placement).To(Equal(ocsv1.PlacementConstraints))
		w.quiet()
		w.cluster([]string{set("x", 3, 0, "deviceClass: ssd")})
		Eventually(func() []string { return summary(w.sets(Default)[0].Placement) }).Should(HaveLen(1))
	})

	It("keeps the OSDs out of the zone of an arbiter, although its node is labelled", func() {
		w.nodes("a0 "+zone+"=a", "a1 "+zone+"=a", "b0 "+zone+"=b", "b1 "+zone+"=b", "arbiter "+zone+"=c")
		c := w.cluster([]string{set("x", 1, 4)}, "arbiter: {enable: true}", "nodeTopologies: {arbiterLocation: c}")
		ready(c)
		Expect(c.Status.SpreadSummary).To(Equal("a=2,b=2"))
		Expect(c.Status.FailureDomain).To(Equal(ocsv1.FailureDomainZone))
		Expect(c.Status.NodeTopologies.ArbiterLocation).To(Equal("c"))
		Expect(w.counts()).To(HaveLen(4))
	})
})

var _ = Describe("A CephCluster", func() {
	var w *world
	BeforeEach(func() {
		withRook()
		w = newWorld()
	})

	// What a person and Rook wrote before.
	const theirs = `
apiVersion: ceph.rook.io/v1
kind: CephCluster
metadata: {name: ocs-cephcluster, labels: {theirs: label}, annotations: {edpm.openstack.org/owner: StorageCluster.ocs.openshift.io/ocs}}
spec:
  cephVersion: {image: "ceph:v19"}
  mon: {count: 5}
  placement: {mon: {tolerations: [{key: theirs, operator: Exists}]}}
  storage:
    onlyApplyOSDPlacement: false
    storageClassDeviceSets:
    - {name: theirs, count: 2, encrypted: true, volumeClaimTemplates: [{spec: {storageClassName: gp3}}]}
`

	It("keeps what others wrote, and has no owner that it did not have", func() {
		w.apply(theirs)
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3, "encrypted: false")})
		ready(c)
		Expect(w.counts()).To(Equal([]string{"theirs=2", "x-0=1", "x-1=1", "x-2=1"}))
		kept := func(g Gomega, mons int64) {
			ceph := get(g, w.ceph())
			g.Expect(ceph.GetLabels()).To(HaveKeyWithValue("theirs", "label"))
			g.Expect(ceph.GetOwnerReferences()).To(BeEmpty())
			for path, want := range map[string]any{"spec.cephVersion.image": "ceph:v19", "spec.mon.count": mons, "spec.storage.onlyApplyOSDPlacement": false} {
				got, _, _ := unstructured.NestedFieldNoCopy(ceph.Object, strings.Split(path, ".")...)
				g.Expect(got).To(Equal(want), path)
			}
			mon, _, _ := unstructured.NestedSlice(ceph.Object, "spec", "placement", "mon", "tolerations")
			g.Expect(mon).To(HaveLen(1))
			sets, _, _ := unstructured.NestedSlice(ceph.Object, "spec", "storage", "storageClassDeviceSets")
			g.Expect(sets).To(ContainElement(HaveKeyWithValue("encrypted", true)))
		}
		kept(Default, 5)
		w.quiet()

		By("a user who changes what is theirs")
		change(w.ceph(), func(u *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(u.Object, int64(3), "spec", "mon", "count")).To(Succeed())
		})
		w.quiet()
		kept(Default, 3)

		By("a user who changes what is not theirs, next to what is")
		change(w.ceph(), func(u *unstructured.Unstructured) {
			sets, _, _ := unstructured.NestedSlice(u.Object, "spec", "storage", "storageClassDeviceSets")
			sets[1].(map[string]any)["count"], sets[1].(map[string]any)["schedulerName"] = int64(7), "theirs"
			Expect(unstructured.SetNestedSlice(u.Object, append(sets[:2], sets[3:]...), "spec", "storage", "storageClassDeviceSets")).To(Succeed())
		})
		Eventually(w.counts).Should(ConsistOf("theirs=2", "x-0=1", "x-1=1", "x-2=1"))
		sets, _, _ := unstructured.NestedSlice(get(Default, w.ceph()).Object, "spec", "storage", "storageClassDeviceSets")
		Expect(sets[1]).To(HaveKeyWithValue("schedulerName", "theirs"))
		kept(Default, 3)
		w.quiet()

		By("a device set that leaves the spec")
		w.cluster([]string{set("new", 1, 1, "encrypted: false")})
		Eventually(w.counts).Should(Equal([]string{"theirs=2", "new-0=1"}))
		ready(c)
	})

	It("stays with its owner", func() {
		w.apply(theirs)
		change(w.ceph(), func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "somebody", UID: "1", Controller: ptr.To(true)}})
		})
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3, "encrypted: false")})
		wrong(c, ocsv1.CephClusterReadyCondition, "Conflict/Error", "CephCluster", "ConfigMap/somebody", "delete it if nothing needs it")
		Expect(w.counts()).To(Equal([]string{"theirs=2"}))
		change(w.ceph(), func(u *unstructured.Unstructured) {
			u.SetOwnerReferences(nil)
		})
		ready(c)
	})

	// As ocs-operator made them before topology spread constraints.
	const pinned = `
apiVersion: ceph.rook.io/v1
kind: CephCluster
metadata: {name: ocs-cephcluster, annotations: {edpm.openstack.org/owner: StorageCluster.ocs.openshift.io/ocs}}
spec:
  storage:
    storageClassDeviceSets:
    - {name: x-0, count: 1, portable: true, encrypted: true, resources: {requests: {cpu: "2"}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: gp2}}],
       placement: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z0]}]}]}}}}
    - {name: x-1, count: 1, portable: true, encrypted: true, resources: {requests: {cpu: "2"}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: gp2}}],
       placement: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z1]}]}]}}}}
    - {name: x-2, count: 1, portable: true, encrypted: true, resources: {requests: {cpu: "2"}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: gp2}}],
       placement: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z2]}]}]}}}}
`

	It("keeps the placement of the OSDs that it has, until their set is touched", func() {
		w.apply(pinned)
		found, _, _ := unstructured.NestedSlice(get(Default, w.ceph()).Object, "spec", "storage", "storageClassDeviceSets")
		for i, s := range []string{"x-0", "x-1", "x-2"} {
			w.osd(i, s, []string{"n0", "n1", "n2"}[i])
		}
		w.zones(5)
		c := w.cluster([]string{set("x", 1, 3)})
		ready(c)
		Expect(c.Status.DeviceSets[0].Placement).To(Equal(ocsv1.PlacementLegacy))
		Expect(c.Status.SpreadSummary).To(Equal("z0=1,z1=1,z2=1,z3=0,z4=0"))
		now, _, _ := unstructured.NestedSlice(get(Default, w.ceph()).Object, "spec", "storage", "storageClassDeviceSets")
		Expect(now).To(Equal(found), "to the letter")
		w.quiet()
		w.restart()
		Consistently(w.wire.all).Should(BeEmpty(), "a new manager knows it too")

		By("a new set next to it")
		w.cluster([]string{set("x", 1, 3), set("new", 1, 3, "encrypted: true")})
		ready(c)
		Expect(c.Status.DeviceSets[0].Placement).To(Equal(ocsv1.PlacementLegacy))
		Expect(c.Status.DeviceSets[1].Placement).To(Equal(ocsv1.PlacementConstraints))
		Expect(c.Status.SpreadSummary).To(MatchRegexp("z3=1,z4=1$"), "the new OSDs go where there are none first")
		now, _, _ = unstructured.NestedSlice(get(Default, w.ceph()).Object, "spec", "storage", "storageClassDeviceSets")
		Expect(now[:3]).To(Equal(found))

		By("another count of the old set")
		w.cluster([]string{set("x", 2, 3), set("new", 1, 3, "encrypted: true")})
		Eventually(w.counts).Should(Equal([]string{"x-0=2", "x-1=2", "x-2=2", "new-0=1", "new-1=1", "new-2=1"}), "the names stay")
		ready(c)
		Expect(c.Status.DeviceSets[0].Placement).To(Equal(ocsv1.PlacementLegacy))
		now, _, _ = unstructured.NestedSlice(get(Default, w.ceph()).Object, "spec", "storage", "storageClassDeviceSets")
		for i := range found {
			found[i].(map[string]any)["count"] = int64(2)
		}
		Expect(now[:3]).To(Equal(found), "no OSD that runs gets another placement")

		By("another change of the old set")
		w.cluster([]string{set("x", 2, 3, "deviceType: SSD"), set("new", 1, 3, "encrypted: true")})
		wrong(c, ocsv1.CephClusterReadyCondition, "LegacyPlacement/Error", "spec.storageDeviceSets[0] has changed", "edpm.openstack.org/replace-placement=x")
		w.quiet()
		now, _, _ = unstructured.NestedSlice(get(Default, w.ceph()).Object, "spec", "storage", "storageClassDeviceSets")
		Expect(now[:3]).To(Equal(found))

		By("the annotation that names it")
		change(c, func(c *ocsv1.StorageCluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "edpm.openstack.org/replace-placement", "x")
		})
		ready(c)
		Expect(w.counts()).To(Equal([]string{"x-0=2", "x-1=2", "x-2=2", "new-0=1", "new-1=1", "new-2=1"}), "the names stay")
		Expect(c.Status.DeviceSets[0].Placement).To(Equal(ocsv1.PlacementConstraints))
		for _, s := range w.sets(Default) {
			terms := s.Placement.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			Expect(terms).To(HaveLen(1))
			Expect(terms[0].MatchExpressions).To(ConsistOf(HaveField("Key", ocsv1.StorageNodeLabel)), "no zone")
			Expect(summary(*s.PreparePlacement)).To(HaveLen(2))
		}
		now, _, _ = unstructured.NestedSlice(get(Default, w.ceph()).Object, "spec", "storage", "storageClassDeviceSets")
		Expect(now[0]).To(And(HaveKeyWithValue("encrypted", true), HaveKey("resources")), "what the spec says nothing of stays")
		Expect(c.Status.OSDs).To(BeEquivalentTo(9))
		w.quiet()
	})

	It("shows what a switch of the layout would orphan, and keeps its layout", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3)})
		ready(c)
		for i, s := range []string{"x-0", "x-1", "x-2"} {
			w.osd(i, s, []string{"n0", "n1", "n2"}[i])
		}
		orphans := []string{"x-0-data-0abcde", "x-1-data-1abcde", "x-2-data-2abcde"}
		Eventually(func(g Gomega) {
			g.Expect(get(g, c).Status.LayoutSwitch).To(HaveValue(Equal(ocsv1.LayoutSwitchStatus{
				To: ocsv1.LayoutSingle, OrphanedPVCs: orphans, OrphanedOSDs: []string{"0", "1", "2"}, OrphanedPVCCount: 3,
			})))
		}).Should(Succeed())
		w.cluster([]string{set("x", 1, 3)}, "deviceSetLayout: Single")
		wrong(c, ocsv1.CephClusterReadyCondition, "LayoutOrphans/Error", "spec.deviceSetLayout: Single would orphan 3 claims", orphans[0], "Set it to Split")
		Expect(w.counts()).To(Equal([]string{"x-0=1", "x-1=1", "x-2=1"}))
		w.cluster([]string{set("x", 1, 3)}, "deviceSetLayout: Split")
		ready(c)
	})

	It("gets one set for each device set in layout Single, when it is new", func() {
		w.zones(4)
		c := w.cluster([]string{set("x", 2, 3), set("new", 5, 0)}, "deviceSetLayout: Single")
		ready(c)
		Expect(w.counts()).To(Equal([]string{"x=6", "new=5"}))
		Expect(c.Status.DeviceSets[0].Distribution).To(HaveLen(4))
		Expect(c.Status.LayoutSwitch.To).To(Equal(ocsv1.LayoutSplit))

		By("switching while there is no OSD yet")
		w.cluster([]string{set("x", 2, 3), set("new", 5, 0)}, "deviceSetLayout: Split")
		Eventually(w.counts).Should(Equal([]string{"x-0=2", "x-1=2", "x-2=2", "new-0=2", "new-1=2", "new-2=1"}))
		ready(c)
	})
})

var _ = Describe("What is wrong", func() {
	var w *world
	BeforeEach(func() {
		withRook()
		w = newWorld()
	})

	It("reports too few nodes, and recovers when one is labelled", func() {
		w.nodes("a", "b", "c")
		label("c", ocsv1.StorageNodeLabel, "")
		c := w.cluster([]string{set("x", 1, 3)})
		wrong(c, ocsv1.NodesReadyCondition, "NotEnoughNodes/Warning", "expected 3, found 2", "kubectl label node <node> "+ocsv1.StorageNodeLabel+"=")
		change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, func(n *corev1.Node) { n.Labels[ocsv1.StorageNodeLabel] = "" })
		ready(c)
		w.cluster([]string{set("x", 1, 4)})
		wrong(c, ocsv1.NodesReadyCondition, "NotEnoughNodes/Warning", "expected 4, found 3")
		Expect(w.counts()).To(HaveLen(3), "the CephCluster is not changed")
		w.cluster([]string{set("x", 1, 3)}, "labelSelector: {matchLabels: {none: such}}")
		wrong(c, ocsv1.NodesReadyCondition, "NotEnoughNodes/Warning", "spec.labelSelector (none=such)")
	})

	It("reports fields that contradict each other", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3)}, "arbiter: {enable: true}", "flexibleScaling: true", "nodeTopologies: {arbiterLocation: z9}")
		wrong(c, condition.InputReadyCondition, "InvalidSpec/Error", "spec.flexibleScaling", "set one of them to false")
		w.cluster([]string{set("x", 1, 3)}, "flexibleScaling: true")
		ready(c)
		Expect(c.Status.FailureDomain).To(Equal(ocsv1.FailureDomainHost))
		Expect(summary(*w.sets(Default)[0].PreparePlacement)).To(Equal([]string{"kubernetes.io/hostname/DoNotSchedule"}))
	})

	It("reports OSDs that find no place, which holds nothing up, and recovers", func() {
		w.zones(3)
		c := w.cluster([]string{strings.ReplaceAll(set("x", 1, 3), "gp2", "later")})
		wrong(c, topologyv1.PlacementReadyCondition, "Unsatisfiable/Warning", "rook-ceph-osd-prepare-x-0-0", "To fix it")
		shows(c, ocsv1.CephClusterReadyCondition, "True/Ready/")
		Expect(w.counts()).To(HaveLen(3))
		Expect(c.Status.DeviceSets[0].OSDs).To(BeEquivalentTo(3))
		Expect(c.Status.SpreadSummary).To(Equal("z0=0,z1=0,z2=0"))
		w.class("later")
		ready(c)
		Expect(c.Status.SpreadSummary).To(Equal("z0=1,z1=1,z2=1"))
		change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		wrong(c, topologyv1.PlacementReadyCondition, "Unsatisfiable/Warning", "uncordon")
	})

	It("reports that the rack of a node is refused, and continues when it is not", func() {
		w.nodes("a", "b", "c")
		accept := story.Refuse(w.ns, "", "nodes", "object.metadata.name == 'b'", "!('"+rack+"' in object.metadata.labels)")
		probe := func() error {
			node := get(Default, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
			metav1.SetMetaDataLabel(&node.ObjectMeta, rack, "probe")
			return api.Update(ctx, node, client.DryRunAll)
		}
		Eventually(probe).Should(MatchError(ContainSubstring("not with this object")))
		c := w.cluster([]string{set("x", 1, 3)})
		wrong(c, ocsv1.FailureDomainReadyCondition, "Refused/Error", "Label "+rack+"=rack1 of node b is refused", "not with this object")
		accept()
		Eventually(probe).Should(Succeed())
		change(c, func(c *ocsv1.StorageCluster) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, "example.org/again", "1") })
		ready(c)
		Expect(c.Status.FailureDomainValues).To(Equal([]string{"rack0", "rack1", "rack2"}))
	})

	It("reports that a webhook of CephClusters does not answer, and continues when it does", func() {
		w.zones(3)
		end := story.Silence(w.ns, "ceph.rook.io", "cephclusters")
		probe := func() error {
			ceph := w.ceph()
			ceph.Object["spec"] = map[string]any{}
			return api.Create(ctx, ceph, client.DryRunAll)
		}
		Eventually(probe).Should(MatchError(ContainSubstring("failed calling webhook")))
		c := w.cluster([]string{set("x", 1, 3)})
		wrong(c, ocsv1.CephClusterReadyCondition, "Refused/Error", "CephCluster ocs-cephcluster is refused", "failed calling webhook")
		end()
		Eventually(probe).Should(Succeed())
		change(c, func(c *ocsv1.StorageCluster) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, "example.org/again", "1") })
		ready(c)
	})

	It("reports that the API server refuses the CephCluster", func() {
		w.zones(3)
		name := strings.Repeat("a", 250)
		w.apply("apiVersion: ocs.openshift.io/v1\nkind: StorageCluster\nmetadata: {name: " + name + "}\nspec:\n  storageDeviceSets:\n" + set("x", 1, 3))
		c := &ocsv1.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
		wrong(c, ocsv1.CephClusterReadyCondition, "Refused/Error", "metadata.name")
	})
})

var _ = Describe("A cluster without Rook", func() {
	It("reports it while everything else is shown, and continues when Rook is there", func() {
		withoutRook()
		w := newWorld()
		w.zones(4)
		c := w.cluster([]string{set("x", 4, 0)})
		wrong(c, ocsv1.CephClusterReadyCondition, "RookMissing/Warning", "cephclusters.ceph.rook.io", "install Rook")
		shows(c, topologyv1.PlacementReadyCondition, "True/Ready/")
		Expect(c.Status.SpreadSummary).To(Equal("z0=1,z1=1,z2=1,z3=1"))
		w.quiet()
		withRook()
		ready(c)
		Expect(w.counts()).To(Equal([]string{"x-0=2", "x-1=1", "x-2=1"}))

		By("what a person does to the CephCluster from then on is seen")
		Expect(api.Delete(ctx, w.ceph())).To(Succeed())
		Eventually(func(g Gomega) { g.Expect(w.sets(g)).To(HaveLen(3)) }).Should(Succeed())
	})
})
