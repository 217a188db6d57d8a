package webhooks_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/osd"
)

// dataClaim is a template that is in order.
const dataClaim = `dataPVCTemplate: {spec: {accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 512Gi}}}}`

// deviceSets is a spec with a device set of each text that is in order but for
// what the text says.
func deviceSets(fields ...string) string {
	var sets []string
	for _, f := range fields {
		if !strings.HasPrefix(f, "count:") {
			f += ", count: 1, replica: 3"
		}
		if !strings.HasPrefix(f, "name:") {
			f += ", name: ocs-deviceset"
		}
		if !strings.Contains(f, "dataPVCTemplate:") {
			f += ", " + dataClaim
		}
		sets = append(sets, "{"+strings.TrimPrefix(f, ", ")+"}")
	}
	return "storageDeviceSets: [" + strings.Join(sets, ", ") + "]"
}

// dataPVC is a device set whose template has only these fields.
func dataPVC(fields string) string { return deviceSets("dataPVCTemplate: {" + fields + "}") }

func storageCluster(w world, spec string) *ocsv1.StorageCluster {
	GinkgoHelper()
	return with(w, "StorageCluster", spec).(*ocsv1.StorageCluster)
}

// claimOf is a claim that Rook made for an OSD of a StorageClassDeviceSet.
func claimOf(w world, set string, index int) *corev1.PersistentVolumeClaim {
	id := fmt.Sprintf("%s-data-%d", set, index)
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: string(w), Name: id + "abcde", Labels: map[string]string{
			cephv1.DeviceSetLabel: set, cephv1.DeviceSetPVCIDLabel: id, cephv1.SetIndexLabel: fmt.Sprint(index),
		}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("512Gi")}},
		},
	}
}

// storageNodes makes a node in each of the zones, "" for none, that OSDs may go
// to. They go with the spec: nodes are in no namespace.
func storageNodes(zones ...string) {
	GinkgoHelper()
	for i, zone := range zones {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{ocsv1.StorageNodeLabel: ""}}}
		node.Labels[corev1.LabelHostname] = node.Name
		if zone != "" {
			node.Labels[corev1.LabelTopologyZone] = zone
		}
		create(node)
		DeferCleanup(func() { Expect(api.Delete(ctx, node)).To(Succeed()) })
	}
}

