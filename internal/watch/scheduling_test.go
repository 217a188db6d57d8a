package watch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func TestNodeChanges(t *testing.T) {
	node := func() *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"nothing, as in a resync": {func(*corev1.Node) {}, false},
		"a heartbeat": {func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(time.Now())}}
		}, false},
		"an annotation": {func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, false},
		"a label":       {func(n *corev1.Node) { n.Labels["rack"] = "r" }, true},
		"a taint":       {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "t"}} }, true},
		"a cordon":      {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"room":          {func(n *corev1.Node) { n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1")} }, true},
	} {
		after := node()
		c.change(after)
		if got := NodeChanges.Update(event.UpdateEvent{ObjectOld: node(), ObjectNew: after}); got != c.want {
			t.Errorf("%s is let through: %v; want %v", name, got, c.want)
		}
	}
	if !NodeChanges.Create(event.CreateEvent{Object: node()}) || !NodeChanges.Delete(event.DeleteEvent{Object: node()}) {
		t.Error("nodes that come and go are let through")
	}
}

// Writes that cannot give a pod a place wake no one.
func TestStorageAndNamespaceChanges(t *testing.T) {
	annotated := metav1.ObjectMeta{Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}
	relabelled := metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}
	volume := func(change func(*corev1.PersistentVolume)) client.Object {
		v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Name: "c"}}}
		change(v)
		return v
	}
	room := func(size string, meta metav1.ObjectMeta) client.Object {
		return &storagev1.CSIStorageCapacity{ObjectMeta: meta, Capacity: ptr.To(resource.MustParse(size))}
	}
	for name, c := range map[string]struct {
		lets          predicate.Predicate
		before, after client.Object
		want          bool
	}{
		"a volume as it was":               {VolumeChanges, volume(func(*corev1.PersistentVolume) {}), volume(func(v *corev1.PersistentVolume) { v.ResourceVersion = "2" }), false},
		"a volume that loses its claim":    {VolumeChanges, volume(func(*corev1.PersistentVolume) {}), volume(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }), true},
		"a volume that becomes available":  {VolumeChanges, volume(func(*corev1.PersistentVolume) {}), volume(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable }), true},
		"a Namespace with a status":        {NamespaceChanges, &corev1.Namespace{}, &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}, false},
		"a Namespace with a label":         {NamespaceChanges, &corev1.Namespace{}, &corev1.Namespace{ObjectMeta: relabelled}, true},
		"a class with a label":             {ClassChanges, &storagev1.StorageClass{}, &storagev1.StorageClass{ObjectMeta: relabelled}, false},
		"a class that becomes the default": {ClassChanges, &storagev1.StorageClass{}, &storagev1.StorageClass{ObjectMeta: annotated}, true},
		"a node with a driver":             {CSINodeChanges, &storagev1.CSINode{}, &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "d"}}}}, true},
		"a node with an annotation":        {CSINodeChanges, &storagev1.CSINode{}, &storagev1.CSINode{ObjectMeta: annotated}, false},
		"a driver that reports capacity":   {CSIDriverChanges, &storagev1.CSIDriver{}, &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}, true},
		"more room":                        {CapacityChanges, room("1Gi", metav1.ObjectMeta{}), room("2Gi", metav1.ObjectMeta{}), true},
		"as much room":                     {CapacityChanges, room("1Gi", metav1.ObjectMeta{}), room("1024Mi", relabelled), false},
	} {
		if got := c.lets.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s is let through: %v; want %v", name, got, c.want)
		}
		if !c.lets.Create(event.CreateEvent{Object: c.after}) || !c.lets.Delete(event.DeleteEvent{Object: c.after}) {
			t.Errorf("%s: what comes and goes is let through", name)
		}
	}
}

func TestClaimChanges(t *testing.T) {
	before, bound, labelled := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	bound.Spec.VolumeName, labelled.Labels = "pv", map[string]string{"a": "b"}
	for after, want := range map[*corev1.PersistentVolumeClaim]bool{before: false, labelled: false, bound: true} {
		if got := ClaimChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != want {
			t.Errorf("%+v is let through: %v; want %v", after, got, want)
		}
	}
}

// TestPodsOfOthers : which changes of any pod in the cluster may give another one a
// place, by the room that it leaves or as its neighbour.
func TestPodsOfOthers(t *testing.T) {
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 1, Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "n"}}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	pending := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	finished := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	db := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp, p.Generation = ptr.To(metav1.Now()), 2 }
	for name, c := range map[string]struct {
		before, after   *corev1.Pod
		room, neighbour bool
	}{
		"nothing, as in a resync":       {pod(), pod(), false, false},
		"a status":                      {pod(), pod(func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }), false, false},
		"it gets a node":                {pod(pending), pod(), false, true},
		"it gets another label":         {pod(), pod(db), false, true},
		"it gets one without a node":    {pod(pending), pod(pending, db), false, false},
		"it begins to leave":            {pod(), pod(leaving), false, true},
		"it ends":                       {pod(), pod(finished), true, false},
		"it is resized":                 {pod(), pod(func(p *corev1.Pod) { p.Generation = 2 }), true, false},
		"it ends without having a node": {pod(pending), pod(pending, finished), false, false},
	} {
		e := event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}
		if got := roomMade.Update(e); got != c.room {
			t.Errorf("%s makes room: %v; want %v", name, got, c.room)
		}
		if got := neighbours.Update(e); got != c.neighbour {
			t.Errorf("%s changes a neighbour: %v; want %v", name, got, c.neighbour)
		}
	}
	if !roomMade.Delete(event.DeleteEvent{Object: pod()}) || roomMade.Delete(event.DeleteEvent{Object: pod(pending)}) || roomMade.Delete(event.DeleteEvent{Object: pod(finished)}) {
		t.Error("only a pod that runs leaves room when it is deleted")
	}
	if !neighbours.Create(event.CreateEvent{Object: pod()}) || neighbours.Create(event.CreateEvent{Object: pod(pending)}) {
		t.Error("a pod is a neighbour once it has a node")
	}
}
