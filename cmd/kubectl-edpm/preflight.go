package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/preflight"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
)

// preflightCommand is one call of kubectl edpm preflight.
type preflightCommand struct{ checkCommand }

func newPreflight(flags *genericclioptions.ConfigFlags) *cobra.Command {
	p := &preflightCommand{checkCommand{connection: connection{flags: flags}}}
	cmd := &cobra.Command{
		Use: "preflight <node>...", Short: "Check what hosts need before anything is deployed on them", Args: cobra.MinimumNArgs(1),
		Long: "Check nodes from runner Pods that are where those of a deployment would be: SSH, sudo,\nPython, clock, disk, MTU, DNS, message bus, keystone, registries and TLS. Nothing is\n" +
			"changed on the hosts. The run and its Secret are deleted at the end. The exit code is\n0 only if no check failed.",
		Example: "  kubectl edpm preflight edpm-compute-0 edpm-compute-1 -n openstack",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	p.addFlags(cmd)
	return cmd
}

func (p *preflightCommand) run(ctx context.Context, out io.Writer, args []string) error {
	if err := p.connect(); err != nil {
		return err
	}
	hosts, err := p.hosts(ctx, args)
	if err != nil {
		return err
	}
	for i := range hosts {
		if err := p.complete(ctx, &hosts[i]); err != nil {
			return err
		}
	}
	return p.check(ctx, out, preflight.Preflight, hosts)
}

// complete reads the cell and the compute of a node, each of which can be missing.
func (p *preflightCommand) complete(ctx context.Context, h *preflight.Host) error {
	cell, compute := &novav1.NovaCell{}, &novav1.NovaExternalCompute{}
	if found, err := p.get(ctx, inherit.Annotation(h.Node, h.Role, novav1.CellAnnotation), cell); err != nil {
		return err
	} else if found {
		h.Cell = cell
	}
	if found, err := p.get(ctx, h.Node.Name, compute); err != nil || !found {
		return err
	}
	h.Vars = map[string]any{"edpm_preflight_images": []string{compute.Spec.NovaComputeContainerImage, compute.Spec.NovaLibvirtContainerImage}}
	return nil
}