var _ = Describe("A storage cluster", func() {
	var w world
	BeforeEach(func() {
		storageNodes("a", "b", "c", "d")
		w = newWorld()
		warnings.take()
	})

	It("gets its defaults when it is valid, without a warning", func() {
		c := storageCluster(w, deviceSets("count: 2, replica: 3"))
		create(c)
		Expect(c.Spec.OSDPlacement.Mode).To(Equal(ocsv1.OSDPlacementSeedPhase1))
		Expect(c.Spec.DeviceSetLayout).To(Equal(ocsv1.LayoutSplit))
		Expect(warnings.take()).To(BeEmpty())
	})
	It("may have no device sets", func() { create(storageCluster(w, `{}`)) })
	It("keeps the annotations of its claims", func() {
		c := storageCluster(w, dataPVC(`metadata: {annotations: {crushDeviceClass: nvme}}, spec: {accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 1Ti}}}`))
		create(c)
		Expect(c.Spec.StorageDeviceSets[0].DataPVCTemplate.Annotations).To(HaveKeyWithValue("crushDeviceClass", "nvme"))
	})

	It("refuses a name that is too long for its CephCluster", func() {
		c := storageCluster(w, `{}`)
		c.Name = strings.Repeat("a", 242)
		refused(api.Create(ctx, c), "metadata.name: Invalid value", "no more than 241 characters")
	})

	DescribeTable("refuses a mistake with field, value and remedy",
		func(spec string, parts ...string) { refused(api.Create(ctx, storageCluster(w, spec)), parts...) },
		Entry("an arbiter with hosts as failure domains", `{flexibleScaling: true, arbiter: {enable: true}, nodeTopologies: {arbiterLocation: c}}`,
			"spec.flexibleScaling: Invalid value: true", "set it to false, or arbiter.enable to false"),
		Entry("an arbiter that is nowhere", `arbiter: {enable: true}`, "spec.nodeTopologies.arbiterLocation: Required", "set this field to the zone of the arbiter"),
		Entry("a selector with a wrong operator", `labelSelector: {matchExpressions: [{key: a, operator: Is}]}`,
			`spec.labelSelector.matchExpressions[0].operator: Invalid value: "Is"`, "use In, NotIn, Exists or DoesNotExist"),
		Entry("another mode", `osdPlacement: {mode: Zones}`, "spec.osdPlacement.mode", `"Zones"`, `"SeedPhase1"`, `"FailureDomain"`),
		Entry("another layout", `deviceSetLayout: Double`, "spec.deviceSetLayout", `"Double"`, `"Split"`, `"Single"`),
		Entry("two device sets of a name", deviceSets("name: a", "name: a"), "spec.storageDeviceSets[1]: Duplicate value", `"a"`),
		Entry("a name that is none", deviceSets("name: OCS_deviceset"), `spec.storageDeviceSets[0].name: Invalid value: "OCS_deviceset"`, `lower case letters`),
		Entry("a name with a dot, which Rook turns into a dash", deviceSets("name: a.b"), `spec.storageDeviceSets[0].name: Invalid value: "a.b"`, `lower case letters`),
		Entry("a name that is too long for a label of the pods", deviceSets("name: "+strings.Repeat("a", 49)),
			"spec.storageDeviceSets[0].name: Invalid value", "49 characters are too many", "a-2-data-10", "shorten it to 48"),
		Entry("a name that is too long with its template", deviceSets(`name: osd, dataPVCTemplate: {metadata: {name: `+strings.Repeat("d", 60)+`}, spec: {accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 1Ti}}}}`),
			`spec.storageDeviceSets[0].name: Invalid value: "osd"`, "dataPVCTemplate.metadata.name"),
		Entry("no OSDs", deviceSets("count: 0"), "spec.storageDeviceSets[0].count", "greater than or equal to 1"),
		Entry("less than one set", deviceSets("count: 3, replica: -1"), "spec.storageDeviceSets[0].replica", "greater than or equal to 1"),
		Entry("another type of devices", deviceSets("deviceType: tape"), "spec.storageDeviceSets[0].deviceType", `"tape"`, `"SSD"`),
		Entry("a class that is no label", deviceSets(`deviceClass: "fast one"`), `spec.storageDeviceSets[0].deviceClass: Invalid value: "fast one"`, "for example ssd"),
		Entry("a topologyKey that is no label", deviceSets(`topologyKey: "zone a"`), `spec.storageDeviceSets[0].topologyKey: Invalid value: "zone a"`, "for example topology.kubernetes.io/zone"),

		Entry("claims without a size", dataPVC(`spec: {accessModes: [ReadWriteOnce], volumeMode: Block}`),
			"spec.storageDeviceSets[0].dataPVCTemplate.spec.resources.requests[storage]: Required", "for example 512Gi"),
		Entry("claims of no size", dataPVC(`spec: {accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: "0"}}}`),
			`spec.storageDeviceSets[0].dataPVCTemplate.spec.resources.requests[storage]: Invalid value: "0"`, "larger than 0"),
		Entry("claims with a file system", dataPVC(`spec: {accessModes: [ReadWriteOnce], volumeMode: Filesystem, resources: {requests: {storage: 1Ti}}}`),
			`spec.storageDeviceSets[0].dataPVCTemplate.spec.volumeMode: Invalid value: "Filesystem"`, "set Block"),
		Entry("claims with a file system by default", dataPVC(`spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Ti}}}`),
			`spec.storageDeviceSets[0].dataPVCTemplate.spec.volumeMode: Required`, "set Block"),
		Entry("claims without access", dataPVC(`spec: {volumeMode: Block, resources: {requests: {storage: 1Ti}}}`),
			`spec.storageDeviceSets[0].dataPVCTemplate.spec.accessModes: Required`, "set ReadWriteOnce"),
		Entry("claims that cannot be written", dataPVC(`spec: {accessModes: [ReadOnlyMany], volumeMode: Block, resources: {requests: {storage: 1Ti}}}`),
			`spec.storageDeviceSets[0].dataPVCTemplate.spec.accessModes[0]: Unsupported value: "ReadOnlyMany"`, `"ReadWriteOnce"`),
		Entry("claims of a class that is no name", dataPVC(`spec: {storageClassName: GP3_CSI, accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 1Ti}}}`),
			`spec.storageDeviceSets[0].dataPVCTemplate.spec.storageClassName: Invalid value: "GP3_CSI"`, "lower case letters"),
		Entry("claims of one volume", dataPVC(`spec: {volumeName: pv1, accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 1Ti}}}`),
			`spec.storageDeviceSets[0].dataPVCTemplate.spec.volumeName: Invalid value: "pv1"`, "remove it"),
		Entry("claims with a name that is none", dataPVC(`metadata: {name: my data}, spec: {accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 1Ti}}}`),
			`spec.storageDeviceSets[0].dataPVCTemplate.metadata.name: Invalid value: "my data"`, "lower case letters"),

		Entry("a constraint without skew", deviceSets(`placement: {topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}`),
			"spec.storageDeviceSets[0].placement.topologySpreadConstraints[0].maxSkew: Invalid value: 0", "set a number from 1"),
		Entry("a constraint that is neither hard nor soft", deviceSets(`preparePlacement: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Perhaps}]}`),
			`spec.storageDeviceSets[0].preparePlacement.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Perhaps"`, `"DoNotSchedule", "ScheduleAnyway"`),
		Entry("a constraint without a key", deviceSets(`placement: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: "", whenUnsatisfiable: DoNotSchedule}]}`),
			"spec.storageDeviceSets[0].placement.topologySpreadConstraints[0].topologyKey: Required", "for example topology.kubernetes.io/zone"),
		Entry("a soft constraint with minDomains", deviceSets(`placement: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 3}]}`),
			"spec.storageDeviceSets[0].placement.topologySpreadConstraints[0].minDomains: Invalid value: 3", "remove minDomains"),
		Entry("a constraint with a policy that is none", deviceSets(`placement: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Maybe}]}`),
			`spec.storageDeviceSets[0].placement.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "Maybe"`, `"Honor", "Ignore"`),
		Entry("node affinity that no node has", `placement: {all: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}`,
			"spec.placement[all].nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required", "add a term"),
		Entry("a toleration with an effect that is none", `placement: {all: {tolerations: [{key: a, operator: Exists, effect: Never}]}}`,
			`spec.placement[all].tolerations[0].effect: Unsupported value: "Never"`, `"NoSchedule"`),
		Entry("a toleration of nothing", deviceSets(`placement: {tolerations: [{value: "true"}]}`),
			"spec.storageDeviceSets[0].placement.tolerations[0].key: Required", "operator Exists"),
		Entry("a toleration of a value that is not looked at", deviceSets(`placement: {tolerations: [{key: a, operator: Exists, value: "true"}]}`),
			`spec.storageDeviceSets[0].placement.tolerations[0].value: Invalid value: "true"`, "remove the value, or use operator Equal"),
	)

	DescribeTable("warns about a doubtful value",
		func(spec string, parts ...string) {
			create(storageCluster(w, spec))
			seen := warnings.take()
			Expect(seen).To(HaveLen(1))
			for _, part := range parts {
				Expect(seen[0]).To(ContainSubstring(part))
			}
		},
		Entry("a field of ocs-operator", "hostNetwork: true", "spec.hostNetwork: has no effect", "set it in the CephCluster"),
		Entry("a field of ocs-operator that would make other OSDs", deviceSets("initialWeight: 1.5TiB"), "spec.storageDeviceSets[0].initialWeight: is not supported", "until it is removed"),
		Entry("one OSD in all", deviceSets("count: 1"), "spec.storageDeviceSets[0].count: 1 without replica means 1 OSDs in total", "too few for three copies", "set replica: 3"),
		Entry("two OSDs in all", deviceSets("count: 2"), "2 without replica means 2 OSDs in total"),
		Entry("OSDs that three sets cannot share", deviceSets("count: 4"), "spec.storageDeviceSets[0].count: 4 without replica", "use a multiple of 3"),
		Entry("OSDs that two zones cannot share", deviceSets("count: 1, replica: 3")+"\narbiter: {enable: true}\nnodeTopologies: {arbiterLocation: c}",
			"spec.storageDeviceSets[0].count: 3 OSDs cannot be divided evenly between the two zones", "use an even count or replica"),
		Entry("placement in the wrong place", `placement: {osd: {tolerations: [{operator: Exists}]}}`, "spec.placement[osd]: is ignored", "in storageDeviceSets"),
		Entry("a way to have no constraints", `placement: {osd: {}}`, "spec.placement[osd]: {} removes the default constraints of the daemons", "remove the entry"),
		Entry("node affinity of which Rook takes a part", deviceSets(`placement: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]}}}`),
			"spec.storageDeviceSets[0].placement.nodeAffinity", "1 of 2 terms are ignored", "use one term"),
		Entry("a constraint that counts nothing", deviceSets(`preparePlacement: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}`),
			"spec.storageDeviceSets[0].preparePlacement.topologySpreadConstraints[0].labelSelector: selects no pods", "values: [rook-ceph-osd, rook-ceph-osd-prepare]"),
	)
})

