package drain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// mostListed are the guests that a message names.
const mostListed = 5

// Outcome is how far a drain is.
type Outcome struct {
	// Problem is why the host is not drained, as its condition; nil if it is.
	Problem *phase.Halt
	// Text of the condition.
	Text string
	// Guests are the numbers in it, and how many are on the host.
	Guests novav1.GuestsStatus
	// Lively reports whether it is soon different: guests are moved, or wait for that.
	Lively bool
}

// Summarize returns how far the drain of a host is.
func Summarize(h Host, verdicts []Verdict) Outcome {
	n := map[State]int{}
	for _, v := range verdicts {
		n[v.State]++
	}
	o := Outcome{Text: text(h, verdicts, n), Guests: count(h, n), Lively: n[Moving]+n[Waiting] > 0}
	t, inProgress := Condition(h.Mode), novav1.DrainingReason
	if h.Mode == Evacuation {
		inProgress = novav1.EvacuatingReason
	}
	switch {
	case n[Blocked] > 0:
		o.Problem = phase.Stalled(t, novav1.GuestsRemainReason, "%s", o.Text)
	case n[Failed] > 0:
		o.Problem = phase.Failing(t, novav1.GuestsRemainReason, "%s", o.Text)
	case o.Lively:
		o.Problem = phase.Waiting(t, inProgress, "%s", o.Text)
	}
	return o
}

// count returns how many guests are on a host, and how many of the verdicts are of each state.
func count(h Host, n map[State]int) novav1.GuestsStatus {
	return novav1.GuestsStatus{
		Total: int32(len(h.Guests)), Moving: int32(n[Moving]), Waiting: int32(n[Waiting]), Remaining: int32(n[Blocked] + n[Failed]), ShutOff: int32(n[Settled]),
	}
}

// Condition that shows how far a host is.
func Condition(mode string) condition.Type {
	if mode == Evacuation {
		return novav1.EvacuatedCondition
	}
	return novav1.DrainedCondition
}

// Reason of the condition of a host that is drained.
func Reason(mode string) condition.Reason {
	switch mode {
	case validate.DrainStop:
		return novav1.GuestsStoppedReason
	case Evacuation:
		return novav1.HostEvacuatedReason
	}
	return novav1.HostEmptyReason
}

func text(h Host, verdicts []Verdict, n map[State]int) string {
	switch {
	case len(verdicts) == 0 && h.Mode == Evacuation:
		return fmt.Sprintf("nova has no instances on host %s: %d guests were evacuated", h.Name, h.evacuated())
	case len(verdicts) == 0:
		return fmt.Sprintf("nova has no instances on host %s, and no migrations from or to it that have not ended", h.Name)
	case n[Settled] == len(verdicts):
		return fmt.Sprintf("All %d guests of host %s are shut off, and stay there: start them with openstack server start after the drain", n[Settled], h.Name)
	}
	var parts []string
	for _, part := range []struct {
		state State
		text  string
	}{{Moving, "being moved"}, {Waiting, "waiting"}, {Settled, "shut off"}} {
		if n[part.state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[part.state], part.text))
		}
	}
	if remaining := n[Blocked] + n[Failed]; remaining > 0 {
		parts = append(parts, fmt.Sprintf("%d that cannot be moved: %s", remaining, list(verdicts)))
	}
	return fmt.Sprintf("Host %s has guests: %s%s", h.Name, strings.Join(parts, ", "), h.obstacles(verdicts))
}

// obstacles are those of the host that keep guests.
func (h Host) obstacles(verdicts []Verdict) string {
	text := ""
	for _, call := range []Call{LiveMigrate, Migrate} {
		if slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Text == immobile[call] }) {
			text += ". " + h.Obstacles[call]
		}
	}
	return text
}

// list names guests that cannot be moved.
func list(verdicts []Verdict) string {
	var lines []string
	left := 0
	for _, v := range verdicts {
		switch {
		case v.State != Blocked && v.State != Failed:
		case len(lines) == mostListed:
			left++
		default:
			lines = append(lines, strings.TrimSpace(v.Guest.Name+" "+v.Guest.ID)+" "+v.describe())
		}
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(lines, "; ")
}

func (v Verdict) describe() string {
	switch {
	case v.State == Blocked:
		return v.Text
	case v.Call != "" || v.Retry.IsZero():
		return v.Text + " (is tried again)"
	}
	return v.Text + " (is tried again after " + stamp(v.Retry) + ")"
}
