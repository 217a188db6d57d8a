package edpm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

const step = "nova"

var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	slow    = Backoff{Base: time.Minute, Max: time.Hour}
	okHost  = ansibleeev1.HostStatus{Name: "h", OK: 5, Changed: 1}
	badHost = ansibleeev1.HostStatus{Name: "h", OK: 2, Failed: 1, Message: "task X: boom"}
	dead    = ansibleeev1.HostStatus{Name: "h", Unreachable: 1, NotConnected: true, Message: "no route to host"}
	lost    = ansibleeev1.HostStatus{}
)

// host plays one host and its owner through a story: what is wanted, which runs
// were made, and what the ledger in the API has.
type host struct {
	t      *testing.T
	ledger *common.Ledger
	runs   []*run
	want   want
	made   int
}

func newHost(t *testing.T) *host {
	return &host{t: t, ledger: &common.Ledger{}, want: want{access: "key-1"}}
}

// look notes and judges, as a reconciliation does.
func (h *host) look() State {
	recordRuns(h.ledger, step, h.runs)
	s := judge(h.ledger, step, h.runs, h.want, slow)
	s.remember(h.ledger, step, h.want.tokens)
	return s
}

func (h *host) wants(hash string) *host { h.want.hash = hash; return h }

func (h *host) is(phase Phase, why string) State {
	h.t.Helper()
	s := h.look()
	if s.Phase != phase {
		h.t.Fatalf("the target is %s and should be %s: %s\nledger: %+v", s.Phase, phase, why, *h.ledger)
	}
	return s
}

// starts a run for what is wanted, which must be due.
func (h *host) starts() *run {
	h.t.Helper()
	s := h.look()
	if s.Phase != Pending && s.Phase != Failed {
		h.t.Fatalf("a run should be due, but the target is %s", s.Phase)
	}
	h.made++
	r := &run{name: fmt.Sprint("run-", h.made), limited: h.want.limited, target: ansibleeev1.Target{
		Host: "h", Hash: h.want.hash, Access: h.want.access, Rerun: h.want.rerun, Tokens: h.want.tokens, Attempt: 1,
		Serial: nextSerial(h.ledger, step, h.runs),
	}}
	if s.Phase == Failed {
		r.target.Attempt = s.Attempt + 1
	}
	h.runs = append(h.runs, r)
	return r
}

func (r *run) ends(result ansibleeev1.HostStatus) {
	r.finished, r.end, r.result, r.known = true, noon, result, result.Name != ""
}

// forget deletes all runs, as a user may at any time.
func (h *host) forget() *host {
	h.t.Helper()
	for _, r := range h.runs {
		if !isRecorded(h.ledger, step, r) {
			h.t.Fatalf("%s is not recorded, so its finalizer would keep it", r.name)
		}
	}
	h.runs = nil
	return h
}

func TestExactlyOnce(t *testing.T) {
	for name, story := range map[string]func(*host){
		"a success is recorded once and never asked for again": func(h *host) {
			h.wants("H1").is(Pending, "nothing ran yet")
			h.starts().ends(okHost)
			h.is(Converged, "the run succeeded")
			record := h.ledger.Runs[step]
			h.is(Converged, "looking again changes nothing")
			if diff := cmp.Diff(common.RunRecord{Name: "run-1", Serial: 1, End: &metav1.Time{Time: noon}}, record); diff != "" {
				h.t.Errorf("the record differs (-want +got):\n%s", diff)
			}
			h.forget().is(Converged, "the ledger remembers a run that is gone")
		},
		"a run in flight is waited for": func(h *host) {
			h.wants("H1").starts()
			s := h.is(Running, "the run has not finished")
			if s.Run != "run-1" {
				h.t.Errorf("Run is %q; want run-1", s.Run)
			}
		},
		"another hash runs once more": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.wants("H2").is(Pending, "H2 never ran")
			h.starts().ends(okHost)
			h.is(Converged, "H2 succeeded")
		},
		"a change that is taken back before its run needs none": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.wants("H2").is(Pending, "H2 never ran")
			h.wants("H1").is(Converged, "H2 never came near the host")
		},
		"a change that is taken back during its run is undone by one more": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			r := h.wants("H2").starts()
			h.wants("H1").is(Running, "H2 is being put on the host")
			r.ends(okHost)
			h.is(Pending, "the host has H2")
			h.starts().ends(okHost)
			h.is(Converged, "H1 is back")
			if h.made != 3 {
				h.t.Errorf("%d runs were made; want 3", h.made)
			}
		},
		"a change that failed half-way and is taken back is undone": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.wants("H2").starts().ends(badHost)
			h.wants("H1").is(Pending, "the host has a part of H2")
			h.starts().ends(okHost)
			h.is(Converged, "H1 is back")
		},
		"a change of which nothing is known and that is taken back is undone": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.wants("H2").starts().ends(lost)
			h.wants("H1").is(Pending, "the host may have a part of H2")
		},
		"a change that never reached the host and is taken back needs no run": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.wants("H2").starts().ends(dead)
			h.wants("H1").is(Converged, "the host never answered")
			h.forget().is(Converged, "and nothing of it is left")
		},
		"a change that failed half-way is undone though a later attempt never reached the host": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.wants("H2").starts().ends(badHost)
			h.starts().ends(dead)
			h.wants("H1").is(Pending, "the first attempt left a part of H2")
		},
		"a change that failed half-way is undone though its run was deleted": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.wants("H2").starts().ends(badHost)
			h.look()
			h.forget().wants("H1").is(Pending, "the host has a part of H2")
		},
		"deleting a failed run makes no later run take its number": func(h *host) {
			h.wants("H1").starts().ends(badHost)
			h.look()
			first := h.runs[0].target.Serial
			h.forget()
			if r := h.starts(); r.target.Serial <= first {
				h.t.Errorf("the serial is %d after %d: both runs would have one name", r.target.Serial, first)
			}
		},
		"back and forth ends with what was wanted last": func(h *host) {
			for i := range 20 {
				h.wants(fmt.Sprint("H", i%2)).starts().ends(okHost)
				h.is(Converged, "it just ran")
			}
		},
		"a success that no one wants any more is recorded all the same": func(h *host) {
			r := h.wants("H1").starts()
			h.wants("H2")
			r.ends(okHost)
			h.is(Pending, "H2 never ran")
			if h.ledger.Hash[step] != "H1" {
				h.t.Errorf("the ledger has %q; the host has H1", h.ledger.Hash[step])
			}
		},
	} {
		t.Run(name, func(t *testing.T) { story(newHost(t)) })
	}
}

