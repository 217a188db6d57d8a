package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestOneStatefulSetThatFitsLeavesTheOtherWaiting(t *testing.T) {
	object := types.NamespacedName{Namespace: "openstack", Name: "cell1"}
	var w Waiting
	w.Note(object, "conductor", makeWorkload(1))
	w.Note(object, "metadata")
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: object}}, w.All(t.Context(), nil)); diff != "" {
		t.Error(diff)
	}
	w.Note(object, "conductor")
	if left := w.All(t.Context(), nil); len(left) > 0 {
		t.Errorf("still waiting: %v", left)
	}
}
