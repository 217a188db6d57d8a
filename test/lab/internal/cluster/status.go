package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"text/tabwriter"
)

// Status writes what runs, and returns an error if a component that was started
// does not run any more, or nothing was.
func (l *Lab) Status(ctx context.Context, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	defer table.Flush()
	var known, dead int
	for _, name := range l.processNames() {
		if !l.procs.Known(name) {
			continue
		}
		known++
		pid, alive := l.procs.Alive(name)
		state := "running"
		if !alive {
			dead++
			state = "dead, see " + l.procs.LogPath(name)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\n", name, pid, state)
	}
	l.hostStatus(ctx, table)
	if known == 0 {
		return errNotRunning
	}
	l.nodeStatus(ctx, table)
	if dead > 0 {
		return fmt.Errorf("dead components: %d; up fixes them", dead)
	}
	return nil
}

func (l *Lab) nodeStatus(ctx context.Context, out io.Writer) {
	api, err := l.api()
	if err != nil {
		return
	}
	var list struct {
		Items []node `json:"items"`
	}
	if err := api.do(ctx, http.MethodGet, "/api/v1/nodes", nil, &list); err != nil {
		fmt.Fprintf(out, "nodes\t\t%v\n", err)
		return
	}
	var ready int
	for _, n := range list.Items {
		if n.ready() {
			ready++
		}
	}
	fmt.Fprintf(out, "nodes\t\t%d of %d Ready\n", ready, len(list.Items))
}

func (l *Lab) hostStatus(ctx context.Context, out io.Writer) {
	if _, err := exec.LookPath("podman"); err != nil {
		return
	}
	hosts, err := command(ctx, "podman", "ps", "--all", "--filter", "label="+hostLabel+"="+l.Dir,
		"--format", "{{.Names}}\t\t{{.Status}}")
	if err == nil && hosts != "" {
		fmt.Fprintln(out, strings.TrimSpace(hosts))
	}
}
