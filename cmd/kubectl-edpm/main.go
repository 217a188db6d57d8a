// Command kubectl-edpm is a kubectl plugin: kubectl edpm.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version of the plugin, set by the linker.
var version = "unreleased"

func main() {
	ctrl.SetLogger(klog.Background())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	if err := newRoot(streams).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}

// newRoot returns the command with all that is below it.
func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use: "kubectl-edpm", Short: "Inspect OpenStack on Kubernetes and on external data plane nodes",
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl edpm"},
		SilenceUsage: true, Version: version,
	}
	root.SetIn(streams.In)
	root.SetOut(tame{streams.Out})
	root.SetErr(tame{streams.ErrOut})
	flags.AddFlags(root.PersistentFlags())
	root.AddCommand(newStatus(flags), newLogs(flags), newConfig(flags), newDrift(flags), newRerun(flags), newUpdate(flags), newDrain(flags), newUndrain(flags), newFence(flags), newUnfence(flags), newExplain(), newMustGather(flags), newTopology(flags), newImport(flags), newPreflight(flags), newTakeOver(flags))
	advise(root)
	return root
}
