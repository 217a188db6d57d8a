package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/preflight"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// takeOverCommand is one call of kubectl edpm take-over.
type takeOverCommand struct {
	checkCommand
	tool   string
	dryRun bool
}

func newTakeOver(flags *genericclioptions.ConfigFlags) *cobra.Command {
	t := &takeOverCommand{checkCommand: checkCommand{connection: connection{flags: flags}}}
	cmd := &cobra.Command{
		Use: "take-over <node>... --from <tool>", Short: "Take hosts over from another tool, with their guests", Args: cobra.MinimumNArgs(1),
		Long: "Have nova-compute and libvirt of another tool replaced on the hosts of nodes, while their\nguests continue to run. This sets annotation " +
			common.TakeOverAnnotation + ".\nWith --dry-run the first tasks of that are run in check mode: they print what would be\nstopped, or why the host cannot be taken over. " +
			"Nothing is changed then; the run and its\nSecret are deleted at the end. The exit code is 0 only if all hosts can be taken over.",
		Example: "  kubectl edpm take-over edpm-compute-0 --from kolla-ansible --dry-run",
		RunE:    func(cmd *cobra.Command, args []string) error { return t.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	cmd.Flags().StringVar(&t.tool, "from", "", "tool that deployed the hosts")
	cmd.Flags().BoolVar(&t.dryRun, "dry-run", false, "only print what would be done")
	if err := cmd.MarkFlagRequired("from"); err != nil {
		panic(err) // it has just been added
	}
	t.addFlags(cmd)
	return cmd
}

func (t *takeOverCommand) run(ctx context.Context, out io.Writer, args []string) error {
	if wrong := validate.TakeOver(map[string]string{common.TakeOverAnnotation: t.tool}); wrong != nil || t.tool == "" {
		return fmt.Errorf("--from %q: must be one of %v", t.tool, validate.Tools())
	}
	if err := t.connect(); err != nil {
		return err
	}
	hosts, err := t.hosts(ctx, args)
	if err != nil {
		return err
	}
	if t.dryRun {
		for i := range hosts {
			hosts[i].Vars = map[string]any{inherit.TakeOverVar: t.tool}
		}
		return t.check(ctx, out, preflight.TakeOver, hosts)
	}
	for _, h := range hosts {
		if err := t.annotate(ctx, h.Node); err != nil {
			return err
		}
		fmt.Fprintf(out, "Node %s is taken over from %s. kubectl edpm status %s --watch follows it\n", h.Node.Name, t.tool, h.Node.Name)
	}
	return nil
}

// annotate says on a node which tool its host is taken over from.
func (t *takeOverCommand) annotate(ctx context.Context, n *dataplanev1.OpenStackDataPlaneNode) error {
	before := n.DeepCopy()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[common.TakeOverAnnotation] = t.tool
	if err := t.client.Patch(ctx, n, client.MergeFrom(before), client.FieldOwner("kubectl-edpm")); err != nil {
		return fmt.Errorf("writing node %s: %w", n.Name, err)
	}
	return nil
}