var _ = Describe("A change of a storage cluster", func() {
	var w world
	var c *ocsv1.StorageCluster
	stored := func(spec string) {
		GinkgoHelper()
		storageNodes("a", "b", "c")
		w = newWorld()
		c = storageCluster(w, spec)
		create(c)
		warnings.take()
	}
	set := func() *ocsv1.StorageDeviceSet { return &c.Spec.StorageDeviceSets[0] }
	running := func(sets ...string) {
		GinkgoHelper()
		for _, s := range sets {
			create(claimOf(w, s, 0))
		}
	}
	allowed := func(parts ...string) {
		GinkgoHelper()
		Expect(api.Update(ctx, c)).To(Succeed())
		seen := warnings.take()
		if len(parts) == 0 {
			Expect(seen).To(BeEmpty())
			return
		}
		Expect(seen).To(HaveLen(1))
		for _, part := range parts {
			Expect(seen[0]).To(ContainSubstring(part))
		}
	}

	It("may add OSDs", func() {
		stored(deviceSets("count: 1, replica: 3"))
		set().Count = 2
		allowed()
	})
	It("warns what Rook does with fewer OSDs", func() {
		stored(deviceSets("count: 3, replica: 3"))
		set().Count = 2
		allowed("spec.storageDeviceSets[0].count: ocs-deviceset had 9 OSDs and would have 6", "Rook does not remove OSDs, so 3 stay", "removed from Ceph")
	})
	It("says what a replica means where count was that of all OSDs", func() {
		stored(deviceSets("count: 6"))
		set().Replica = 3
		allowed("spec.storageDeviceSets[0].replica", "had 6 OSDs and gets 18")
	})
	It("must keep a name that OSDs have, unless the annotation names them", func() {
		stored(deviceSets("name: old"))
		running("old-0", "old-1", "old-2", "unrelated-0")
		set().Name = "new"
		refused(api.Update(ctx, c), `spec.storageDeviceSets: Invalid value: ["new"]: no longer has old, which removes StorageClassDeviceSets old-0, old-1, old-2 with 3 OSDs`,
			"claims old-0-data-0abcde, old-1-data-0abcde, old-2-data-0abcde", "restore old, or annotate the StorageCluster with edpm.openstack.org/orphan-device-sets=old-0,old-1,old-2")
		c.Annotations = map[string]string{ocsv1.OrphanAnnotation: "old-0, old-1"}
		refused(api.Update(ctx, c), "StorageClassDeviceSets old-2 with 1 OSDs")
		c.Annotations = map[string]string{ocsv1.OrphanAnnotation: "old-0, old-1,old-2"}
		allowed("spec.storageDeviceSets: old is removed, as the annotation", "its 3 OSDs stay", "restore the name old")
	})
	It("must not leave OSDs out by another replica with the same total", func() {
		stored(deviceSets("count: 2, replica: 3"))
		running("ocs-deviceset-0", "ocs-deviceset-1", "ocs-deviceset-2")
		set().Count, set().Replica = 3, 2
		refused(api.Update(ctx, c), "spec.storageDeviceSets[0].replica: Invalid value: 2: was 3, which removes StorageClassDeviceSets ocs-deviceset-2 with 1 OSDs",
			"ocs-deviceset-2-data-0abcde", "restore 3", "orphan-device-sets=ocs-deviceset-2")
		c.Annotations = map[string]string{ocsv1.OrphanAnnotation: "ocs-deviceset-2"}
		allowed()
	})
	It("warns how many OSDs another replica with the same total makes", func() {
		stored(deviceSets("count: 2, replica: 3"))
		for i := range 3 {
			create(claimOf(w, fmt.Sprintf("ocs-deviceset-%d", i), 0))
			create(claimOf(w, fmt.Sprintf("ocs-deviceset-%d", i), 1))
		}
		set().Count, set().Replica = 1, 6
		Expect(api.Update(ctx, c)).To(Succeed())
		Expect(warnings.take()).To(ContainElement(And(ContainSubstring("spec.storageDeviceSets[0].replica: ocs-deviceset asks for 6 OSDs and would have 9"), ContainSubstring("restore replica 3"))))
	})
	It("may set another replica while there is no OSD", func() {
		stored(deviceSets("count: 2, replica: 3"))
		set().Count, set().Replica = 3, 2
		allowed()
	})
	It("must touch only the count of a set with OSDs that was found in the CephCluster, unless the annotation names it", func() {
		stored(deviceSets("count: 1, replica: 3"))
		hash, err := osd.Hash(set())
		Expect(err).NotTo(HaveOccurred())
		c.Status.DeviceSets = []ocsv1.DeviceSetStatus{{Name: "ocs-deviceset", Placement: ocsv1.PlacementLegacy, Hash: hash}}
		Expect(api.Status().Update(ctx, c)).To(Succeed())
		set().TopologyKey = "rack"
		allowed()
		running("ocs-deviceset-0")
		By("writing it as it was found")
		set().TopologyKey = ""
		allowed()
		By("another count")
		set().Count = 2
		allowed()
		By("another change")
		set().TopologyKey = "rack"
		refused(api.Update(ctx, c), "spec.storageDeviceSets[0]: Forbidden: has changed, and ocs-deviceset has the placement that was found in the CephCluster", "edpm.openstack.org/replace-placement=ocs-deviceset")
		c.Annotations = map[string]string{ocsv1.ReplacePlacementAnnotation: "ocs-deviceset"}
		allowed()
	})
	It("must keep the encryption where there are OSDs", func() {
		stored(deviceSets("") + "\nencryption: {clusterWide: true}")
		set().Encrypted = ptr.To(false)
		allowed()
		running("ocs-deviceset-0")
		set().Encrypted = ptr.To(true)
		refused(api.Update(ctx, c), "spec.storageDeviceSets[0].encrypted: Invalid value: true: was false when the OSDs of ocs-deviceset were created", "set false, or add a device set")
	})
	It("may touch a name that no OSD has", func() {
		stored(deviceSets("name: old"))
		set().Name = "new"
		allowed()
	})
	It("must keep the names of claims", func() {
		stored(deviceSets(""))
		set().DataPVCTemplate.Name = "osd"
		refused(api.Update(ctx, c), `spec.storageDeviceSets[0].dataPVCTemplate.metadata.name: Invalid value: "osd": was data`, "a second claim for each OSD", "add a device set")
	})
	It("may enlarge claims, and must not shrink them", func() {
		stored(deviceSets(""))
		requests := set().DataPVCTemplate.Spec.Resources.Requests
		requests[corev1.ResourceStorage] = resource.MustParse("1Ti")
		allowed()
		set().DataPVCTemplate.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("512Gi")
		refused(api.Update(ctx, c), `spec.storageDeviceSets[0].dataPVCTemplate.spec.resources.requests[storage]: Invalid value: "512Gi": was 1Ti`, "claims cannot shrink")
	})

	Describe("in what decides the failure domain", func() {
		const stretched = "arbiter: {enable: true}\nnodeTopologies: {arbiterLocation: c}"
		decided := func(domain ocsv1.FailureDomain) {
			GinkgoHelper()
			c.Status.FailureDomain = domain
			Expect(api.Status().Update(ctx, c)).To(Succeed())
		}
		It("passes before that is decided", func() {
			stored(deviceSets(""))
			c.Spec.FlexibleScaling = true
			allowed()
		})
		It("fails afterwards", func() {
			stored(deviceSets(""))
			decided(ocsv1.FailureDomainRack)
			c.Spec.FlexibleScaling = true
			refused(api.Update(ctx, c), "spec.flexibleScaling: Invalid value: true: was false when the failure domain was set to rack", "restore the value")
		})
		It("fails for an arbiter that is added, removed or moved", func() {
			stored(stretched)
			decided(ocsv1.FailureDomainZone)
			c.Spec.NodeTopologies.ArbiterLocation = "d"
			refused(api.Update(ctx, c), `spec.nodeTopologies.arbiterLocation: Invalid value: "d": was c`)
			c.Spec.NodeTopologies, c.Spec.Arbiter.Enable = nil, false
			refused(api.Update(ctx, c), "spec.arbiter.enable: Invalid value: false: was true")
		})
	})

	Describe("to the other layout", func() {
		It("passes while there is no OSD", func() {
			stored(deviceSets(""))
			running("of-another-cluster-0")
			c.Spec.DeviceSetLayout = ocsv1.LayoutSingle
			allowed()
		})
		It("fails when it would orphan OSDs, which are named", func() {
			stored(deviceSets(""))
			running("ocs-deviceset-0", "ocs-deviceset-1", "ocs-deviceset-2")
			c.Spec.DeviceSetLayout = ocsv1.LayoutSingle
			refused(api.Update(ctx, c), `spec.deviceSetLayout: Invalid value: "Single": would orphan 3 claims and their OSDs`,
				"ocs-deviceset-0-data-0abcde, ocs-deviceset-1-data-0abcde, ocs-deviceset-2-data-0abcde", "set Split")
		})
		It("fails the other way round as well", func() {
			stored(deviceSets("") + "\ndeviceSetLayout: Single")
			running("ocs-deviceset")
			c.Spec.DeviceSetLayout = ocsv1.LayoutSplit
			refused(api.Update(ctx, c), `spec.deviceSetLayout: Invalid value: "Split": would orphan 1 claims`, "set Single")
		})
		It("fails together with another name, which would hide it", func() {
			stored(deviceSets(""))
			running("ocs-deviceset-0")
			c.Spec.DeviceSetLayout, set().Name = ocsv1.LayoutSingle, "new"
			refused(api.Update(ctx, c), "would orphan 1 claims", "ocs-deviceset-0-data-0abcde")
		})
		It("fails for a storage cluster that was deleted and created again", func() {
			stored(deviceSets(""))
			running("ocs-deviceset-0")
			Expect(api.Delete(ctx, c)).To(Succeed())
			Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(c), &ocsv1.StorageCluster{}) }, timeout).Should(Satisfy(apierrors.IsNotFound))
			refused(api.Create(ctx, storageCluster(w, deviceSets("")+"\ndeviceSetLayout: Single")), "would orphan 1 claims", "set Split")
		})
	})
})