func TestFailures(t *testing.T) {
	for name, story := range map[string]func(*host){
		"a host that fails in another way than before does not repeat itself": func(h *host) {
			h.wants("H1")
			for i, c := range []struct {
				result ansibleeev1.HostStatus
				want   bool
			}{{dead, false}, {dead, true}, {badHost, false}, {badHost, true}, {lost, true}, {dead, false}, {badHost, false}} {
				h.starts().ends(c.result)
				if s := h.is(Failed, "it failed"); s.Repeated != c.want {
					h.t.Errorf("Repeated of attempt %d is %v; want %v", i+1, s.Repeated, c.want)
				}
			}
			h.runs = h.runs[len(h.runs)-1:]
			if s := h.is(Failed, "the last run is left"); !s.Repeated {
				h.t.Error("an attempt before whose run is gone counts as the same")
			}
		},
		"attempts are counted and the old hash is kept": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.wants("H2")
			for attempt := int32(1); attempt < 5; attempt++ {
				r := h.starts()
				r.ends(badHost)
				s := h.is(Failed, "the run failed on the host")
				want := State{
					Phase: Failed, Run: r.name, Message: "task X: boom", Attempt: attempt, Repeated: attempt > 1,
					Retry: noon.Add(slow.After(attempt, r.name)),
				}
				if diff := cmp.Diff(want, s, cmpopts.IgnoreUnexported(State{})); diff != "" {
					h.t.Errorf("the state differs (-want +got):\n%s", diff)
				}
			}
			if h.ledger.Hash[step] != "H1" {
				h.t.Errorf("the ledger has %q; failure keeps H1", h.ledger.Hash[step])
			}
		},
		"an unreachable host says so": func(h *host) {
			h.wants("H1").starts().ends(dead)
			if s := h.is(Failed, "it did not answer"); !s.Unreachable || s.Message != "no route to host" {
				h.t.Errorf("the state is %+v; want unreachable with the message", s)
			}
		},
		"a host without a result says so": func(h *host) {
			h.wants("H1").starts().ends(lost)
			if s := h.is(Failed, "its outcome is unknown"); !strings.Contains(s.Message, "without a result") {
				h.t.Errorf("the message is %q", s.Message)
			}
		},
		"a host on which no task ran has not converged": func(h *host) {
			h.wants("H1").starts().ends(ansibleeev1.HostStatus{Name: "h", Skipped: 4})
			h.is(Failed, "no task ran")
		},
		"a host that went away half-way has not converged": func(h *host) {
			h.wants("H1").starts().ends(ansibleeev1.HostStatus{Name: "h", OK: 4, Unreachable: 1})
			h.is(Failed, "it went away")
		},
		"a change of inputs starts counting again and at once": func(h *host) {
			h.wants("H1").starts().ends(badHost)
			h.starts().ends(badHost)
			h.wants("H2").is(Pending, "H2 never ran")
			if r := h.starts(); r.target.Attempt != 1 {
				h.t.Errorf("the attempt is %d; want 1", r.target.Attempt)
			}
		},
		"a change of access alone is tried at once and counted": func(h *host) {
			h.wants("H1").starts().ends(dead)
			h.starts().ends(dead)
			h.want.access = "key-2"
			s := h.is(Failed, "it failed with the old key")
			if !s.Retry.Equal(noon) || s.Attempt != 2 || !s.fixed {
				h.t.Errorf("the state is %+v; want attempt 2 and a retry at %v", s, noon)
			}
			h.starts().ends(dead)
			if s := h.is(Failed, "it failed with the new key too"); !s.Retry.After(noon) || s.Attempt != 3 {
				h.t.Errorf("the state is %+v; want attempt 3 and a retry after %v", s, noon)
			}
		},
		"a change of access alone runs nothing on a converged host": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.want.access = "key-2"
			h.is(Converged, "how the host is reached does not change what is on it")
		},
	} {
		t.Run(name, func(t *testing.T) { story(newHost(t)) })
	}
}

