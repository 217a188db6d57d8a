package main

import (
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// fenceOf returns who says of a node that its host is off.
func (k *kubectl) fenceOf(node string) string {
	k.t.Helper()
	n := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta(node)}
	k.read(n)
	return n.Annotations[common.FenceAnnotation]
}

func TestFence(t *testing.T) {
	k := newDataPlane(t)
	node := "edpm-compute-0"
	evacuated := func(status, message string, reason condition.Reason) {
		c := is(novav1.EvacuatedCondition, reason, message)
		if status == "True" {
			c = done(reason, message)
			c.Type = novav1.EvacuatedCondition
		}
		k.say(node, c)
	}

	ends := func(screen *screen, ended <-chan error) {
		t.Helper()
		if err := <-ended; err != nil {
			t.Errorf("%v:\n%s", err, screen)
		}
	}

	t.Run("asks who says so, before anything is changed", func(t *testing.T) {
		k.refuses([]string{"fence", node}, `required flag(s) "by" not set`)
		k.refuses([]string{"fence", node, "--by", " "}, "name who says that the host is off")
		k.refuses([]string{"fence", node, "--by", "anna", "--parallel", "0"}, "must be a number from 1 to 50")
		if got := k.fenceOf(node); got != "" {
			t.Errorf("it is fenced by %q", got)
		}
	})
	t.Run("follows the evacuation of a host, which is drained no longer", func(t *testing.T) {
		screen, ended := k.start("drain", node)
		k.awaitDrain(node, "live")
		k.say(node, done(novav1.HostEmptyReason, "nova has no instances on host h0"))
		ends(screen, ended)
		screen, ended = k.start("fence", node, "--by", "anna: off")
		k.awaitDrain(node, "none")
		if got := k.fenceOf(node); got != "anna: off" {
			t.Errorf("it is fenced by %q", got)
		}
		evacuated("False", "1 being moved", novav1.EvacuatingReason)
		screen.await(t, node+": 1 being moved\n")
		evacuated("True", "nova has no instances on host h0", novav1.HostEvacuatedReason)
		ends(screen, ended)
	})
	t.Run("fails if the host runs", func(t *testing.T) {
		evacuated("False", "its nova-compute reports", novav1.HostAliveReason)
		k.refuses([]string{"fence", node, "--by", "anna: off"}, "node edpm-compute-0 is not evacuated: FencedHostAlive")
	})
	t.Run("ends when nova uses the host again", func(t *testing.T) {
		screen, ended := k.start("unfence", node)
		screen.await(t, node+": its nova-compute reports\n")
		evacuated("False", "waiting until its steps have been run", novav1.HostReturningReason)
		screen.await(t, node+": waiting until its steps have been run\n")
		k.say(node, is(novav1.ComputeServiceReadyCondition, "", "nova-compute is up"))
		ends(screen, ended)
		if got := k.fenceOf(node); got != "" {
			t.Errorf("it is fenced by %q", got)
		}
	})
}
