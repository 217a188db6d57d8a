package watch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestQuotaChanges(t *testing.T) {
	quota := func(hard, used string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"pods": resource.MustParse(hard)}, Used: corev1.ResourceList{"pods": resource.MustParse(used)},
		}}
	}
	for name, c := range map[string]struct {
		after *corev1.ResourceQuota
		want  bool
	}{
		"nothing":              {quota("5", "3"), false},
		"a pod more":           {quota("5", "4"), false},
		"a pod less":           {quota("5", "2"), true},
		"a limit that differs": {quota("6", "3"), true},
	} {
		if got := QuotaChanges.Update(event.UpdateEvent{ObjectOld: quota("5", "3"), ObjectNew: c.after}); got != c.want {
			t.Errorf("%s is let through: %v; want %v", name, got, c.want)
		}
	}
}
