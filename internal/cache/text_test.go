package cache_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/cache"
)

// readyCompute is the n-th of many computes that are Ready, as it comes from the API server.
func readyCompute(t *testing.T, n int) *novav1.NovaExternalCompute {
	t.Helper()
	name := fmt.Sprintf("edpm-compute-%04d", n)
	compute := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{
		Namespace: "openstack", Name: name, Finalizers: []string{novav1.NovaExternalComputeFinalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "dataplane.openstack.org/v1beta1", Kind: "OpenStackDataPlaneNode", Name: name, UID: "uid", Controller: ptr.To(true)}},
	}}
	compute.Spec.CellName, compute.Spec.SSHKeySecretName = "nova-cell1", "dataplane-ansible-ssh-private-key-secret"
	compute.Spec.NovaComputeContainerImage = "quay.io/podified-antelope-centos9/openstack-nova-compute:current-podified"
	compute.Spec.NovaLibvirtContainerImage = "quay.io/podified-antelope-centos9/openstack-nova-libvirt:current-podified"
	for _, step := range []string{"libvirt", "nova"} {
		compute.Status.Set(step, fmt.Sprintf("%064d", n), common.RunRecord{Name: "edpm-compute-libvirt-nova-0123456789abcdef", Serial: 1, End: &metav1.Time{Time: time.Unix(1, 0)}})
	}
	for _, of := range []string{"Ready", "InputReady", "NovaCellReady", "DataPlaneNodeReady", "ServiceConfigReady", "DeploymentReady"} {
		c := condition.TrueCondition(condition.Type(of), "What is said of this is the same for each of them")
		c.LastTransitionTime = metav1.Unix(1, 0)
		compute.Status.Conditions = append(compute.Status.Conditions, *c)
	}
	text, err := json.Marshal(compute)
	if err != nil {
		t.Fatal(err)
	}
	decoded := &novav1.NovaExternalCompute{}
	if err := json.Unmarshal(text, decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func heldAs(t *testing.T, n int) any {
	t.Helper()
	compute, err := cache.Options(nil).DefaultTransform(readyCompute(t, n))
	if err != nil {
		t.Fatal(err)
	}
	return compute
}

func TestACachedObjectSaysTheSameWithSharedText(t *testing.T) {
	if diff := cmp.Diff(any(readyCompute(t, 1)), heldAs(t, 1)); diff != "" {
		t.Errorf("what is held differs (-want +got):\n%s", diff)
	}
}

func TestComputesShareWhatAllOfThemSay(t *testing.T) {
	const computes = 2000
	size := func(of func(n int) any) int64 {
		live := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, all := live(), make([]any, 0, computes)
		for n := range computes {
			all = append(all, of(n))
		}
		defer runtime.KeepAlive(all)
		return (live() - before) / computes
	}
	decoded, held := size(func(n int) any { return readyCompute(t, n) }), size(func(n int) any { return heldAs(t, n) })
	t.Logf("a compute takes %d bytes as it is decoded and %d in the cache", decoded, held)
	if held > decoded*5/6 {
		t.Errorf("a compute takes %d bytes in the cache; want less than five sixths of the %d as it is decoded", held, decoded)
	}
}
