package dataplane

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

type entry = dataplanev1.NodeServiceStatus

// What server-side apply makes of the entries is tested with a real API server
// in the stories of controllers; here it only counts what is sent.
func counting(t *testing.T, answer error) (client.Client, *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := dataplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	writes := 0
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			writes++
			return answer
		},
	}).Build(), &writes
}

func withEntries(entries ...entry) *dataplanev1.OpenStackDataPlaneNode {
	n := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "uid"}}
	n.Status.Services = entries
	return n
}

func TestApplyWritesOnlyChanges(t *testing.T) {
	shown := entry{Name: "nova", Ready: true, Kind: "K", ObjectName: "n"}
	for name, c := range map[string]struct {
		node   *dataplanev1.OpenStackDataPlaneNode
		entry  entry
		writes int
	}{
		"the first entry":                    {withEntries(), shown, 1},
		"the same entry":                     {withEntries(shown), shown, 0},
		"the same entry among others":        {withEntries(entry{Name: "ovn"}, shown), shown, 0},
		"another message":                    {withEntries(shown), entry{Name: "nova", Ready: true, Kind: "K", ObjectName: "n", Message: "x"}, 1},
		"an entry of another service is not": {withEntries(entry{Name: "ovn"}), shown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			api, writes := counting(t, nil)
			changed, err := SetServiceStatus(context.Background(), api, c.node, c.entry)
			if err != nil || changed != (c.writes > 0) || *writes != c.writes {
				t.Errorf("Apply = %v, %v with %d writes; want %d", changed, err, *writes, c.writes)
			}
		})
	}
}

func TestRemoveWritesOnlyWhenThereIsAnEntry(t *testing.T) {
	for want, n := range map[int]*dataplanev1.OpenStackDataPlaneNode{0: withEntries(entry{Name: "ovn"}), 1: withEntries(entry{Name: "nova"})} {
		api, writes := counting(t, nil)
		if changed, err := RemoveServiceStatus(context.Background(), api, n, "nova"); err != nil || changed != (want > 0) || *writes != want {
			t.Errorf("Remove = %v, %v with %d writes; want %d", changed, err, *writes, want)
		}
	}
}

func TestANodeThatHasGone(t *testing.T) {
	api, _ := counting(t, apierrors.NewNotFound(schema.GroupResource{}, "n"))
	if _, err := SetServiceStatus(context.Background(), api, withEntries(), entry{Name: "nova"}); !apierrors.IsNotFound(err) {
		t.Errorf("Apply returns %v; want NotFound, as nothing may be put on its host", err)
	}
	if _, err := RemoveServiceStatus(context.Background(), api, withEntries(entry{Name: "nova"}), "nova"); err != nil {
		t.Errorf("Remove returns %v; the entry has gone with the node", err)
	}
}

func TestHasServiceStatus(t *testing.T) {
	if HasServiceStatus(withEntries(entry{Name: "ovn"}), "nova") || !HasServiceStatus(withEntries(entry{Name: "ovn"}, entry{Name: "nova"}), "nova") {
		t.Error("Has finds an entry by its name")
	}
}
