package main

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

func newFence(flags *genericclioptions.ConfigFlags) *cobra.Command {
	d := &drainCommand{connection: connection{flags: flags}, by: new(string)}
	cmd := &cobra.Command{
		Use: "fence <node>... --by <who>", Short: "Say that the hosts of nodes are off, and have their guests evacuated", Args: cobra.MinimumNArgs(1),
		Long: "Say that the hosts of nodes are off and stay off, have nova evacuate their guests to\nother hosts, and follow that until nova has nothing on them. This sets annotation\n" +
			common.FenceAnnotation + ". Make sure first that each host is off: of a guest\nthat runs on two hosts the disk is lost. A host that does not answer may run.",
		Example: "  kubectl edpm fence edpm-compute-0 --by 'anna: port 7 of the PDU is off'",
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	cmd.Flags().StringVar(d.by, "by", "", "who says that the hosts are off, and how that is known")
	if err := cmd.MarkFlagRequired("by"); err != nil {
		panic(err) // it has just been added
	}
	d.addParallel(cmd)
	d.addTimeout(cmd)
	return cmd
}

func newUnfence(flags *genericclioptions.ConfigFlags) *cobra.Command {
	d := &drainCommand{connection: connection{flags: flags}, by: new(string), undo: true}
	cmd := &cobra.Command{
		Use: "unfence <node>...", Short: "Say no longer that the hosts of nodes are off, and have nova use them again", Args: cobra.MinimumNArgs(1),
		Long: "Have the hosts of nodes deployed once more, and nova use them again when their\nnova-compute has removed what is left of guests that were evacuated. This removes\nannotation " +
			common.FenceAnnotation + ". Guests stay where they are.",
		Example: "  kubectl edpm unfence edpm-compute-0",
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	d.addTimeout(cmd)
	return cmd
}
