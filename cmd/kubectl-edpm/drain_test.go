package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// drainOf returns the annotations of a node with which it is drained.
func (k *kubectl) drainOf(node string) string {
	k.t.Helper()
	n := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta(node)}
	k.read(n)
	mode, asked := n.Annotations[common.DrainAnnotation]
	if !asked {
		return "none"
	}
	return strings.TrimSpace(mode + " " + n.Annotations[common.DrainParallelAnnotation])
}

// awaitDrain waits until the plugin has annotated a node.
func (k *kubectl) awaitDrain(node, want string) {
	k.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); k.drainOf(node) != want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.t.Fatalf("node %s is drained %q; want %q", node, k.drainOf(node), want)
		}
	}
}

// say has the compute of a node report conditions.
func (k *kubectl) say(node string, conditions ...condition.Condition) {
	k.t.Helper()
	compute := &novav1.NovaExternalCompute{ObjectMeta: k.meta(node)}
	k.read(compute)
	compute.Status.Conditions = conditions
	k.writeStatus(compute)
}

// done is a condition of a host that is drained.
func done(reason condition.Reason, message string) condition.Condition {
	c := is(novav1.DrainedCondition, "", "")
	c.Reason, c.Message = reason, message
	return c
}

func TestDrain(t *testing.T) {
	k := newDataPlane(t)
	first, second := "edpm-compute-0", "edpm-compute-1"

	t.Run("refuses what it cannot drain, before anything is changed", func(t *testing.T) {
		k.refuses([]string{"drain", first, "edpm-compute-9"}, `neither a node nor a role "edpm-compute-9"`)
		k.refuses([]string{"drain", first, "role/edpm-compute"}, "name each node of the role")
		k.refuses([]string{"drain", first, "--parallel", "0"}, "must be a number from 1 to 50")
		k.refuses([]string{"drain", first, "--cold", "--stop"}, "[cold stop]")
		k.make(&dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta("edpm-storage-0")})
		k.refuses([]string{"drain", first, "edpm-storage-0"}, "node edpm-storage-0 has no compute")
		if got := k.drainOf(first); got != "none" {
			t.Errorf("it is drained %q", got)
		}
	})
	t.Run("follows the drain of nodes until nova has nothing on any of them", func(t *testing.T) {
		screen, ended := k.start("drain", first, "node/"+second, first)
		k.awaitDrain(first, "live")
		k.awaitDrain(second, "live")
		k.say(first, is(novav1.DrainedCondition, novav1.DrainingReason, "Host h0 has guests: 2 being moved"))
		screen.await(t, first+": Host h0 has guests: 2 being moved\n")
		k.say(second, done(novav1.HostEmptyReason, "nova has no instances on host h1"))
		screen.await(t, second+": nova has no instances on host h1\n")
		k.say(first, is(novav1.DrainedCondition, novav1.GuestsRemainReason, "1 that cannot be moved"))
		screen.await(t, first+": 1 that cannot be moved\n")
		k.say(first, done(novav1.HostEmptyReason, "nova has no instances on host h0"))
		if err := <-ended; err != nil {
			t.Errorf("%v:\n%s", err, screen)
		}
	})
	t.Run("does not take the end of a drain in another way for its own", func(t *testing.T) {
		screen, ended := k.start("drain", first, "--stop", "--parallel", "5")
		k.awaitDrain(first, "stop 5")
		screen.await(t, "nova has no instances on host h0\n")
		k.say(first, done(novav1.GuestsStoppedReason, "All 2 guests of host h0 are shut off"))
		if err := <-ended; err != nil || !strings.Contains(screen.String(), "All 2 guests of host h0 are shut off\n") {
			t.Errorf("%v:\n%s", err, screen)
		}
	})
	t.Run("says what continues when it is interrupted, or its time is over", func(t *testing.T) {
		k.say(second, is(novav1.DrainedCondition, novav1.DrainingReason, "Host h1 has guests: 2 being moved"))
		ctx, interrupt := context.WithCancel(t.Context())
		screen := &screen{}
		root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(""), Out: screen, ErrOut: screen})
		root.SetArgs([]string{"drain", second, "--cold", "--kubeconfig", k.kubeconfig, "--namespace", "openstack"})
		ended := make(chan error, 1)
		go func() { ended <- root.ExecuteContext(ctx) }()
		screen.await(t, "2 being moved\n")
		interrupt()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "the drain of edpm-compute-1 continues, and is no longer followed") || !strings.Contains(err.Error(), "kubectl edpm undrain edpm-compute-1 ends it") {
			t.Errorf("it says %v", err)
		}
		if got := k.drainOf(second); got != "cold" {
			t.Errorf("it is drained %q", got)
		}
		k.refuses([]string{"drain", second, "--timeout", "1s"}, "the drain of edpm-compute-1 continues")
	})
	t.Run("fails where no Nova with an API manages the cell", func(t *testing.T) {
		k.say(second, is(novav1.DrainedCondition, novav1.DrainNotPossibleReason, "No Nova with an API manages NovaCell c"))
		k.refuses([]string{"drain", second}, "node edpm-compute-1 cannot be drained: DrainNotPossible")
	})
	t.Run("ends with what nova says of the service, which another user may have disabled", func(t *testing.T) {
		screen, ended := k.start("undrain", first, second)
		k.awaitDrain(first, "none")
		k.awaitDrain(second, "none")
		k.say(first, is(novav1.ComputeServiceReadyCondition, "", ""))
		k.say(second, is(novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "its service is disabled (bad DIMM)"))
		if err := <-ended; err != nil {
			t.Errorf("%v:\n%s", err, screen)
		}
		screen.await(t, second+": its service is disabled (bad DIMM)\n")
	})
	t.Run("does not wait for a drain that a step asks for", func(t *testing.T) {
		k.say(first, is(novav1.DrainedCondition, novav1.GuestsRemainReason, "1 that cannot be moved"))
		compute := &novav1.NovaExternalCompute{ObjectMeta: k.meta(first)}
		k.read(compute)
		compute.Status.Drain = &novav1.DrainStatus{Step: "libvirt", Since: metav1.Now()}
		k.writeStatus(compute)
		screen, ended := k.start("undrain", first)
		if err := <-ended; err != nil {
			t.Errorf("%v:\n%s", err, screen)
		}
		screen.await(t, first+": it stays drained until step libvirt has run: see status.drain of the compute")
		k.read(compute)
		compute.Status.Drain = nil
		k.writeStatus(compute)
	})
	t.Run("ends when the compute is deleted", func(t *testing.T) {
		screen, ended := k.start("drain", first)
		k.awaitDrain(first, "live")
		if err := k.client.Delete(context.Background(), &novav1.NovaExternalCompute{ObjectMeta: k.meta(first)}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("%v:\n%s", err, screen)
		}
		screen.await(t, first+": the compute was deleted\n")
	})
}
