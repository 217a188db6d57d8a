package edpm

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// asks sets the tokens of the sources, of which the nearest is in force.
func (h *host) asks(tokens map[string]string) *host {
	h.want.rerun, h.want.tokens = "", tokens
	for _, source := range []string{"role", "node", "service"} {
		if token, ok := tokens[source]; ok {
			h.want.rerun = token
		}
	}
	return h
}

type tokens = map[string]string

func TestRemovingATokenRunsNothing(t *testing.T) {
	for name, story := range map[string]func(*host){
		"that of the node, after that of the role and its own were honoured": func(h *host) {
			h.asks(tokens{"role": "r1"}).starts().ends(okHost)
			h.asks(tokens{"role": "r1", "node": "n1"}).starts().ends(okHost)
			h.asks(tokens{"role": "r1"}).is(Converged, "both tokens were honoured")
			h.forget().is(Converged, "which the ledger remembers")
		},
		"that of the service": func(h *host) {
			h.asks(tokens{"role": "r1", "node": "n1"}).starts().ends(okHost)
			h.asks(tokens{"role": "r1", "node": "n1", "service": "s1"}).starts().ends(okHost)
			h.asks(tokens{"role": "r1", "node": "n1"}).is(Converged, "s1 was the last")
			h.asks(tokens{"role": "r1"}).is(Converged, "n1 was honoured before")
		},
		"that of the node, while that of the role has changed unheeded": func(h *host) {
			h.asks(tokens{"role": "r1", "node": "n1"}).starts().ends(okHost)
			h.asks(tokens{"role": "r2", "node": "n1"}).is(Converged, "that of the node is in force")
			h.asks(tokens{"role": "r2"}).is(Converged, "r2 was overridden")
		},
		"before it was honoured": func(h *host) {
			h.asks(tokens{"role": "r1"}).starts().ends(okHost)
			h.asks(tokens{"role": "r1", "node": "n1"}).is(Pending, "n1 is new")
			h.asks(tokens{"role": "r1"}).is(Converged, "r1 was honoured")
		},
		"after runs for it failed without reaching the host": func(h *host) {
			h.asks(tokens{"role": "r1"}).starts().ends(okHost)
			h.asks(tokens{"role": "r1", "node": "n1"}).starts().ends(dead)
			h.asks(tokens{"role": "r1"}).is(Converged, "nothing has touched the host")
		},
		"of a run that was restricted by tags": func(h *host) {
			h.asks(tokens{"role": "r1"}).starts().ends(okHost)
			h.want.limited = "tags=a"
			h.asks(tokens{"role": "r1", "node": "n1"}).starts().ends(okHost)
			h.asks(tokens{"role": "r1"}).is(Converged, "r1 was honoured by the whole step")
		},
	} {
		t.Run(name, func(t *testing.T) { story(newHost(t).wants("H1")) })
	}
}

func TestEachNewTokenRuns(t *testing.T) {
	h := newHost(t).wants("H1")
	for _, now := range []tokens{{"role": "A"}, {"role": "B"}, {"role": "A"}, {"role": "A", "node": "n"}, {"role": "A", "node": "m"}, {"role": "C"}} {
		h.asks(now).is(Pending, "it is new")
		h.starts().ends(okHost)
		h.is(Converged, "it was honoured")
	}
	if sources := slices.Sorted(maps.Keys(h.ledger.Runs[step].Tokens)); !slices.Equal(sources, []string{"node", "role"}) {
		t.Errorf("the ledger has tokens of %v", sources)
	}
}

// TestTokensOfALedgerOfBefore : it has one token, the one that was in force.
func TestTokensOfALedgerOfBefore(t *testing.T) {
	for name, c := range map[string]struct {
		recorded string
		now      tokens
		want     Phase
		writes   bool
	}{
		"no token":                 {"", nil, Converged, false},
		"a token that was removed": {"r1", nil, Converged, false},
		"the token of the role":    {"r1", tokens{"role": "r1"}, Converged, false},
		"the token of the node, over that of the role": {"n1", tokens{"role": "r1", "node": "n1"}, Converged, true},
		"a new token": {"r1", tokens{"role": "r2"}, Pending, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t).wants("H1").asks(c.now)
			h.ledger.Set(step, "H1", common.RunRecord{Name: "run", Serial: 1, Rerun: c.recorded})
			h.is(c.want, "the ledger is of a release of before")
			if wrote := h.ledger.Runs[step].Tokens != nil; wrote != c.writes {
				t.Errorf("whether the ledger changes is %v; want %v", wrote, c.writes)
			}
			if c.want == Converged && len(c.now) > 1 {
				delete(h.want.tokens, "node")
				h.asks(h.want.tokens).is(Converged, "removing the token of the node asks for nothing")
			}
		})
	}
}

