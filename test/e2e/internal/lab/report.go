package lab

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
)

// Report is what a person would look at first when a story has failed. What cannot be
// read says why.
type Report struct {
	lab *Lab
	out strings.Builder
}

// ReportFailure attaches to the current story, if it failed, what dump writes.
func (l *Lab) ReportFailure(ctx context.Context, dump func(context.Context, *Report)) {
	if !ginkgo.CurrentSpecReport().Failed() {
		return
	}
	r := &Report{lab: l}
	dump(ctx, r)
	ginkgo.AddReportEntry("state", r.out.String(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
}

// Note adds a text, and why there is no more of it.
func (r *Report) Note(title, text string, err error) {
	fmt.Fprintf(&r.out, "--- %s\n%s\n", title, text)
	if err != nil {
		fmt.Fprintln(&r.out, err)
	}
}

// Kubectl adds what kubectl prints.
func (r *Report) Kubectl(ctx context.Context, args ...string) {
	text, err := r.lab.Kubectl(ctx, args...)
	r.Note("kubectl "+strings.Join(args, " "), text, err)
}

// OpenStack adds what the program openstack prints.
func (r *Report) OpenStack(ctx context.Context, args ...string) {
	text, err := r.lab.OpenStack(ctx, args...)
	r.Note("openstack "+strings.Join(args, " "), text, err)
}

// Console adds what a shell script prints on a host.
func (r *Report) Console(ctx context.Context, host Host, script string) {
	text, err := host.Console(ctx, script)
	r.Note(host.Name, text, err)
}
