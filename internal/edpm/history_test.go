package edpm

import (
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// inRole is a run of a role of its own, so that the history of no group ends.
func inRole(r *ansibleeev1.OpenStackAnsibleEE, role string) *ansibleeev1.OpenStackAnsibleEE {
	r.Spec.Role = role
	return r
}

func TestTheHistoryIsBoundedByTheCluster(t *testing.T) {
	var objects []client.Object
	for i := range int64(30) {
		host := fmt.Sprintf("h%02d", i)
		result, ledger := ok(host), recordedUpTo(i+1)
		switch i {
		case 0:
			ledger = common.Ledger{} // not recorded
		case 1:
			result = failed(host) // the last run of a host that failed
		}
		objects = append(objects, compute(host, wantedOf(host, nil).OwnerUID, ledger), inRole(aRun(host, i+1, result), "role-"+host))
	}
	objects = append(objects, ofAnotherKind(aRun("other", 1, ok("other"))), unfinished(inRole(aRun("busy", 1, ok("busy")), "role-busy")))
	y := newYard(t, objects...)
	y.HistoryTotal = 12
	y.plan(everyGroup)
	for _, r := range y.all() {
		if !r.DeletionTimestamp.IsZero() {
			y.plan(groupOf(&r))
		}
	}
	got := y.left()
	want := []string{"run-busy-1", "run-other-1", "run-h00-1", "run-h01-2"}
	for i := 20; i < 30; i++ {
		want = append(want, fmt.Sprintf("run-h%02d-%d", i, i+1))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v are left; want %v: twelve of ours, the oldest only if they are needed", got, want)
	}
	y.plan(everyGroup)
	if again := y.left(); !slices.Equal(again, got) {
		t.Errorf("with no more than that, %v are left", again)
	}
}