func TestRerun(t *testing.T) {
	for name, story := range map[string]func(*host){
		"a token runs once": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.want.rerun = "A"
			h.is(Pending, "the token is new")
			h.starts().ends(okHost)
			h.is(Converged, "the token was honoured")
			h.forget().is(Converged, "which the ledger remembers")
		},
		"a token that was there from the start runs no second time": func(h *host) {
			h.want.rerun = "A"
			h.wants("H1").starts().ends(okHost)
			h.is(Converged, "the first run honoured it")
		},
		"another token runs once more": func(h *host) {
			h.want.rerun = "A"
			h.wants("H1").starts().ends(okHost)
			h.want.rerun = "B"
			h.starts().ends(okHost)
			h.is(Converged, "B was honoured")
		},
		"removing the token runs nothing": func(h *host) {
			h.want.rerun = "A"
			h.wants("H1").starts().ends(okHost)
			h.want.rerun = ""
			h.is(Converged, "no token asks for nothing")
			h.want.rerun = "A"
			h.is(Converged, "A was honoured before")
		},
		"a token is tried until it succeeds": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.want.rerun = "A"
			h.starts().ends(badHost)
			h.is(Failed, "the token was not honoured")
			h.starts().ends(okHost)
			h.is(Converged, "now it was")
		},
		"a token makes a failed host be tried at once": func(h *host) {
			h.wants("H1").starts().ends(badHost)
			h.want.rerun = "A"
			h.is(Pending, "the failed run was for no token")
		},
		"removing the token of a failed run keeps its attempts and its time": func(h *host) {
			h.want.rerun = "A"
			h.wants("H1").starts().ends(badHost)
			h.starts().ends(badHost)
			h.want.rerun = ""
			if s := h.is(Failed, "the host still fails"); s.Attempt != 2 || !s.Retry.After(noon) {
				h.t.Errorf("the state is %+v; want attempt 2 and a retry after %v", s, noon)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { story(newHost(t)) })
	}
}

func TestRunsLimitedByTags(t *testing.T) {
	for name, story := range map[string]func(*host){
		"a limited run never marks the host as converged": func(h *host) {
			h.want.limited = "tags=a"
			h.wants("H1").starts().ends(okHost)
			s := h.is(Limited, "only some tasks ran")
			if s.Run != "run-1" || h.ledger.Hash[step] != "" {
				h.t.Errorf("the state is %+v and the ledger %+v; want run-1 and no hash", s, *h.ledger)
			}
			h.forget().is(Limited, "it ran, also when the run is gone")
			h.want.limited = ""
			h.is(Pending, "the rest is to be done")
		},
		"other tags run once more": func(h *host) {
			h.want.limited = "tags=a"
			h.wants("H1").starts().ends(okHost)
			h.want.limited = "tags=b"
			h.is(Pending, "b never ran")
		},
		"tags do nothing to a converged host": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.want.limited = "tags=a"
			h.is(Converged, "all tasks ran with H1")
		},
		"a token runs the tags again on a converged host, and nothing after": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.want.limited, h.want.rerun = "tags=a", "A"
			h.starts().ends(okHost)
			h.is(Limited, "the token was honoured for the tags")
			h.want.limited, h.want.rerun = "", ""
			h.is(Converged, "a part of H1 on top of H1 is H1")
		},
		"a limited run of another hash spoils the old one": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.want.limited = "tags=a"
			h.wants("H2").starts().ends(okHost)
			h.is(Limited, "a of H2 ran")
			h.want.limited = ""
			h.wants("H1").is(Pending, "the host has a of H2")
			h.look()
			h.forget().is(Pending, "also when that run is gone")
		},
		"limited runs of both hashes do not make the old one true again": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.want.limited = "tags=a"
			h.wants("H2").starts().ends(okHost)
			h.want.limited = "tags=b"
			h.wants("H1").starts().ends(okHost)
			h.want.limited = ""
			h.is(Pending, "the host still has a of H2")
		},
		"a limited run that failed spoils the hash": func(h *host) {
			h.wants("H1").starts().ends(okHost)
			h.want.limited, h.want.rerun = "tags=a", "A"
			h.starts().ends(badHost)
			h.want.limited, h.want.rerun = "", ""
			h.is(Pending, "no one knows what the tasks left")
		},
		"a limited run is undone by the full run of another hash": func(h *host) {
			h.want.limited = "tags=a"
			h.wants("H2").starts().ends(okHost)
			h.want.limited = ""
			h.wants("H1").starts().ends(okHost)
			h.want.limited = "tags=a"
			h.wants("H2").is(Pending, "H1 ran over it")
		},
		"a failed limited run is tried again": func(h *host) {
			h.want.limited = "tags=a"
			h.wants("H1").starts().ends(badHost)
			h.is(Failed, "it failed")
			h.starts().ends(okHost)
			h.is(Limited, "now it ran")
		},
	} {
		t.Run(name, func(t *testing.T) { story(newHost(t)) })
	}
}

