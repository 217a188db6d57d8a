package migration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

// compute returns one of cell1 that nothing is to be done for.
func compute(name, address, hostKey string) *novav1.NovaExternalCompute {
	c := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: name}}
	c.Spec.CellName = "cell1"
	c.Status.ObservedGeneration = 1
	c.Status.LiveMigration = &novav1.LiveMigrationStatus{Address: address}
	c.Status.ColdMigration = &novav1.ColdMigrationStatus{HostKey: hostKey}
	return c
}

func joining(c *novav1.NovaExternalCompute) *novav1.NovaExternalCompute {
	c.Status.Conditions.Set(condition.FalseCondition(condition.DeploymentReadyCondition, condition.Reason(edpm.Running), condition.SeverityInfo, "in a run"))
	return c
}

// settle returns what a cell with the computes notes.
func settle(computes ...*novav1.NovaExternalCompute) string {
	cell, all := &novav1.NovaCell{}, make([]novav1.NovaExternalCompute, len(computes))
	for i, c := range computes {
		all[i] = *c
	}
	Settle(cell, all)
	return cell.Status.MigrationPeers
}

func TestCellsAgreeWithTheirComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	cells, now := &Cells{}, map[string]*novav1.NovaExternalCompute{}
	anchor := compute("anchor", "192.0.2.1", "key")
	cells.note(anchor)
	for range 2000 {
		name := fmt.Sprintf("n%d", random.IntN(12))
		if now[name] != nil && random.IntN(3) == 0 {
			cells.forget(now[name])
			delete(now, name)
		} else {
			now[name] = compute(name, []string{"", "192.0.2.2", "192.0.2.3"}[random.IntN(3)], []string{"", "key", "other"}[random.IntN(3)])
			if random.IntN(20) == 0 {
				now[name] = joining(now[name])
			}
			cells.note(now[name])
		}
		computes := []*novav1.NovaExternalCompute{anchor}
		for _, c := range now {
			computes = append(computes, c)
		}
		want, othersJoin := settle(computes...), slices.ContainsFunc(computes, isJoining)
		settled, join := cells.peersOf(anchor).settled(anchor, want)
		if join != othersJoin || !othersJoin && !settled {
			t.Fatalf("others join: %t, settled: %t; want %t, and settled if no other joins", join, settled, othersJoin)
		}
	}
}

func TestACellSettlesOnTheComputeThatLooks(t *testing.T) {
	cells, a, b := &Cells{}, compute("a", "192.0.2.1", "key"), compute("b", "192.0.2.2", "key")
	cells.note(a)
	cells.note(b)
	former := settle(a, b)
	if isSettled, _ := cells.peersOf(a).settled(a, former); !isSettled {
		t.Error("the cell should have settled on its computes")
	}
	if isSettled, _ := cells.peersOf(a).settled(compute("a", "192.0.2.9", "key"), former); isSettled {
		t.Error("a compute whose address has changed should wait until the cell has it")
	}
	if isSettled, _ := (&Cells{}).peersOf(a).settled(a, former); isSettled {
		t.Error("a compute that no event has told of yet should wait")
	}
}

func TestComputesAreWokenWhenTheCellHasWhatTheyWaitFor(t *testing.T) {
	cells, a, b := &Cells{}, compute("a", "192.0.2.1", "key"), compute("b", "192.0.2.2", "key")
	cells.note(a)
	if isSettled, _ := cells.peersOf(a).settled(a, settle(a, b)); isSettled {
		t.Fatal("the event of the second compute is still to come")
	}
	if woken := cells.note(joining(b.DeepCopy())); woken != nil {
		t.Errorf("%v are woken while one joins; want none", woken)
	}
	if woken := cells.note(b); !slices.Equal(woken, []string{"a"}) {
		t.Errorf("%v are woken; want the one that waits", woken)
	}
	if woken := cells.forget(b); woken != nil {
		t.Errorf("%v are woken again; want none", woken)
	}
}

func TestEachComputeIsWokenForTheStateOfTheCellThatItRead(t *testing.T) {
	cells, a, b := &Cells{}, compute("a", "192.0.2.1", "key"), compute("b", "192.0.2.2", "key")
	of := cells.peersOf(a) // of a reconciliation that began before any event
	if isSettled, _ := of.settled(a, settle(a, b)); isSettled {
		t.Fatal("the events of both computes are still to come")
	}
	cells.note(a)
	cells.note(b)
	if isSettled, _ := of.settled(a, settle(a)); isSettled {
		t.Fatal("the cell has no second compute yet")
	}
	if isSettled, _ := of.settled(b, settle(a, b)); !isSettled {
		t.Fatal("the cell has both computes")
	}
	if woken := cells.forget(b); !slices.Equal(woken, []string{"a"}) {
		t.Errorf("%v are woken; want the one that waits for the state without the other", woken)
	}
}

func TestAComputeIsWokenWhenOneWasConfiguredThatItDidNotReach(t *testing.T) {
	cells, a, b := &Cells{}, compute("a", "192.0.2.1", "key"), compute("b", "192.0.2.2", "key")
	a.Status.LiveMigration.UnreachablePeers = []string{"b (connection refused)"}
	cells.note(a)
	if woken := cells.note(b); woken != nil {
		t.Errorf("%v are woken by a compute that is new; want none", woken)
	}
	end := metav1.NewTime(time.Unix(100, 0))
	b.Status.Runs = map[string]common.RunRecord{libvirtStep: {End: &end}}
	if woken := cells.note(b); !slices.Equal(woken, []string{"a"}) {
		t.Errorf("%v are woken; want a", woken)
	}
	if woken := cells.note(b); woken != nil {
		t.Errorf("%v are woken by an event that changes nothing; want none", woken)
	}
}

func TestACellWithoutComputesIsForgotten(t *testing.T) {
	cells, a := &Cells{}, compute("a", "192.0.2.1", "key")
	cells.note(a)
	cells.forget(a)
	if len(cells.of) > 0 {
		t.Errorf("%d cells are kept; want none", len(cells.of))
	}
}

func TestHostsOfARunAreToldTheSame(t *testing.T) {
	cells, a := &Cells{}, compute("a", "192.0.2.1", "key")
	cells.note(a)
	of := cells.peersOf(a)
	early := map[string]any{"running": running{of}, "peers": addressesByName{of}}
	b := compute("b", "192.0.2.2", "")
	b.Status.Hash = map[string]string{certificateStep.Name: "1", libvirtStep: "2"}
	cells.note(b)
	cells.note(compute("c", "", "key"))
	text, err := json.Marshal(early)
	if want := `{"peers":{"a":"192.0.2.1","b":"192.0.2.2"},"running":["b"]}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
	if early["running"] != any(running{cells.peersOf(b)}) {
		t.Error("the variables of two computes of a cell should be equal, so that they are written once")
	}
	if addressed, copying := of.count(); addressed != 2 || copying != 1 {
		t.Errorf("%d computes have an address, and disks are copied to %d; want 2 and 1", addressed, copying)
	}
}