var _ = Describe("A storage cluster on the existing nodes", func() {
	DescribeTable("causes a warning where the OSDs could not be apart",
		func(zones []string, spec string, parts ...string) {
			storageNodes(zones...)
			w := newWorld()
			warnings.take()
			create(storageCluster(w, spec))
			seen := warnings.take()
			if len(parts) == 0 {
				Expect(seen).To(BeEmpty())
				return
			}
			Expect(seen).To(HaveLen(1))
			for _, part := range parts {
				Expect(seen[0]).To(ContainSubstring(part))
			}
		},
		Entry("no nodes at all", nil, deviceSets(""), "spec.storageDeviceSets: no node has the label cluster.ocs.openshift.io/openshift-storage", "label the nodes"),
		Entry("no nodes that are selected", []string{"a", "b", "c"}, deviceSets("")+"\nlabelSelector: {matchLabels: {disks: many}}",
			"no node has the labels of spec.labelSelector, disks=many"),
		Entry("no device sets, which need no nodes", nil, `{}`),
		Entry("three zones", []string{"a", "b", "c"}, deviceSets("")),
		Entry("three nodes that will be racks", []string{"", "", ""}, deviceSets("")),
		Entry("three nodes in two zones, of which the racks of one are two", []string{"a", "b", "b"}, deviceSets("")),
		Entry("two nodes", []string{"", ""}, deviceSets(""), "spec.storageDeviceSets: 3 failure domains (rack) are needed", "the 2 nodes", "are in 2", "add nodes"),
		Entry("a replica more than there are zones", []string{"a", "b", "c", "c"}, deviceSets("count: 1, replica: 5"),
			"spec.storageDeviceSets[0].replica: 5 failure domains (zone) are needed, and the 4 nodes", "are in 3", "set at most 3"),
		Entry("a label that no node has", []string{"a", "b", "c"}, deviceSets("topologyKey: example.com/row"),
			"spec.storageDeviceSets[0].topologyKey: none of the 3 nodes for OSDs has the label example.com/row", "label the nodes"),
		Entry("a label that some nodes have, by the name of the failure domain", []string{"a", "b", "c"}, deviceSets("topologyKey: host")),
		Entry("a replica as many as there are hosts", []string{"a", "b", "c", "c"}, deviceSets("count: 1, replica: 4")+"\nflexibleScaling: true"),
		Entry("an arbiter between two zones", []string{"a", "a", "b", "b", "c"}, deviceSets("count: 1, replica: 4")+"\narbiter: {enable: true}\nnodeTopologies: {arbiterLocation: c}"),
	)
})
