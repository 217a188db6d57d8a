package edpm

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// ended is a run for a hash that ended so many seconds after noon.
func ended(name string, serial int64, hash string, second int, result ansibleeev1.HostStatus) *run {
	r := &run{name: name, target: ansibleeev1.Target{Host: "h", Hash: hash, Serial: serial, Attempt: 1}}
	r.ends(result)
	r.end = noon.Add(time.Duration(second) * time.Second)
	return r
}

// TestRunsOfOverlappingLeaders : both leaders gave a run the number 1, as neither
// knew of the other's.
func TestRunsOfOverlappingLeaders(t *testing.T) {
	for name, c := range map[string]struct {
		runs []*run
		want Phase
	}{
		"one succeeded and the other failed on top": {
			[]*run{ended("x", 1, "H", 10, okHost), ended("y", 1, "H", 20, badHost)}, Failed,
		},
		"one succeeded and the outcome of the other, which came later, is unknown": {
			[]*run{ended("x", 1, "H", 10, okHost), ended("y", 1, "H", 20, lost)}, Failed,
		},
		"one succeeded and the other put something else on top": {
			[]*run{ended("x", 1, "H", 10, okHost), ended("y", 1, "old", 20, okHost)}, Pending,
		},
		"one failed and the other succeeded on top": {
			[]*run{ended("x", 1, "H", 20, okHost), ended("y", 1, "H", 10, badHost)}, Converged,
		},
		"both succeeded": {
			[]*run{ended("x", 1, "H", 10, okHost), ended("y", 1, "H", 20, okHost)}, Converged,
		},
		"one that was numbered long ago failed after all others": {
			[]*run{ended("x", 1, "H", 10, okHost), ended("z", 2, "H", 20, okHost), ended("y", 1, "H", 30, badHost)}, Pending,
		},
		"one that was numbered long ago failed between the others": {
			[]*run{ended("x", 1, "H", 10, okHost), ended("z", 2, "H", 30, okHost), ended("y", 1, "H", 20, badHost)}, Converged,
		},
		"one failed in the second in which the other succeeded": {
			[]*run{ended("x", 1, "H", 10, okHost), ended("y", 1, "H", 10, badHost)}, Failed,
		},
		"a clock that went back does not change the order of those that knew of each other": {
			[]*run{ended("x", 1, "old", 20, okHost), ended("z", 2, "H", 10, okHost)}, Converged,
		},
	} {
		for seen := range c.runs { // when the ledger is written for the first time
			t.Run(fmt.Sprintf("%s, looked at from run %d on", name, seen), func(t *testing.T) {
				h := newHost(t).wants("H")
				h.want.access = ""
				inOrder(c.runs)
				h.runs = c.runs[:seen]
				h.look()
				h.runs = c.runs
				if s := h.look(); s.Phase != c.want && (c.want != Pending || s.Phase != Failed) {
					t.Fatalf("the target is %s; want %s\nledger: %+v", s.Phase, c.want, *h.ledger)
				}
				before := h.ledger.DeepCopy()
				if h.look(); fmt.Sprint(*before) != fmt.Sprint(*h.ledger) {
					t.Errorf("looking again changed the ledger from %+v to %+v", *before, *h.ledger)
				}
				for _, r := range c.runs {
					if !isRecorded(h.ledger, step, r) {
						t.Errorf("%s is not recorded, so its finalizer would keep it", r.name)
					}
				}
			})
		}
	}
}

// TestALedgerWithoutEndsIsReadAsBefore : it was written by a release of before.
func TestALedgerWithoutEndsIsReadAsBefore(t *testing.T) {
	h := newHost(t).wants("H")
	h.ledger.Set(step, "H", common.RunRecord{Name: "x", Serial: 3})
	h.runs = []*run{ended("w", 2, "H", 5, badHost), ended("x", 3, "H", 10, okHost)}
	h.is(Converged, "x is what the ledger has")
	if r := h.ledger.Runs[step]; r.Serial != 3 || r.End != nil {
		t.Errorf("the record became %+v: every object would be written after an upgrade", r)
	}
}

// TestARunThatIsCreatedLateIsNoticed : the request of an old leader arrives after
// the runs of the new one have ended and its twin has been pruned.
func TestARunThatIsCreatedLateIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		hash    string
		created int
		result  ansibleeev1.HostStatus
		want    Phase
	}{
		"it put something else on the host":                    {"old", 15, okHost, Pending},
		"it failed":                                            {"H", 15, badHost, Pending},
		"it succeeded with what is wanted":                     {"H", 15, okHost, Converged},
		"it was there all the time, and a clock has gone back": {"old", 5, okHost, Converged},
	} {
		for _, named := range []string{"x", "z"} { // also with the name of the run that the ledger has
			h := newHost(t).wants("H")
			h.ledger.Set(step, "H", common.RunRecord{Name: "z", Serial: 2, End: &metav1.Time{Time: noon.Add(10 * time.Second)}})
			r := ended(named, 1, c.hash, 20, c.result)
			r.object = &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(c.created) * time.Second))}}
			h.runs = []*run{r}
			if s := h.look(); s.Phase != c.want && (c.want != Pending || s.Phase != Failed) {
				t.Errorf("%s: the target is %s; want %s\nledger: %+v", name, s.Phase, c.want, *h.ledger)
			}
		}
	}
}
