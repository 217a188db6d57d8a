package podified

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// Nothing is predicted again for an event that cannot matter: only objects whose
// pods would find no place are woken, and those only by what concerns them.
func TestPredictionsWakeThoseThatWait(t *testing.T) {
	v := &predictions{}
	of := func(name string) *deployment {
		return &deployment{Service: &Service{Name: name + "-set"}, owner: &glancev1.GlanceAPI{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}}
	}
	woken := func(obj *corev1.Pod) []string {
		var names []string
		for _, r := range v.waiting.Concerned(t.Context(), obj) {
			names = append(names, r.Name)
		}
		slices.Sort(names)
		return names
	}
	near := placement.Workload{Namespace: "ns", Name: "near-set"}
	near.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, TopologyKey: "zone",
	}}}}
	v.note(of("near"), []placement.Problem{{Reason: "Unsatisfiable"}}, near)
	v.note(of("full"), nil, placement.Workload{Namespace: "ns", Name: "full-set"})
	v.note(of("fine"), nil)
	db := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "db"}}}
	if got := woken(db); !slices.Equal(got, []string{"near"}) {
		t.Errorf("a pod wakes %v; want the one whose affinity selects it", got)
	}
	if got := v.waiting.All(t.Context(), db); len(got) != 2 {
		t.Errorf("room wakes %v; want all that wait", got)
	}
	if problems, known := v.of(of("near")); !known || len(problems) != 1 {
		t.Errorf("the problems are %v, known: %v", problems, known)
	}
	v.note(of("near"), nil)
	v.forget("ns", "full-set")
	if got := v.waiting.All(t.Context(), db); len(got) > 0 {
		t.Errorf("room wakes %v; want none, as all have a place or are gone", got)
	}
	if _, known := v.of(of("full")); known {
		t.Error("what is gone is remembered")
	}
}
