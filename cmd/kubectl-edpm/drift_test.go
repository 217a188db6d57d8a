package main

import (
	"strings"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func TestDrift(t *testing.T) {
	k := newCluster(t)
	k.make(&dataplanev1.OpenStackDataPlaneRole{ObjectMeta: k.meta("edpm-compute")})
	for _, name := range []string{"edpm-compute-0", "edpm-compute-1"} {
		k.makeDataPlaneNode(name, condition.Condition{})
	}
	prints := func(t *testing.T, want []string, args ...string) {
		t.Helper()
		out, err := k.run("", append([]string{"drift"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), text) {
				t.Errorf("%q is missing:\n%s", text, out)
			}
		}
	}
	t.Run("says that nothing is checked", func(t *testing.T) {
		prints(t, []string{"0 of 2 nodes checked, 0 differ", "spec.deployStrategy.driftCheck"})
	})
	ago := metav1.NewTime(time.Now().Add(-2*time.Hour - time.Second).Truncate(time.Second))
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta("edpm-compute-0")}
	k.read(node)
	node.Status.Drift = []common.Drift{{Step: "install-os", Checked: ago}, {Step: "configure-os", Checked: ago, Message: "no route to host"}}
	k.writeStatus(node)
	compute := &novav1.NovaExternalCompute{ObjectMeta: k.meta("edpm-compute-0")}
	k.read(compute)
	compute.Status.Drift = []common.Drift{{Step: "nova", Checked: ago, Repaired: true, Differences: []common.Difference{
		{Task: "Copy the configuration", Names: []string{"/var/lib/openstack/nova.conf", "/etc/b"}}, {Omitted: 3},
	}}}
	k.writeStatus(compute)
	t.Run("names what differs on a node and in its services", func(t *testing.T) {
		prints(t, []string{
			"edpm-compute-0 configure-os 2h0m0s ago not checked: no route to host",
			"edpm-compute-0 nova 2h0m0s ago Copy the configuration (/var/lib/openstack/nova.conf, /etc/b) 3 more tasks came back", "1 of 2 nodes checked, 1 differ",
		})
		prints(t, []string{"1 of 1 nodes checked, 1 differ"}, "edpm-compute-0")
		prints(t, []string{"0 of 1 nodes checked, 0 differ"}, "edpm-compute-1")
		prints(t, []string{"1 of 2 nodes checked, 1 differ"}, "role/edpm-compute")
		prints(t, []string{`"step": "nova"`, `"names": [ "/var/lib/openstack/nova.conf"`}, "-o", "json")
	})
	t.Run("refuses what is neither a node nor a role", func(t *testing.T) {
		k.refuses([]string{"drift", "other"}, "there is neither a node nor a role")
	})
}
