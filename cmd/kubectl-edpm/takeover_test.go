package main

import (
	"strings"
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

func TestTakeOver(t *testing.T) {
	k := newCluster(t)
	k.make(MakeRole("edpm-compute", "openstack").SSHKey("key").Cell("nova-cell1").Obj())
	for _, name := range []string{"edpm-compute-0", "edpm-compute-1"} {
		k.makeDataPlaneNode(name, condition.Condition{})
	}
	annotation := func(name string) string {
		node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta(name)}
		k.read(node)
		return node.Annotations[common.TakeOverAnnotation]
	}

	t.Run("with --dry-run prints what would be stopped, and changes neither host nor node", func(t *testing.T) {
		out, ended := k.start("take-over", "edpm-compute-0", "edpm-compute-1", "--from", "kolla-ansible", "--dry-run")
		run := k.awaitCheck("take-over-")
		if !run.Spec.Check || run.Spec.Playbook != "edpm.operators.take_over" || run.Spec.SSHKeySecretName != "key" || len(run.Spec.ExtraMounts) > 0 {
			t.Errorf("the run is %+v", run.Spec)
		}
		inputs := &corev1.Secret{ObjectMeta: run.ObjectMeta}
		k.read(inputs)
		if inventory := string(inputs.Data["inventory"]); strings.Count(inventory, "edpm_take_over: kolla-ansible") != 2 {
			t.Errorf("the inventory is %s", inventory)
		}
		k.endPreflight(run, ansibleeev1.JobSucceeded,
			printed(run, `{"host": "edpm-compute-0", "checks": [{"check": "would run", "ok": true, "message": "systemctl disable --now kolla-nova_compute-container.service"}]}`),
			printed(run, `{"host": "edpm-compute-1", "checks": [{"check": "take-over", "ok": false, "message": "guest a would end"}]}`))
		if err := <-ended; err == nil || err.Error() != "1 of 2 checks failed" {
			t.Errorf("the error is %v", err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{"edpm-compute-0 would run ok systemctl disable --now kolla-nova_compute-container.service", "edpm-compute-1 take-over FAILED guest a would end"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing:\n%s", want, out)
			}
		}
		k.isGone(t, run)
		if got := annotation("edpm-compute-0") + annotation("edpm-compute-1"); got != "" {
			t.Errorf("the annotation is %q", got)
		}
	})
	t.Run("names the tool on the nodes", func(t *testing.T) {
		out, ended := k.start("take-over", "edpm-compute-0", "--from", "edpm-ansible")
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if got := annotation("edpm-compute-0"); got != "edpm-ansible" || annotation("edpm-compute-1") != "" {
			t.Errorf("the annotation is %q", got)
		}
		if !strings.Contains(out.String(), "kubectl edpm status edpm-compute-0 --watch") {
			t.Errorf("it prints %s", out)
		}
	})
	t.Run("refuses a tool from which no host can be taken over", func(t *testing.T) {
		k.refuses([]string{"take-over", "edpm-compute-0", "--from", "puppet"}, `--from "puppet": must be one of [edpm-ansible kolla-ansible packages]`)
		k.refuses([]string{"take-over", "edpm-compute-0", "--from", ""}, `--from "": must be one of`)
	})
}
