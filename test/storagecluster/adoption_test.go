package storagecluster_test

import (
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// handWritten is a CephCluster with a placement of all daemons and a set of one OSD
// that is bound to a zone. A person has handed it over.
const handWritten = `
apiVersion: ceph.rook.io/v1
kind: CephCluster
metadata: {name: ocs-cephcluster, annotations: {edpm.openstack.org/owner: StorageCluster.ocs.openshift.io/ocs}}
spec:
  placement:
    all:
      nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}]}}
      tolerations: [{key: ceph, operator: Exists}]
  storage:
    storageClassDeviceSets:
    - {name: x-0, count: 1, portable: true, encrypted: true, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: gp2}}],
       placement: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z0]}]}]}}}}
`

var _ = Describe("An existing CephCluster", func() {
	var w *world
	BeforeEach(func() {
		withRook()
		w = newWorld()
	})
	spec := func(fields ...string) any {
		GinkgoHelper()
		found, _, err := unstructured.NestedFieldCopy(get(Default, w.ceph()).Object, append([]string{"spec"}, fields...)...)
		Expect(err).NotTo(HaveOccurred())
		return found
	}

	It("stays unchanged until a user hands it over", func() {
		const handedOver = "annotations: {edpm.openstack.org/owner: StorageCluster.ocs.openshift.io/ocs}"
		w.apply(strings.Replace(handWritten, ", "+handedOver, "", 1))
		before := get(Default, w.ceph())
		w.zones(3)
		c := w.cluster([]string{set("x", 2, 3)})
		wrong(c, ocsv1.CephClusterReadyCondition, "Conflict/Error", `CephCluster "ocs-cephcluster" exists already`, "edpm.openstack.org/owner=StorageCluster.ocs.openshift.io/ocs")
		shows(c, topologyv1.PlacementReadyCondition, "True/Ready/")
		w.quiet()
		Expect(get(Default, w.ceph())).To(Equal(before), "nothing is written to it, no annotation either")

		By("one that is handed over to another")
		hand := func(to string) {
			GinkgoHelper()
			change(w.ceph(), func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{"edpm.openstack.org/owner": "StorageCluster.ocs.openshift.io/" + to})
			})
		}
		hand("another")
		w.quiet()
		Expect(w.counts()).To(Equal([]string{"x-0=1"}))
		By("handing it over")
		hand("ocs")
		ready(c)
		Expect(w.counts()).To(Equal([]string{"x-0=2", "x-1=2", "x-2=2"}))
		Expect(get(Default, w.ceph()).GetOwnerReferences()).To(BeEmpty(), "it was not made for the StorageCluster, and stays without it")

		By("what was written once stays ours, whatever becomes of the annotations")
		change(w.ceph(), func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
		w.cluster([]string{set("x", 3, 3)})
		Eventually(w.counts).Should(Equal([]string{"x-0=3", "x-1=3", "x-2=3"}))
		ready(c)
	})

	It("stays unchanged until a user hands it over even if ocs-operator created it for the same owner", func() {
		w.zones(2) // too few to write anything
		c := w.cluster([]string{set("x", 1, 3)})
		wrong(c, ocsv1.NodesReadyCondition, "NotEnoughNodes/Warning")
		w.apply(handWritten)
		change(w.ceph(), func(u *unstructured.Unstructured) {
			u.SetAnnotations(nil)
			u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(get(Default, c), ocsv1.GroupVersion.WithKind("StorageCluster"))})
		})
		w.nodes("n2 " + zone + "=z2")
		wrong(c, ocsv1.CephClusterReadyCondition, "Conflict/Error", "was created by another operator", "edpm.openstack.org/owner=")
		Expect(w.counts()).To(Equal([]string{"x-0=1"}))
		change(w.ceph(), func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"edpm.openstack.org/owner": "StorageCluster.ocs.openshift.io/ocs"})
		})
		ready(c)
		Expect(w.counts()).To(Equal([]string{"x-0=1", "x-1=1", "x-2=1"}))
	})

	It("keeps the placement of all daemons, until a user asks for another one", func() {
		w.apply(handWritten)
		before := spec()
		w.zones(3)
		w.osd(0, "x-0", "n0")
		c := w.cluster([]string{set("x", 1, 1)})
		ready(c)
		Expect(spec()).To(Equal(before), "no one asked for a change")

		By("a new set next to it, which finds the storage nodes without that placement")
		w.cluster([]string{set("x", 1, 1), set("new", 1, 1, "encrypted: true")})
		Eventually(w.counts).Should(Equal([]string{"x-0=1", "new-0=1"}))
		Expect(spec("placement")).To(Equal(before.(map[string]any)["placement"]))
		placed := w.sets(Default)[1].Placement
		Expect(placed.Tolerations).To(ContainElement(HaveField("Key", ocsv1.StorageTaint)))
		Expect(placed.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions).To(
			ContainElement(HaveField("Key", ocsv1.StorageNodeLabel)))

		By("a placement in the spec")
		w.cluster([]string{set("x", 1, 1), set("new", 1, 1, "encrypted: true")}, "placement: {all: {tolerations: [{key: mine, operator: Exists}]}}")
		Eventually(func() any { return spec("placement", "all", "tolerations") }).Should(ContainElement(HaveKeyWithValue("key", "mine")))
	})

	It("keeps the OSDs of its sets together with their placement when the spec asks for more of them", func() {
		w.apply(handWritten)
		found := spec("storage", "storageClassDeviceSets").([]any)[0].(map[string]any)
		w.zones(3)
		w.osd(0, "x-0", "n0")
		c := w.cluster([]string{set("x", 2, 3)})
		ready(c)
		Expect(w.counts()).To(Equal([]string{"x-0=2", "x-1=2", "x-2=2"}), "Ready means that there are as many as the spec asks for")
		now := spec("storage", "storageClassDeviceSets").([]any)
		found["count"] = int64(2)
		Expect(now[0]).To(Equal(any(found)), "no one asked for another placement")
		Expect(now[1]).To(HaveKeyWithValue("encrypted", true), "as the set next to it")
		w.quiet()
	})

	It("continues after a restore while the manager was down", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 1)})
		ready(c)
		w.end()
		Expect(api.Delete(ctx, w.ceph())).To(Succeed())
		w.apply(handWritten)
		before := spec()
		w.start()
		Eventually(func(g Gomega) {
			g.Expect(get(g, c).Status.DeviceSets[0].Placement).To(Equal(ocsv1.PlacementLegacy))
		}).Should(Succeed())
		w.quiet()
		Expect(spec()).To(Equal(before))
	})

	It("keeps what a user writes while the manager writes", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 3)})
		ready(c)
		w.quiet()
		w.wire.just(func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/cephclusters/")
		}, func() {
			change(w.ceph(), func(u *unstructured.Unstructured) {
				sets, _, _ := unstructured.NestedSlice(u.Object, "spec", "storage", "storageClassDeviceSets")
				sets = append(sets, map[string]any{"name": "theirs", "count": int64(1), "volumeClaimTemplates": []any{}})
				Expect(unstructured.SetNestedSlice(u.Object, sets, "spec", "storage", "storageClassDeviceSets")).To(Succeed())
			})
		})
		w.cluster([]string{set("x", 2, 3)})
		Eventually(w.counts).Should(ContainElement("x-0=2"))
		Expect(w.counts()).To(Equal([]string{"x-0=2", "x-1=2", "x-2=2", "theirs=1"}))
	})

	It("keeps device sets with OSDs that the spec no longer has, unless an annotation names them", func() {
		w.zones(3)
		c := w.cluster([]string{set("x", 2, 3)})
		ready(c)
		for i := range 6 {
			w.osd(i, fmt.Sprintf("x-%d", i%3), fmt.Sprintf("n%d", i%3))
		}
		w.quiet()
		By("another replica with the same number of OSDs")
		w.cluster([]string{set("x", 3, 2)})
		wrong(c, ocsv1.CephClusterReadyCondition, "DeviceSetOrphans/Error", "x-2", "2 claims", "x-2-data-2abcde", "edpm.openstack.org/orphan-device-sets=x-2")
		Expect(w.counts()).To(Equal([]string{"x-0=2", "x-1=2", "x-2=2"}))
		By("a device set that leaves the spec")
		w.cluster(nil)
		wrong(c, ocsv1.CephClusterReadyCondition, "DeviceSetOrphans/Error", "x-0,x-1,x-2")
		Expect(w.counts()).To(HaveLen(3))
		By("the annotation")
		w.cluster([]string{set("x", 3, 2)})
		change(c, func(c *ocsv1.StorageCluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "edpm.openstack.org/orphan-device-sets", "x-2")
		})
		Eventually(w.counts).Should(Equal([]string{"x-0=3", "x-1=3"}))
		ready(c)
	})

	It("gets no plain set next to encrypted ones unless the spec asks for it", func() {
		w.apply(handWritten)
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 1), set("new", 1, 3)})
		wrong(c, ocsv1.CephClusterReadyCondition, "EncryptionUnset/Error", "spec.storageDeviceSets[1].encrypted", "x-0", "true or false")
		Expect(w.counts()).To(Equal([]string{"x-0=1"}))
		encryption := func() []any {
			var all []any
			for _, item := range spec("storage", "storageClassDeviceSets").([]any) {
				all = append(all, item.(map[string]any)["encrypted"])
			}
			return all
		}
		w.cluster([]string{set("x", 1, 1), set("new", 1, 3)}, "encryption: {clusterWide: true}")
		Eventually(encryption).Should(Equal([]any{true, true, true, true}))
		ready(c)

		By("encryption that OSDs do not have")
		w.osd(0, "x-0", "n0")
		w.cluster([]string{set("x", 1, 1, "encrypted: false"), set("new", 1, 3)}, "encryption: {clusterWide: true}")
		wrong(c, ocsv1.CephClusterReadyCondition, "EncryptionDiffers/Error", "spec.storageDeviceSets[0].encrypted", "x-0", "true")
		Expect(encryption()).To(Equal([]any{true, true, true, true}))
	})
})

