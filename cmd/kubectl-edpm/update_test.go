package main

import (
	"strings"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// makeNova makes a Nova that runs release 1 while the operators bring release 2.
func (k *kubectl) makeNova() *novav1.Nova {
	nova := &novav1.Nova{ObjectMeta: k.meta("nova")}
	nova.Spec.Secret, nova.Spec.KeystoneAuthURL = "osp-secret", "http://keystone.example:5000"
	k.make(nova)
	nova.Status.Conditions = condition.Conditions{is(condition.ReadyCondition, "", "")}
	nova.Status.Images = map[string]string{"api": "api:1", "conductor": "conductor:1"}
	nova.Status.Update = &common.Update{ID: "0123abcd", Images: map[string]string{"api": "api:2", "compute": "compute:2"}}
	k.writeStatus(nova)
	for name, owner := range map[string]*novav1.Nova{"nova-cell1": nova, "other-cell1": nil} {
		cell := &novav1.NovaCell{ObjectMeta: k.meta(name)}
		cell.Spec.CellName = name
		cell.Spec.Secret, cell.Spec.CellMessageBusSecretName, cell.Spec.KeystoneAuthURL = "osp-secret", "bus", "http://keystone.example:5000"
		if owner != nil {
			cell.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, novav1.GroupVersion.WithKind("Nova"))}
		}
		k.make(cell)
		cell.Status.Computes = &novav1.ComputesStatus{Total: 4, Pinned: 1}
		k.writeStatus(cell)
	}
	return nova
}

func TestUpdate(t *testing.T) {
	k := newCluster(t)
	nova := k.makeNova()
	accepted := func() string {
		k.read(nova)
		return nova.Annotations[common.UpdateAnnotation]
	}
	await := func(t *testing.T, id string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); accepted() != id; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("update %s is not accepted, but %q", id, accepted())
			}
		}
	}

	t.Run("changes nothing without an answer", func(t *testing.T) {
		for _, answer := range []string{"", "n\n", "what?\n"} {
			out, err := k.run(answer, "update", "nova/nova")
			if err == nil || err.Error() != "nothing was changed" || accepted() != "" {
				t.Errorf("%q: %v, annotation %q:\n%s", answer, err, accepted(), out)
			}
		}
	})
	t.Run("refuses what names no object", func(t *testing.T) {
		k.refuses([]string{"update", "nova"}, "write kind/name, for example nova/nova")
		k.refuses([]string{"update", "pods/nova"}, `no kind "pods" of the operators`)
		k.refuses([]string{"update", "nova/other"}, "not found")
	})
	t.Run("accepts what it has shown, and follows it", func(t *testing.T) {
		screen, ended := k.start("update", "Nova/nova", "--yes")
		screen.await(t, "api        api:1          api:2\n")
		screen.await(t, "  1. schema of the API database\n  2. API\n  3. computes\n")
		screen.await(t, "NovaCell nova-cell1: 3 hosts; 1 keep an image that was chosen for them\n")
		await(t, "0123abcd")
		nova.Status.Update, nova.Status.Images["api"] = nil, "api:2"
		nova.Status.Conditions = condition.Conditions{is(condition.ReadyCondition, "JobRunning", "Job nova-api-db-sync is to sync")}
		k.writeStatus(nova)
		screen.await(t, "Job nova-api-db-sync is to sync")
		nova.Status.ObservedGeneration = nova.Generation
		nova.Status.Conditions = condition.Conditions{is(condition.ReadyCondition, "", "")}
		k.writeStatus(nova)
		if err := <-ended; err != nil {
			t.Errorf("%v:\n%s", err, screen)
		}
	})
	t.Run("says that the check comes first, and ends with its remedy when it refuses the update", func(t *testing.T) {
		nova.Status.Update, nova.Status.Images["api"] = &common.Update{ID: "4567abcd", Images: map[string]string{"api": "api:3"}}, "api:2"
		k.writeStatus(nova)
		screen, ended := k.start("update", "nova/nova", "--yes")
		screen.await(t, "Nothing changes until a check of databases and computes has passed: see condition UpgradeCheckReady")
		await(t, "4567abcd")
		nova.Status.Update = nil
		running := is(novav1.UpgradeCheckReadyCondition, "JobRunning", "Job nova-upgrade-check is to check")
		running.Severity = condition.SeverityInfo
		nova.Status.Conditions = condition.Conditions{running, is(condition.ReadyCondition, "Updating", "Waiting")}
		k.writeStatus(nova)
		screen.await(t, "Job nova-upgrade-check is to check\nWaiting\n")
		refused := is(novav1.UpgradeCheckReadyCondition, "ComputesDown", "nova-compute is down on 1 hosts")
		refused.Severity = condition.SeverityWarning
		nova.Status.Conditions = condition.Conditions{refused, is(condition.ReadyCondition, "ComputesDown", "nova-compute is down on 1 hosts")}
		k.writeStatus(nova)
		err := <-ended
		if err == nil || !strings.Contains(err.Error(), "is refused (ComputesDown) and nothing is changed") || !strings.Contains(err.Error(), "nova nova "+common.UpdateAnnotation+"-") {
			t.Errorf("%v:\n%s", err, screen)
		}
		screen.await(t, "nova-compute is down on 1 hosts\n")
		nova.Status.Conditions = condition.Conditions{is(condition.ReadyCondition, "", "")}
		k.writeStatus(nova)
	})
	t.Run("shows images with digests as they are", func(t *testing.T) {
		present, offered := "registry.example:5000/api:1@sha256:"+strings.Repeat("a", 64), "registry.example:5000/api@sha256:"+strings.Repeat("b", 64)
		nova.Status.Images["api"], nova.Status.Update = present, &common.Update{ID: "89ababcd", Images: map[string]string{"api": offered}}
		k.writeStatus(nova)
		if out, err := k.run("n\n", "update", "nova/nova"); err == nil || !strings.Contains(out, "api        "+present+"  "+offered+"\n") {
			t.Errorf("%v:\n%s", err, out)
		}
		nova.Status.Update = nil
		k.writeStatus(nova)
	})
	t.Run("has nothing to do without an update", func(t *testing.T) {
		k.says("", []string{"update", "nova/nova"}, "the operators bring no other images")
	})
}