func TestTokensAreKeptShort(t *testing.T) {
	long := strings.Repeat("x", maxToken+1)
	for name, c := range map[string]struct{ given, want tokens }{
		"no tokens are none":        {nil, nil},
		"an empty set is none":      {tokens{}, nil},
		"a short one as it is":      {tokens{"role": "r1"}, tokens{"role": "r1"}},
		"a long one by its digest":  {tokens{"node": long}, tokens{"node": digest(long)}},
		"each of several by itself": {tokens{"role": "r1", "node": long}, tokens{"role": "r1", "node": digest(long)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shortTokens(c.given); !reflect.DeepEqual(got, c.want) {
				t.Errorf("shortTokens(%v) = %v; want %v", c.given, got, c.want)
			}
		})
	}
}

func TestTagsReachEveryStep(t *testing.T) {
	y := newYard(t)
	ledger := &common.Ledger{}
	var targets []Target
	for _, name := range []string{"one", "two", "three"} {
		targets = append(targets, wantedOf("a", func(t *Target) { t.Step.Name, t.Strategy.Tags = name, "config" }))
	}
	if s := y.converge(ledger, targets...); s.Phase != Pending || s.Step != "one" {
		t.Fatalf("the state is %+v; want step one to be run", s)
	}
	y.plan(group1)
	if names := y.onlyRun().StepNames(); !slices.Equal(names, []string{"one", "two", "three"}) {
		t.Fatalf("the run has the steps %v; want all of them", names)
	}
	y.end(y.onlyRun(), ok("a"))
	s := y.converge(ledger, targets...)
	if s.Phase != Limited || s.Step != "one" || !slices.Equal(s.More, []string{"two", "three"}) {
		t.Fatalf("the state is %+v; want all three steps restricted by tags", s)
	}
	ran := s.Run
	if want := "Steps one, two, three ran, the first in " + ran + " restricted by tags; remove ansibleTags and ansibleSkipTags to run the rest"; s.Describe() != want {
		t.Errorf("it says %q; want %q", s.Describe(), want)
	}
	ledger.Set("one", targets[0].Hash(), common.RunRecord{Serial: 9})
	ledger.Set("two", targets[1].Hash(), common.RunRecord{Serial: 9})
	if s := y.converge(ledger, targets...); s.Phase != Limited || s.Step != "three" || len(s.More) > 0 {
		t.Errorf("the state is %+v; want the third step restricted by tags", s)
	}
}

func TestOwnersOfDifferentKindsDoNotShareAStep(t *testing.T) {
	y := newYard(t)
	node := wantedOf("a", func(t *Target) {
		t.Step.Name, t.OwnerKind, t.OwnerUID = "libvirt", "OpenStackDataPlaneNode", "uid-node"
	})
	compute := wantedOf("a", func(t *Target) { t.Step.Name = "libvirt" })
	nodes, computes := &common.Ledger{}, &common.Ledger{}
	y.converge(nodes, node)
	y.converge(computes, compute)
	y.plan(node.Group())
	if r := y.onlyRun(); r.Spec.OwnerKind != node.OwnerKind || r.Spec.Targets[0].OwnerUID != "uid-node" {
		t.Fatalf("the run is of %s %s; want that of the node", r.Spec.OwnerKind, r.Spec.Targets[0].OwnerUID)
	}
	if s := y.converge(computes, compute); s.Phase != Pending {
		t.Fatalf("the compute is %s; the run is not its own", s.Phase)
	}
	y.end(y.onlyRun(), ok("a"))
	if s := y.converge(nodes, node); s.Phase != Converged {
		t.Errorf("the node is %s; want Converged", s.Phase)
	}
	_ = y.Forget(ctx, node.OwnerKind, "ns", "a", "libvirt")
	y.plan(compute.Group())
	if n := len(y.runs()); n != 2 {
		t.Errorf("there are %d runs; what the node takes back does not concern the compute", n)
	}
}