// TestTheLedgerIsTrue plays random stories on a model of a real host, with
// managers that die before the ledger is written and runs that people delete.
func TestTheFirstKeyOfAHostIsKept(t *testing.T) {
	met := func(key string, r ansibleeev1.HostStatus) ansibleeev1.HostStatus { r.HostKey = key; return r }
	h := newHost(t).wants("1")
	h.starts().ends(met(hostKey, dead))
	h.look()
	h.forget()
	if h.ledger.HostKey != hostKey {
		t.Fatalf("the key of a host that was met, though not logged in to, is %q, want %q", h.ledger.HostKey, hostKey)
	}
	h.wants("2").starts().ends(met(otherHostKey, okHost))
	h.look()
	if h.ledger.HostKey != hostKey {
		t.Errorf("the key became %q; only a person can say that another is right", h.ledger.HostKey)
	}
}

func TestTheLedgerIsTrue(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		play(t, seed, rng)
		if t.Failed() {
			return
		}
	}
}

// truth is what is on the host, whoever knows of it.
type truth struct {
	hash   string // of the last full run, "dirty" when something came over it
	tokens map[string]bool
	log    []string
}

func play(t *testing.T, seed uint64, rng *rand.Rand) {
	h, real := newHost(t), &truth{tokens: map[string]bool{}}
	stored := common.Ledger{} // what is in the API
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	h.wants("H1")
	for range 30 {
		switch rng.IntN(6) {
		case 0:
			h.wants(pick("H1", "H2"))
		case 1:
			h.want.limited = pick("", "", "tags=a", "tags=b")
		case 2:
			h.want.rerun = pick("", "", "A", "B")
		case 3: // somebody deletes what may be deleted
			kept := []*run{}
			for _, r := range h.runs {
				if !r.finished || !isRecorded(&stored, step, r) {
					kept = append(kept, r)
				}
			}
			h.runs = kept
		}
		h.ledger = stored.DeepCopy()
		s := h.look()
		real.log = append(real.log, fmt.Sprintf("%s %+v", s.Phase, h.want))
		real.check(t, seed, h, s)
		if rng.IntN(3) > 0 {
			stored = *h.ledger.DeepCopy() // otherwise the manager died
		}
		if s.Phase == Pending || s.Phase == Failed {
			r := h.starts()
			result := []ansibleeev1.HostStatus{okHost, okHost, badHost, dead, lost}[rng.IntN(5)]
			r.ends(result)
			real.take(r)
		}
	}
}

// take does to the host what a run did.
func (real *truth) take(r *run) {
	real.log = append(real.log, fmt.Sprintf("  %s %+v limited=%q", r.name, r.result, r.limited))
	switch {
	case r.known && r.result.Untouched():
	case !r.converged():
		real.hash = "dirty"
	case r.limited == "":
		real.hash = r.target.Hash
		real.tokens = map[string]bool{r.target.Rerun: true, "": true}
	case real.hash != r.target.Hash:
		real.hash = "dirty"
	}
}

func (real *truth) check(t *testing.T, seed uint64, h *host, s State) {
	t.Helper()
	done := real.hash == h.want.hash && real.tokens[h.want.rerun]
	story := strings.Join(real.log, "\n")
	switch s.Phase {
	case Converged:
		if real.hash != h.want.hash {
			t.Errorf("seed %d: the engine says %s, but the host has %q:\n%s", seed, h.want.hash, real.hash, story)
		}
	case Pending, Failed:
		if done {
			t.Errorf("seed %d: the host has %s already, and it would run again:\n%s", seed, real.hash, story)
		}
	case Limited:
		if h.want.limited == "" {
			t.Errorf("seed %d: no tags are wanted:\n%s", seed, story)
		}
	}
}
