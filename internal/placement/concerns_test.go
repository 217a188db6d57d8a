package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestConcerns : what can give the pods of a workload a place, and what cannot, so
// that nothing is predicted again for it.
func TestConcerns(t *testing.T) {
	beside := func(namespaces []string, selector *metav1.LabelSelector) *corev1.Affinity {
		return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: labelled("app", "db")}, Namespaces: namespaces, NamespaceSelector: selector, TopologyKey: "zone",
		}}}}
	}
	with := func(a *corev1.Affinity) Workload {
		w := makeWorkload(1)
		w.Template.Spec.Affinity = a
		return w
	}
	elsewhere := func(pod *corev1.Pod) *corev1.Pod {
		pod.Namespace = "elsewhere"
		return pod
	}
	plain, stored, near := makeWorkload(1), withClaims(makeWorkload(1), "lvms"), with(beside(nil, nil))
	anywhere := with(beside(nil, &metav1.LabelSelector{MatchLabels: labelled("team", "db")}))
	apart := with(&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: near.Template.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
	}})
	rather := with(&corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight: 1, PodAffinityTerm: near.Template.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0],
	}}}})
	spread, softly := makeWorkload(1, spreadBy("zone", "app", "db")), spreadBy("zone", "app", "db")
	softly.WhenUnsatisfiable = corev1.ScheduleAnyway
	db, web := makePod("db", "n", "app", "db"), makePod("web", "n", "app", "web")
	capacity := &storagev1.CSIStorageCapacity{StorageClassName: "lvms"}
	for name, c := range map[string]struct {
		workload Workload
		object   client.Object
		want     bool
	}{
		"a node":                                             {plain, makeNode("n"), true},
		"a LimitRange of its namespace":                      {plain, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}, true},
		"a quota of another namespace":                       {plain, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere"}}, false},
		"a pod that no rule selects":                         {plain, db, false},
		"a pod that required affinity selects":               {near, db, true},
		"a pod with other labels":                            {near, web, false},
		"a pod of another namespace":                         {near, elsewhere(makePod("db", "n", "app", "db")), false},
		"a pod of a namespace that the term names":           {with(beside([]string{"elsewhere"}, nil)), elsewhere(makePod("db", "n", "app", "db")), true},
		"a pod of a namespace that the term may select":      {anywhere, elsewhere(makePod("db", "n", "app", "db")), true},
		"a pod that required anti-affinity selects":          {apart, db, true},
		"a pod that is only preferred":                       {rather, db, false},
		"a pod that a constraint counts":                     {spread, db, true},
		"a pod that a constraint does not count":             {spread, web, false},
		"a pod that a constraint counts elsewhere":           {spread, elsewhere(makePod("db", "n", "app", "db")), false},
		"a pod that a soft constraint counts":                {makeWorkload(1, softly), db, false},
		"a Namespace, without a namespaceSelector":           {near, &corev1.Namespace{}, false},
		"a Namespace, with a namespaceSelector":              {anywhere, &corev1.Namespace{}, true},
		"a volume, without volumes":                          {plain, &corev1.PersistentVolume{}, false},
		"a volume, with volumes":                             {stored, &corev1.PersistentVolume{}, true},
		"a claim, with volumes":                              {stored, &corev1.PersistentVolumeClaim{}, true},
		"a StorageClass, with volumes":                       {stored, &storagev1.StorageClass{}, true},
		"a CSINode, with volumes":                            {stored, &storagev1.CSINode{}, true},
		"a CSIDriver, without volumes":                       {plain, &storagev1.CSIDriver{}, false},
		"room for volumes of the class":                      {stored, capacity, true},
		"room for volumes of another class":                  {withClaims(makeWorkload(1), "ceph"), capacity, false},
		"room for volumes, with claims of the default class": {withClaims(makeWorkload(1), ""), capacity, true},
		"room for volumes, without volumes":                  {plain, capacity, false},
	} {
		if got := c.workload.Concerns(c.object); got != c.want {
			t.Errorf("%s concerns the workload: %v; want %v", name, got, c.want)
		}
	}
}

// A scale-up is judged for the pods that are added: the one that is there could not
// be made again, since its node has lost the label.
func TestPodsThatAreKept(t *testing.T) {
	w := withClaims(makeWorkload(2, spreadBy("zone", "service", "glance")), "lvms")
	snapshot := Snapshot{
		Nodes:          []*corev1.Node{makeNode("lost"), makeNode("a", "zone", "a")},
		Pods:           []*corev1.Pod{makePod(w.podName(0), "lost", "service", "glance")},
		StorageClasses: []*storagev1.StorageClass{makeClass("lvms", "lvms", storagev1.VolumeBindingWaitForFirstConsumer)},
	}
	snapshot.bindTo(w, 0, "lost")
	if v := predict(t, snapshot, w); v.Fits() {
		t.Error("the pod could be made again")
	}
	w.Kept = []string{w.podName(0)}
	v := predict(t, snapshot, w)
	fine(t, v)
	if got := nodesOf(v); got[0] != "lost" || got[1] != "a" {
		t.Errorf("the pods are on %v; want the first where it is", got)
	}
	snapshot.Pods[0].Spec.NodeName = ""
	if predict(t, snapshot, w).Fits() {
		t.Error("a pod without a node is kept nowhere")
	}
}
