package placement

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func makeLimitRange(item corev1.LimitRangeItem) *corev1.LimitRange {
	r := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "limits"}}
	r.Spec.Limits = []corev1.LimitRangeItem{item}
	return r
}

func makeQuota(name string, hard, used corev1.ResourceList) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	q.Spec.Hard, q.Status.Hard, q.Status.Used = hard, hard, used
	return q
}

func requesting(w Workload, requests, limits corev1.ResourceList) Workload {
	w.Template = *w.Template.DeepCopy()
	w.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
	return w
}

func TestDefaultRequestsOfALimitRangeTakeRoom(t *testing.T) {
	snapshot := Snapshot{Nodes: []*corev1.Node{makeNode("n0")}} // 4 processors
	snapshot.LimitRanges = []*corev1.LimitRange{makeLimitRange(corev1.LimitRangeItem{
		Type: corev1.LimitTypeContainer, Default: resources("cpu", "3"), DefaultRequest: resources("cpu", "3"),
	})}
	p := problem(t, predict(t, snapshot, makeWorkload(2)), topologyv1.UnsatisfiableReason, "1 Insufficient cpu")
	if !slices.Equal(p.Pods, []string{"glance-default-external-api-1"}) {
		t.Errorf("got %+v", p)
	}
	snapshot.LimitRanges[0].Namespace = otherNS
	fine(t, predict(t, snapshot, makeWorkload(2)))
}

func TestLimitRangesRefusePods(t *testing.T) {
	for _, test := range []struct {
		name             string
		item             corev1.LimitRangeItem
		requests, limits corev1.ResourceList
		says             string
	}{
		{"more than max", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: resources("cpu", "1")},
			nil, resources("cpu", "2"), "maximum cpu usage per Container is 1, but limit is 2"},
		{"no limit", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: resources("cpu", "1")},
			resources("cpu", "1"), nil, "maximum cpu usage per Container is 1.  No limit is specified"},
		{"less than min", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: resources("memory", "1Gi")},
			resources("memory", "1Mi"), nil, "minimum memory usage per Pod is 1Gi, but request is 1Mi"},
		{"ratio", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: resources("cpu", "2")},
			resources("cpu", "1"), resources("cpu", "3"), "cpu max limit to request ratio per Container is 2, but provided ratio is 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			snapshot := Snapshot{Nodes: sevenNodes(), LimitRanges: []*corev1.LimitRange{makeLimitRange(test.item)}}
			v := predict(t, snapshot, requesting(makeWorkload(2), test.requests, test.limits))
			p := problem(t, v, topologyv1.PodRefusedReason, test.says, `pods "glance-default-external-api-0" is forbidden`, "kubectl describe limitrange")
			if len(p.Pods) != 2 || v.Pods[1].Fits || !strings.Contains(v.Pods[1].Message, test.says) {
				t.Errorf("got %+v", v)
			}
		})
	}
}

func TestLimitRangesRefuseClaims(t *testing.T) {
	w := withClaims(makeWorkload(1), "local")
	snapshot := Snapshot{Nodes: sevenNodes(), StorageClasses: []*storagev1.StorageClass{makeClass("local", "topolvm.io", storagev1.VolumeBindingWaitForFirstConsumer)}}
	snapshot.LimitRanges = []*corev1.LimitRange{makeLimitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: resources("storage", "1Mi")})}
	problem(t, predict(t, snapshot, w), topologyv1.PodRefusedReason, `persistentvolumeclaims "glance-glance-default-external-api-0" is forbidden`, "maximum storage usage per PersistentVolumeClaim is 1Mi, but request is 1Gi")

	t.Run("but not those that are there", func(t *testing.T) {
		snapshot.bindTo(w, 0, "worker-0")
		fine(t, predict(t, snapshot, w))
	})
}

func TestAQuotaIsUsedUpPodByPod(t *testing.T) {
	snapshot := Snapshot{Nodes: sevenNodes(), ResourceQuotas: []*corev1.ResourceQuota{
		makeQuota("cpu", resources("requests.cpu", "5"), resources("requests.cpu", "2")),
	}}
	w := requesting(makeWorkload(3), resources("cpu", "2"), nil)
	p := problem(t, predict(t, snapshot, w), topologyv1.PodRefusedReason,
		"exceeded quota: cpu, requested: requests.cpu=2, used: requests.cpu=4, limited: requests.cpu=5", "raise the ResourceQuota")
	if !slices.Equal(p.Pods, []string{"glance-default-external-api-1", "glance-default-external-api-2"}) {
		t.Errorf("got %+v", p)
	}
	if used := snapshot.ResourceQuotas[0].Status.Used[corev1.ResourceRequestsCPU]; used.String() != "2" {
		t.Errorf("the quota of the cluster was changed to %v", used.String())
	}
	t.Run("and released by pods that are replaced", func(t *testing.T) {
		for ordinal, node := range []string{"worker-0", "worker-1"} {
			pod := makePod(w.podName(int32(ordinal)), node, "service", "glance")
			pod.Spec.Containers[0].Resources.Requests = resources("cpu", "1")
			snapshot.Pods = append(snapshot.Pods, pod)
		}
		// Both are counted with 2; there is room for one of 2 next to the other of 1.
		two := w
		two.Replicas = 2
		fine(t, predict(t, snapshot, two))
	})
	t.Run("but only if the pod is counted", func(t *testing.T) {
		problem(t, predict(t, Snapshot{Nodes: sevenNodes(), ResourceQuotas: []*corev1.ResourceQuota{
			makeQuota("memory", resources("limits.memory", "5Gi"), resources("limits.memory", "0")),
		}}, w), topologyv1.PodRefusedReason, "failed quota: memory: must specify limits.memory for: glance-api")
	})
}

func TestAQuotaOfClaims(t *testing.T) {
	w := withClaims(makeWorkload(2), "local")
	snapshot := Snapshot{Nodes: sevenNodes(), StorageClasses: []*storagev1.StorageClass{makeClass("local", "topolvm.io", storagev1.VolumeBindingWaitForFirstConsumer)}}
	snapshot.ResourceQuotas = []*corev1.ResourceQuota{makeQuota("claims", resources("persistentvolumeclaims", "1"), resources("persistentvolumeclaims", "0"))}
	p := problem(t, predict(t, snapshot, w), topologyv1.PodRefusedReason, `persistentvolumeclaims "glance-glance-default-external-api-1" is forbidden: exceeded quota: claims`)
	if !slices.Equal(p.Pods, []string{"glance-default-external-api-1"}) {
		t.Errorf("got %+v", p)
	}
}
