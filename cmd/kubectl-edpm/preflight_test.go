package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// awaitPreflight returns the run that the command has created.
func (k *kubectl) awaitPreflight() *ansibleeev1.OpenStackAnsibleEE { return k.awaitCheck("preflight-") }

// awaitCheck returns the run with the prefix that a command has created.
func (k *kubectl) awaitCheck(prefix string) *ansibleeev1.OpenStackAnsibleEE {
	k.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list := &ansibleeev1.OpenStackAnsibleEEList{}
		if err := k.client.List(context.Background(), list, client.InNamespace("openstack")); err != nil {
			k.t.Fatal(err)
		}
		for i := range list.Items {
			r := &list.Items[i]
			if strings.HasPrefix(r.Name, prefix) && k.client.Get(context.Background(), client.ObjectKeyFromObject(r), &corev1.Secret{}) == nil {
				return r
			}
		}
	}
	k.t.Fatal("the command creates no run with a Secret")
	return nil
}

// endPreflight ends a run, with a Pod that has printed the lines.
func (k *kubectl) endPreflight(r *ansibleeev1.OpenStackAnsibleEE, status ansibleeev1.JobStatus, lines ...string) {
	k.t.Helper()
	k.makeKubelet("kubelet-"+r.Name, strings.Join(lines, "\n"))
	pod := &corev1.Pod{ObjectMeta: k.meta(r.Name + "-x"), Spec: corev1.PodSpec{NodeName: "kubelet-" + r.Name, Containers: []corev1.Container{{Name: "openstackansibleee", Image: "ee"}}}}
	pod.Labels = map[string]string{batchv1.JobNameLabel: r.Name}
	k.make(pod)
	pod.Status.Phase = corev1.PodSucceeded
	k.writeStatus(pod)
	r.Status.ObservedGeneration, r.Status.JobStatus = r.Generation, status
	r.Status.Conditions = condition.Conditions{is(condition.ReadyCondition, "JobFailed", "the playbook does not exist in the execution environment")}
	k.writeStatus(r)
}

// printed is what the playbook prints as the result of a host.
func printed(r *ansibleeev1.OpenStackAnsibleEE, result string) string {
	var token string
	for _, only := range r.Spec.ExtraVars {
		_ = json.Unmarshal(only.Raw, &token)
	}
	return fmt.Sprintf(`    "msg": "EDPM_PREFLIGHT %s %s"`, token, base64.StdEncoding.EncodeToString([]byte(result)))
}

// isGone checks that a command has left neither its run nor the Secret.
func (k *kubectl) isGone(t *testing.T, r *ansibleeev1.OpenStackAnsibleEE) {
	t.Helper()
	for _, obj := range []client.Object{&corev1.Secret{}, &ansibleeev1.OpenStackAnsibleEE{}} {
		if err := k.client.Get(context.Background(), client.ObjectKeyFromObject(r), obj); !apierrors.IsNotFound(err) {
			t.Errorf("%T is left: %v", obj, err)
		}
	}
}

