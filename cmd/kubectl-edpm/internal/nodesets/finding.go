package nodesets

import (
	"cmp"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Verdict says what became of a part of the input.
type Verdict string

// Verdicts.
const (
	TakenOver     Verdict = "taken over"
	Renamed       Verdict = "renamed"
	NotNeeded     Verdict = "not needed"
	NoCounterpart Verdict = "no counterpart"
)

// Finding is a line of the report.
type Finding struct {
	// Source is the file, Object the kind and name, Path the field.
	Source, Object, Path string
	Verdict              Verdict
	// Text says more, and what to do. It has no value of a variable.
	Text string
}

// String returns the line.
func (f Finding) String() string {
	line := fmt.Sprintf("%s: %s: %s: %s", f.Source, f.Object, f.Path, f.Verdict)
	if f.Text != "" {
		line += ": " + f.Text
	}
	return line
}

// Report writes one line for each finding, and how many there are of each verdict.
func Report(out io.Writer, findings []Finding) error {
	counts := map[Verdict]int{}
	for _, f := range findings {
		counts[f.Verdict]++
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d lines: %d taken over, %d renamed, %d not needed, %d with no counterpart\n",
		len(findings), counts[TakenOver], counts[Renamed], counts[NotNeeded], counts[NoCounterpart])
	return err
}

// reporter notes findings about one object of the input.
type reporter struct {
	source, object string
	findings       *[]Finding
}

func (r reporter) add(at *field.Path, verdict Verdict, format string, args ...any) {
	*r.findings = append(*r.findings, Finding{r.source, r.object, at.String(), verdict, fmt.Sprintf(format, args...)})
}

// admits reports whether admission has nothing against a value; what it says else is a finding.
func (r reporter) admits(at *field.Path, errs field.ErrorList) bool {
	if len(errs) == 0 {
		return true
	}
	// Not the value, which can be a secret.
	r.add(at, NoCounterpart, "%s", cmp.Or(errs[0].Detail, errs[0].Type.String()))
	return false
}
