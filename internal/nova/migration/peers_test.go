package migration

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestComputesOfACellShareWhatTheyAreTold(t *testing.T) {
	cells := &Cells{}
	one := cells.cell(types.NamespacedName{Namespace: "openstack", Name: "cell1"})
	if cells.cell(types.NamespacedName{Namespace: "openstack", Name: "cell1"}) != one || cells.cell(types.NamespacedName{Namespace: "other", Name: "cell1"}) == one {
		t.Fatal("the computes of a cell should share what they are told, and only they")
	}
	first, second := one.note("known_hosts", []byte("a b")), one.note("known_hosts", []byte("a b"))
	if &first[0] != &second[0] {
		t.Error("equal contents should be kept once")
	}
	if third := one.note("known_hosts", []byte("a b c")); string(third) != "a b c" || string(first) != "a b" {
		t.Errorf("got %q, and %q of before; want each as it was noted", third, first)
	}
}

func TestHostsOfARunAreToldTheSame(t *testing.T) {
	cell := (&Cells{}).cell(types.NamespacedName{Name: "cell1"})
	early := cell.hint("running", []string{"a"})
	late := cell.hint("running", []string{"a", "b"})
	for _, hint := range []any{early, late} {
		if text, err := json.Marshal(hint); err != nil || string(text) != `["a","b"]` {
			t.Errorf("got %s, %v; want the latest value", text, err)
		}
	}
}