func TestPreflight(t *testing.T) {
	k := newCluster(t)
	role := MakeRole("edpm-compute", "openstack").SSHKey("key").Cell("nova-cell1").JumpHost(MakeJumpHost("bastion", "jump")).Obj()
	k.make(role)
	k.make(MakeCell("nova-cell1", "openstack").Obj())
	for _, name := range []string{"edpm-compute-0", "edpm-compute-1"} {
		k.makeDataPlaneNode(name, condition.Condition{})
	}
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta("edpm-compute-0")}
	k.read(node)
	node.Status.HostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPiG1dsVVVsPIMPZ9JmPQVAwFbXzXjqMZUaxPSBEqRIN"
	k.writeStatus(node)

	t.Run("runs as a deployment would, prints a line for each check, and fails with one that failed", func(t *testing.T) {
		out, ended := k.start("preflight", "edpm-compute-0", "edpm-compute-1", "edpm-compute-0")
		run := k.awaitPreflight()
		if !run.Spec.Check || run.Spec.SSHKeySecretName != "key" || run.Spec.JumpHost == nil || len(run.Spec.Targets) > 0 || *run.Spec.BackoffLimit != 0 {
			t.Errorf("the run is %+v", run.Spec)
		}
		if sources := run.Spec.ExtraMounts[0].Volumes[0].Projected.Sources; sources[0].Secret.Name != "nova-cell1-compute-config" {
			t.Errorf("what hosts have to reach comes from %+v", sources)
		}
		inputs := &corev1.Secret{ObjectMeta: run.ObjectMeta}
		k.read(inputs)
		if known := string(inputs.Data["known_hosts"]); known != "edpm-compute-0 "+node.Status.HostKey+"\n" {
			t.Errorf("the known hosts are %q", known)
		}
		k.endPreflight(run, ansibleeev1.JobSucceeded,
			`    "msg": "EDPM_PREFLIGHT guessed `+base64.StdEncoding.EncodeToString([]byte(`{"host": "edpm-compute-1", "checks": [{"check": "ssh", "ok": true}]}`))+`"`,
			printed(run, `{"host": "edpm-compute-0", "checks": [{"check": "ssh", "ok": true, "message": "logged in"}, {"check": "tls", "ok": null, "message": "none"},
				{"check": "mtu", "ok": false, "message": "it is\n1400", "remedy": "raise it"}]}`))
		err := <-ended
		if err == nil || err.Error() != "2 of 4 checks failed" {
			t.Errorf("the error is %v", err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{
			"edpm-compute-0 ssh ok logged in", "edpm-compute-0 tls skipped none", "edpm-compute-0 mtu FAILED it is 1400. Remedy: raise it",
			"edpm-compute-1 run FAILED the playbook does not exist in the execution environment. Remedy:",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing:\n%s", want, out)
			}
		}
		k.isGone(t, run)
	})
	t.Run("succeeds when no check failed", func(t *testing.T) {
		_, ended := k.start("preflight", "edpm-compute-0")
		run := k.awaitPreflight()
		k.endPreflight(run, ansibleeev1.JobSucceeded, printed(run, `{"host": "edpm-compute-0", "checks": [{"check": "ssh", "ok": true}, {"check": "tls", "ok": null}]}`))
		if err := <-ended; err != nil {
			t.Error(err)
		}
		k.isGone(t, run)
	})
	t.Run("leaves nothing when the time is over", func(t *testing.T) {
		_, ended := k.start("preflight", "edpm-compute-0", "--timeout", "2s")
		run := k.awaitPreflight()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "not done") {
			t.Errorf("the error is %v", err)
		}
		k.isGone(t, run)
	})
	t.Run("has a run for each way to the hosts", func(t *testing.T) {
		near := MakeNode("near", "openstack").Role("edpm-compute").JumpHost(MakeJumpHost("other", "jump")).Obj()
		k.make(near)
		_, ended := k.start("preflight", "edpm-compute-0", "near", "--timeout", "3s")
		k.awaitPreflight()
		runs := &ansibleeev1.OpenStackAnsibleEEList{}
		for end := time.Now().Add(10 * time.Second); len(runs.Items) < 2 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if err := k.client.List(context.Background(), runs, client.InNamespace("openstack")); err != nil {
				t.Fatal(err)
			}
		}
		if len(runs.Items) != 2 || runs.Items[0].Spec.JumpHost.Address == runs.Items[1].Spec.JumpHost.Address {
			t.Errorf("the runs are %d", len(runs.Items))
		}
		if err := <-ended; err == nil {
			t.Error("it succeeds without results")
		}
	})
	t.Run("refuses a node that does not exist, or that no one can log in to", func(t *testing.T) {
		k.make(MakeNode("keyless", "openstack").Obj())
		k.refuses([]string{"preflight", "edpm-compute-9"}, `there is neither a node nor a role "edpm-compute-9"`)
		k.refuses([]string{"preflight", "keyless"}, "node keyless has no SSH key: set ansibleSSHPrivateKeySecret")
	})
}