var _ = Describe("OSDs that do not fit", func() {
	var w *world
	BeforeEach(func() {
		withRook()
		w = newWorld()
		w.zones(3)
	})

	It("show in a condition when no node is large enough for them", func() {
		c := w.cluster([]string{set("x", 1, 3, `resources: {requests: {cpu: "17"}}`)})
		wrong(c, topologyv1.PlacementReadyCondition, "Unsatisfiable/Warning", "Insufficient cpu")
	})

	It("show in a condition when other pods have taken the room", func() {
		for i := range 3 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("busy-%d", i)}}
			pod.Spec.NodeName = fmt.Sprintf("n%d", i)
			pod.Spec.Containers = []corev1.Container{{Name: "busy", Image: "busy", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("15")},
			}}}
			Expect(api.Create(ctx, pod)).To(Succeed())
		}
		c := w.cluster([]string{set("x", 1, 3, `resources: {requests: {cpu: "2"}}`)})
		wrong(c, topologyv1.PlacementReadyCondition, "Unsatisfiable/Warning", "Insufficient cpu")
	})
})

var _ = Describe("OSDs that the API server would refuse", func() {
	var w *world
	BeforeEach(func() {
		withRook()
		w = newWorld()
		w.zones(3)
	})
	rule := func(kind, spec string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: rule}\nspec: " + spec
	}

	It("show in a condition with the ResourceQuota, until it is raised", func() {
		w.apply(rule("ResourceQuota", `{hard: {persistentvolumeclaims: "2"}}`))
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "rule"}}
		count := func(hard string) { // as the controller of quotas does, which is not here
			GinkgoHelper()
			get(Default, quota)
			quota.Status = corev1.ResourceQuotaStatus{
				Hard: corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse(hard)},
				Used: corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("0")},
			}
			Expect(api.Status().Update(ctx, quota)).To(Succeed())
		}
		count("2")
		c := w.cluster([]string{set("x", 1, 3)})
		wrong(c, topologyv1.PlacementReadyCondition, "PodRefused/Warning", "rook-ceph-osd-prepare-x-2-0", "exceeded quota: rule", "limited: persistentvolumeclaims=2")
		Expect(w.counts()).To(HaveLen(3), "the CephCluster is written all the same")

		By("raising it")
		w.apply(rule("ResourceQuota", `{hard: {persistentvolumeclaims: "3"}}`))
		count("3")
		ready(c)
		Expect(c.Status.SpreadSummary).To(Equal("z0=1,z1=1,z2=1"))
	})

	It("show in a condition with the LimitRange, until it is removed", func() {
		w.apply(rule("LimitRange", `{limits: [{type: Container, max: {cpu: "1"}}]}`))
		c := w.cluster([]string{set("x", 1, 3, `resources: {requests: {cpu: "2"}, limits: {cpu: "2"}}`)})
		wrong(c, topologyv1.PlacementReadyCondition, "PodRefused/Warning", "rook-ceph-osd-prepare-x-0-0", "maximum cpu usage per Container is 1")
		Expect(api.Delete(ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "rule"}})).To(Succeed())
		ready(c)
	})

	It("trigger a new prediction when a pod of another owner leaves its room", func() {
		busy := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "busy"}}
		busy.Spec.NodeName = "n1"
		busy.Spec.Containers = []corev1.Container{{Name: "busy", Image: "busy", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("15")},
		}}}
		Expect(api.Create(ctx, busy)).To(Succeed())
		c := w.cluster([]string{set("x", 1, 3, `resources: {requests: {cpu: "2"}}`)})
		wrong(c, topologyv1.PlacementReadyCondition, "Unsatisfiable/Warning", "Insufficient cpu")
		Expect(api.Delete(ctx, busy, client.GracePeriodSeconds(0))).To(Succeed())
		ready(c)
	})
})

var _ = Describe("A CephCluster that comes back together with Rook", func() {
	It("keeps the placement of its OSDs, although the status was written before", func() {
		withoutRook()
		w := newWorld()
		w.zones(3)
		c := w.cluster([]string{set("x", 1, 1)})
		wrong(c, ocsv1.CephClusterReadyCondition, "RookMissing/Warning")
		w.quiet()
		w.end()
		withRook()
		w.apply(handWritten)
		found, _, _ := unstructured.NestedMap(get(Default, w.ceph()).Object, "spec")
		w.start()
		ready(c)
		Expect(c.Status.DeviceSets[0].Placement).To(Equal(ocsv1.PlacementLegacy))
		now, _, _ := unstructured.NestedMap(get(Default, w.ceph()).Object, "spec")
		Expect(now).To(Equal(found))
	})
})
