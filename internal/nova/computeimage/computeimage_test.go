package computeimage

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func manages(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
}

const imageField = `{"f:spec":{"f:novaComputeContainerImage":{}}}`

func TestWhoChoseAnImage(t *testing.T) {
	other := manages("edpm-nova-computenode", `{"f:spec":{"f:cellName":{}}}`)
	own := manages(FieldManager, imageField)
	human := manages("argocd", imageField)
	for name, c := range map[string]struct {
		managers []metav1.ManagedFieldsEntry
		want     string
	}{
		"a person, for libvirt only":  {[]metav1.ManagedFieldsEntry{own, manages("argocd", `{"f:spec":{"f:novaLibvirtContainerImage":{}}}`)}, ""},
		"no one, as admission set it": {[]metav1.ManagedFieldsEntry{other, {Manager: "without fields"}}, ""},
		"an update of the cell":       {[]metav1.ManagedFieldsEntry{own, other}, ""},
		"another program":             {[]metav1.ManagedFieldsEntry{other, human}, "argocd"},
		"both":                        {[]metav1.ManagedFieldsEntry{own, human}, "argocd"},
	} {
		if got := ChosenBy(c.managers, novav1.ComputeComponent); got != c.want {
			t.Errorf("%s: it was chosen by %q, want %q", name, got, c.want)
		}
		kept := Managers(append([]metav1.ManagedFieldsEntry{}, c.managers...))
		if got := ChosenBy(kept, novav1.ComputeComponent); got != c.want || len(kept) > 1 || len(kept) == 1 && kept[0].Manager == FieldManager {
			t.Errorf("%s: the cache keeps %v, by which it was chosen by %q, want %q", name, kept, got, c.want)
		}
	}
}
