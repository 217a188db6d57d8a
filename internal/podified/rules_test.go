package podified

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func claim(name, size string, class *string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}}
}

func set(change func(*appsv1.StatefulSetSpec)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{
		ServiceName: "s", PodManagementPolicy: appsv1.ParallelPodManagement,
		Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim("glance", "1G", nil)},
	}}
	change(&s.Spec)
	return s
}

func TestImmutable(t *testing.T) {
	same := func(*appsv1.StatefulSetSpec) {}
	for name, c := range map[string]struct {
		have, want func(*appsv1.StatefulSetSpec)
		field      string
	}{
		"nothing differs": {same, same, ""},
		"what the API server adds to a claim is no difference": {func(s *appsv1.StatefulSetSpec) {
			s.VolumeClaimTemplates[0].Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
			s.VolumeClaimTemplates[0].Status.Phase = corev1.ClaimPending
		}, same, ""},
		"a size written in another way is none": {same, func(s *appsv1.StatefulSetSpec) {
			s.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("glance", "1000M", nil)}
		}, ""},
		"the replicas can be changed":        {same, func(s *appsv1.StatefulSetSpec) { s.Replicas = ptr.To[int32](5) }, ""},
		"claims that are no longer wanted":   {same, func(s *appsv1.StatefulSetSpec) { s.VolumeClaimTemplates = nil }, "volumeClaimTemplates"},
		"claims that were not wanted":        {func(s *appsv1.StatefulSetSpec) { s.VolumeClaimTemplates = nil }, same, "volumeClaimTemplates"},
		"a claim of another size":            {same, func(s *appsv1.StatefulSetSpec) { s.VolumeClaimTemplates[0] = claim("glance", "2G", nil) }, "volumeClaimTemplates"},
		"a claim of another class":           {same, func(s *appsv1.StatefulSetSpec) { s.VolumeClaimTemplates[0] = claim("glance", "1G", ptr.To("c")) }, "volumeClaimTemplates"},
		"the name of the headless Service":   {same, func(s *appsv1.StatefulSetSpec) { s.ServiceName = "t" }, "serviceName"},
		"the labels by which pods are known": {same, func(s *appsv1.StatefulSetSpec) { s.Selector.MatchLabels["a"] = "c" }, "selector"},
		"the order in which pods are made":   {same, func(s *appsv1.StatefulSetSpec) { s.PodManagementPolicy = "" }, "podManagementPolicy"},
		"an expression that selects as well": {func(s *appsv1.StatefulSetSpec) {
			s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpExists}}
		}, same, "selector"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := immutable(set(c.have), set(c.want)); got != c.field {
				t.Errorf("immutable says %q; want %q", got, c.field)
			}
		})
	}
}

func TestPodsAreTakenInTheOrderOfTheirOrdinals(t *testing.T) {
	var items []corev1.Pod
	for _, name := range []string{"s-10", "s-2", "s-a", "s-1-0", "other-0", "s-0"} {
		items = append(items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if diff := cmp.Diff([]string{"s-0", "s-2", "s-10"}, podNames(byOrdinal("s", items))); diff != "" {
		t.Errorf("the pods differ (-want +got):\n%s", diff)
	}
}

// deployed is a set of three pods of the present revision, each with a node.
func deployed() *deployment {
	p := &deployment{Service: &Service{Name: "s", Replicas: 3}, set: &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, UpdateRevision: "new"},
	}}
	for i := range 3 {
		p.pods = append(p.pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d", i), Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"}},
			Spec:       corev1.PodSpec{NodeName: "n"},
		})
	}
	return p
}

func TestToBeMade(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*deployment)
		want   bool
	}{
		"a pod that runs as it should":       {func(*deployment) {}, false},
		"a pod that is not there":            {func(p *deployment) { p.pods = p.pods[:2] }, true},
		"a pod without a node":               {func(p *deployment) { p.pods[2].Spec.NodeName = "" }, true},
		"a pod of an older revision":         {func(p *deployment) { p.pods[2].Labels[appsv1.ControllerRevisionHashLabelKey] = "old" }, true},
		"a change that no one has looked at": {func(p *deployment) { p.set.Generation = 3 }, true},
		"a pod, whatever becomes of another": {func(p *deployment) { p.pods[0].Spec.NodeName = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := deployed()
			c.change(p)
			if got := p.isPending("s-2"); got != c.want {
				t.Errorf("isPending is %v", got)
			}
		})
	}
	if !deployed().isPlaced() {
		t.Error("a set whose pods all run as they should is not settled")
	}
}

func TestAPodWasAskedToEndBeforeItsGracePeriod(t *testing.T) {
	at := time.Date(2026, 1, 8, 16, 52, 54, 0, time.UTC)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: at}, DeletionGracePeriodSeconds: ptr.To[int64](30)}}
	if got := formatTime(asked(pod)); got != "2026-01-08T16:52:24Z" {
		t.Errorf("asked is %s", got)
	}
}

func TestThePodThatLacksItsVolumeIsFound(t *testing.T) {
	p := &deployment{Service: &Service{Name: "s", Claims: []corev1.PersistentVolumeClaim{claim("glance", "1G", nil)}}}
	with := func(source corev1.VolumeSource) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "glance", VolumeSource: source}}}}
	}
	if p.lacksVolume(with(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "glance-s-0"}})) {
		t.Error("a pod with its claim lacks none")
	}
	if !p.lacksVolume(with(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})) {
		t.Error("a pod with an emptyDir of that name lacks its claim")
	}
}

func TestSnippets(t *testing.T) {
	s := Snippets{Custom: "[DEFAULT]\nenabled_backends = a:b\n", Secrets: "[database]\nconnection = x\n"}
	for option, want := range map[[2]string]bool{
		{"DEFAULT", "enabled_backends"}: true, {"database", "connection"}: true, {"DATABASE", "connection"}: true, {"DEFAULT", "connection"}: false,
	} {
		if got := s.Sets(option[0], option[1]); got != want {
			t.Errorf("Sets(%s) is %v", option, got)
		}
	}
	want := map[string][]byte{"01-glance.conf": []byte("g"), "02-glance-override.conf": []byte(s.Custom), "03-glance-secrets.conf": []byte(s.Secrets)}
	if diff := cmp.Diff(want, s.Files("glance", "g")); diff != "" {
		t.Errorf("the files differ (-want +got):\n%s", diff)
	}
	if got := (Snippets{}).Files("nova", "g"); len(got) != 1 {
		t.Errorf("without snippets there are %d files", len(got))
	}
}
