package nodeview

import (
	"fmt"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// Guests are what the operators know of the guests of a host.
type Guests struct {
	// Host is the name of the host in nova.
	Host string `json:"host"`
	// Count is how many there are. It is nil unless they are moved off the host, or its compute is
	// being deleted: the operators do not ask nova for it otherwise.
	Count *novav1.GuestsStatus `json:"count,omitempty"`
	// Moves are a drain and an evacuation of the host, and migrations from or to it that stand still:
	// the conditions of the compute that say how far they are.
	Moves []Phase `json:"moves,omitempty"`
}

// guests of a node, nil if nova knows no host of it.
func guests(s Source) *Guests {
	for _, service := range s.Services {
		if service.ComputeService == nil {
			continue
		}
		g := &Guests{Host: service.ComputeService.Host, Count: service.Guests}
		for _, t := range []condition.Type{novav1.DrainedCondition, novav1.EvacuatedCondition, novav1.MigrationsProgressingCondition} {
			if c := service.Conditions.Get(t); c != nil {
				move := phase(string(t), c)
				move.Reason = string(c.Reason)
				g.Moves = append(g.Moves, move)
			}
		}
		return g
	}
	return nil
}

// text of the guests of one node.
func (g *Guests) text() string {
	text := "not counted: openstack server list --all-projects --host " + g.Host
	if g.Count != nil {
		text = g.numbers()
	}
	for _, move := range g.Moves {
		text += fmt.Sprintf("; %s is %s: %s", move.Name, move.Status, move.Reason)
	}
	return text
}

// numbers of the guests: those of states in which there are some.
func (g *Guests) numbers() string {
	var parts []string
	for _, part := range []struct {
		n    int32
		text string
	}{
		{g.Count.Moving, "being moved"}, {g.Count.Waiting, "waiting"}, {g.Count.Remaining, "that cannot be moved"}, {g.Count.ShutOff, "shut off"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("%d on host %s: %s", g.Count.Total, g.Host, strings.Join(parts, ", ")), ": ")
}

// brief is the text in a table of nodes.
func (g *Guests) brief() string {
	if g == nil {
		return none
	}
	text := none
	if g.Count != nil {
		text = fmt.Sprint(g.Count.Total)
	}
	for _, move := range g.Moves {
		text += " (" + move.Reason + ")"
	}
	return text
}
