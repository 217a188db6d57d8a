package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// driftCommand is one call of kubectl edpm drift.
type driftCommand struct {
	connection
	output string
}

// nodeDrift is what the last checks of a node and its services found.
type nodeDrift struct {
	Node  string         `json:"node"`
	Drift []common.Drift `json:"drift"`
}

func newDrift(flags *genericclioptions.ConfigFlags) *cobra.Command {
	d := &driftCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "drift [node|role]...", Short: "Show what differs on hosts from what was run on them",
		Long: "Show the tasks that would change a host, as the last check of each step found them, for\nnodes, the nodes of roles, or all nodes of the namespace. Roles have their hosts checked\n" +
			"with deployStrategy.driftCheck. Contents of files are not shown: they can be secret.\nNothing is written.",
		Example: "  kubectl edpm drift -n openstack\n  kubectl edpm drift edpm-compute-0 edpm-compute-1\n  kubectl edpm drift role/edpm-compute -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	addOutput(cmd, &d.output)
	return cmd
}

func (d *driftCommand) run(ctx context.Context, out io.Writer, args []string) error {
	if err := d.connect(); err != nil {
		return err
	}
	nodes, err := d.nodes(ctx, args)
	if err != nil {
		return err
	}
	services, err := d.services(ctx, nodes)
	if err != nil {
		return err
	}
	if len(nodes) == 0 && d.output == "text" {
		return d.sayNoNodes(out)
	}
	all := make([]nodeDrift, 0, len(nodes))
	for _, n := range nodes {
		found := slices.Clone(n.Status.Drift)
		for _, e := range n.Status.Services {
			if object, known := services[e.Kind+"/"+e.ObjectName]; known && isOf(object, n.Name) {
				found = append(found, driftOf(object)...)
			}
		}
		all = append(all, nodeDrift{n.Name, found})
	}
	return printAs(out, d.output, all, func(w io.Writer) error { return writeDrift(w, all, time.Now()) })
}

// nodes that the arguments name, all without any.
func (d *driftCommand) nodes(ctx context.Context, args []string) ([]dataplanev1.OpenStackDataPlaneNode, error) {
	list := &dataplanev1.OpenStackDataPlaneNodeList{}
	if err := d.list(ctx, d.client, list); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return list.Items, nil
	}
	var subjects []subject
	for _, arg := range args {
		s, err := d.find(ctx, arg)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return slices.DeleteFunc(list.Items, func(n dataplanev1.OpenStackDataPlaneNode) bool {
		return !slices.ContainsFunc(subjects, func(s subject) bool { return s.has(&n) })
	}), nil
}

// driftOf the object of a service; nothing if its status is not that of one.
func driftOf(obj *unstructured.Unstructured) []common.Drift {
	var status struct {
		Ledger common.Ledger `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &status); err != nil {
		return nil
	}
	return status.Ledger.Drift
}

// writeDrift prints the steps that differ or could not be checked, and how many nodes were checked.
func writeDrift(out io.Writer, all []nodeDrift, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	checked, differ := 0, 0
	for _, n := range all {
		differs := false
		for _, d := range n.Drift {
			differs = differs || d.Differs()
			for i, text := range driftLines(d) {
				if checked, step, name := age(d, now), d.Step, n.Node; i == 0 {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, step, checked, text)
				} else {
					fmt.Fprintf(table, "\t\t\t%s\n", text)
				}
			}
		}
		if len(n.Drift) > 0 {
			checked++
		}
		if differs {
			differ++
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d nodes checked, %d differ\n", checked, len(all), differ)
	if checked == 0 && len(all) > 0 {
		fmt.Fprintln(out, "No host has been checked: set spec.deployStrategy.driftCheck of its role to enable checks")
	}
	return nil
}

func age(d common.Drift, now time.Time) string {
	return now.Sub(d.Checked.Time).Truncate(time.Minute).String() + " ago"
}

// driftLines returns the lines on a step, none without differences and messages.
func driftLines(d common.Drift) []string {
	lines := d.Tasks(len(d.Differences))
	if d.Message != "" {
		lines = append(lines, "not checked: "+d.Message)
	}
	if d.Repaired && d.Differs() {
		lines = append(lines, "came back after it was repaired, and is not repaired again automatically")
	}
	return lines
}
