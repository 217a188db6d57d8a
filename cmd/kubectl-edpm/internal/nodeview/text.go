package nodeview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// none stands where a table has nothing to say.
const none = "-"

// Text writes the node for people; now is when they read it.
func (n Node) Text(out io.Writer, now time.Time) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "Node %s: %s\n", n.Name, n.summary())
	for _, fact := range []struct{ name, value string }{{"role", n.Role}, {"host", n.Host}, {"cell", n.Cell}} {
		fmt.Fprintf(b, "  %s %s\n", fact.name, orNone(fact.value))
	}
	b.WriteString("\n")
	t := table(b)
	fmt.Fprintln(t, "PHASE\tSTATUS\tREASON\tSINCE")
	for _, p := range n.Phases {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.Name, p.Status, orNone(p.Reason), age(p.Since, now))
	}
	t.Flush()
	fmt.Fprintf(b, "\nCurrent run: %s\nLast run:    %s\n", n.Current.text(now), n.Last.text(now))
	if n.NextRetry != nil {
		fmt.Fprintf(b, "Next retry:  %s\n", until(*n.NextRetry, now))
	}
	if n.Guests != nil {
		fmt.Fprintf(b, "Guests:      %s\n", n.Guests.text())
	}
	n.writeProblems(b)
	for i, w := range n.Warnings {
		if i == 0 {
			b.WriteString("\nWarnings:\n")
		}
		fmt.Fprintf(b, "  %s %s\n    %s\n", w.Object, w.Condition, strings.ReplaceAll(w.Message, "\n", "\n    "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// summary of the node in a few words.
func (n Node) summary() string {
	switch {
	case n.Deleting:
		return "being deleted"
	case n.Up:
		return "Ready, with all its services"
	case n.Ready:
		return "Ready, but not its services"
	}
	return "not Ready"
}

func (n Node) writeProblems(b *strings.Builder) {
	if len(n.Problems) == 0 {
		return
	}
	heading := "Why it is not ready"
	if n.Up {
		heading = "What is not as it should be"
	}
	fmt.Fprintf(b, "\n%s:\n", heading)
	for _, p := range n.Problems {
		fmt.Fprintf(b, "  %s %s\n    %s\n", p.Object, p.name(), p.Message)
	}
	if reason := n.Problems[0].Reason; reason != "" {
		fmt.Fprintf(b, "\nWhat helps: kubectl edpm explain %s\n", reason)
	}
}

// name of the problem: condition and reason.
func (p Problem) name() string {
	if p.Condition == "" {
		return ""
	}
	return p.Condition + " is not True: " + p.Reason
}

func (r *Run) text(now time.Time) string {
	if r == nil {
		return "none"
	}
	words := []string{r.Name}
	if r.Step != "" {
		words = append(words, "step "+r.Step)
	}
	if r.Attempt > 1 {
		words = append(words, fmt.Sprintf("attempt %d", r.Attempt))
	}
	if r.End != nil {
		words = append(words, r.Outcome+" "+age(r.End, now)+" ago")
	} else {
		words = append(words, r.Outcome+" for "+age(r.Start, now))
	}
	return strings.Join(words, ", ")
}

// Recap is a result as Ansible prints it.
func Recap(h ansibleeev1.HostStatus) string {
	return fmt.Sprintf("%s : ok=%d changed=%d unreachable=%d failed=%d skipped=%d", h.Name, h.OK, h.Changed, h.Unreachable, h.Failed, h.Skipped)
}

// Text writes the role for people; now is when they read it.
func (r Role) Text(out io.Writer, now time.Time) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "Role %s: %d of %d nodes Ready, %d with all services\n\n", orNone(r.Name), r.Ready, len(r.Nodes), r.Up)
	t := table(b)
	fmt.Fprintln(t, "NODE\tREADY\tSERVICES\tGUESTS\tRUN\tNEXT RETRY\tSTATUS")
	for _, n := range r.Nodes {
		fmt.Fprintln(t, strings.Join([]string{n.Name, string(status(n.Ready)), n.services(), n.Guests.brief(), n.run(), n.retry(now), n.problem()}, "\t"))
	}
	t.Flush()
	_, err := io.WriteString(out, b.String())
	return err
}

// services of phase 1; those that are not ready say so.
func (n Node) services() string {
	var names []string
	for _, p := range n.Phases {
		name, isService := strings.CutPrefix(p.Name, service)
		if isService && p.Status != corev1.ConditionTrue {
			name += " (not ready)"
		}
		if isService {
			names = append(names, name)
		}
	}
	return orNone(strings.Join(names, ", "))
}

// run that is under way, else the last one if it did not succeed.
func (n Node) run() string {
	switch {
	case n.Current != nil:
		return n.Current.Name
	case n.Last != nil && n.Last.Outcome != Succeeded:
		return n.Last.Name
	}
	return none
}

func (n Node) retry(now time.Time) string {
	if n.NextRetry == nil {
		return none
	}
	return until(*n.NextRetry, now)
}

func (n Node) problem() string {
	if len(n.Problems) == 0 {
		return n.summary()
	}
	first, _, _ := strings.Cut(n.Problems[0].Message, "\n")
	return strings.TrimPrefix(n.Problems[0].Reason+": "+first, ": ")
}

func table(b *strings.Builder) *tabwriter.Writer { return tabwriter.NewWriter(b, 0, 0, 3, ' ', 0) }

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

// age of something that happened; "-" if it did not.
func age(at *time.Time, now time.Time) string {
	if at == nil {
		return none
	}
	return duration.HumanDuration(now.Sub(*at))
}

func until(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + duration.HumanDuration(at.Sub(now))
}
