package podified

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

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

// Nothing is predicted again for an event that cannot matter: only objects whose
// pods would find no place are woken, and those only by what concerns them.
func TestVerdictsWakeThoseThatWait(t *testing.T) {
	v := &verdicts{}
	of := func(name string) *deployment {
		return &deployment{Service: &Service{Name: name + "-set"}, owner: &glancev1.GlanceAPI{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}}
	}
	woken := func(obj *corev1.Pod) []string {
		var names []string
		for _, r := range v.concerned(t.Context(), obj) {
			names = append(names, r.Name)
		}
		slices.Sort(names)
		return names
	}
	near := &placement.Workload{Namespace: "ns", Name: "near-set"}
	near.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, TopologyKey: "zone",
	}}}}
	v.note(of("near"), near, []placement.Problem{{Reason: "Unsatisfiable"}})
	v.note(of("full"), &placement.Workload{Namespace: "ns", Name: "full-set"}, nil)
	v.note(of("fine"), nil, nil)
	db := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "db"}}}
	if got := woken(db); !slices.Equal(got, []string{"near"}) {
		t.Errorf("a pod wakes %v; want the one whose affinity selects it", got)
	}
	if got := v.all(t.Context(), db); len(got) != 2 {
		t.Errorf("room wakes %v; want all that wait", got)
	}
	if problems, known := v.of(of("near")); !known || len(problems) != 1 {
		t.Errorf("the problems are %v, known: %v", problems, known)
	}
	v.note(of("near"), nil, nil)
	v.forget("ns", "full-set")
	if got := v.all(t.Context(), db); len(got) > 0 {
		t.Errorf("room wakes %v; want none, as all have a place or are gone", got)
	}
	if _, known := v.of(of("full")); known {
		t.Error("what is gone is remembered")
	}
}
