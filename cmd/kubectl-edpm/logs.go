package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/hostlog"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/nodeview"
)

// logsCommand is one call of kubectl edpm logs.
type logsCommand struct {
	connection
	step, run   string
	follow, all bool
	host        string
}

func newLogs(flags *genericclioptions.ConfigFlags) *cobra.Command {
	l := &logsCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "logs <node>", Short: "Print the output of Ansible for one host only", Args: cobra.ExactArgs(1),
		Long:    "Print the output of the newest run that had the host, without the lines of the other\nhosts of that run. The node does not have to exist any more.",
		Example: "  kubectl edpm logs edpm-compute-0\n  kubectl edpm logs edpm-compute-0 --step nova -f",
		RunE: func(cmd *cobra.Command, args []string) error {
			l.host = args[0]
			return l.print(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&l.step, "step", "", "output of this step only, for example run-os or nova")
	cmd.Flags().StringVar(&l.run, "run", "", "this run, by the name of its OpenStackAnsibleEE")
	cmd.Flags().BoolVarP(&l.follow, "follow", "f", false, "follow the output until the run has finished")
	cmd.Flags().BoolVar(&l.all, "all", false, "all runs that still exist, the oldest first")
	return cmd
}

func (l *logsCommand) print(ctx context.Context, out, notes io.Writer) error {
	if err := l.connect(); err != nil {
		return err
	}
	runs, err := l.runs(ctx)
	if err != nil {
		return err
	}
	for _, r := range runs {
		view := nodeview.NewRun(r, l.host)
		fmt.Fprintf(notes, "Run %s, step %s: %s\n", r.Name, r.Spec.Step, view.Outcome)
		if err := l.output(ctx, out, notes, r, view); err != nil {
			return fmt.Errorf("run %s: %w", r.Name, err)
		}
	}
	return nil
}

// runs returns those to print the output of, the oldest first.
func (l *logsCommand) runs(ctx context.Context) ([]*ansibleeev1.OpenStackAnsibleEE, error) {
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := l.list(ctx, l.client, list); err != nil {
		return nil, err
	}
	runs := nodeview.RunsOf(list.Items, l.host, l.step)
	if l.run != "" {
		runs = slices.DeleteFunc(runs, func(r *ansibleeev1.OpenStackAnsibleEE) bool { return r.Name != l.run })
	}
	if len(runs) == 0 {
		return nil, l.noRun()
	}
	if !l.all {
		runs = runs[len(runs)-1:]
	}
	return runs, nil
}

func (l *logsCommand) noRun() error {
	which := "no run"
	if l.run != "" {
		which = fmt.Sprintf("no run %q", l.run)
	}
	if l.step != "" {
		which += fmt.Sprintf(" of step %q", l.step)
	}
	return fmt.Errorf("%s in namespace %s has host %q: kubectl get osaee lists those that are kept, kubectl edpm status %s shows what the node waits for", which, l.namespace, l.host, l.host)
}

// output prints what a run said of the host: from its Pod, or if that is gone
// from the status of the run.
func (l *logsCommand) output(ctx context.Context, out, notes io.Writer, r *ansibleeev1.OpenStackAnsibleEE, view nodeview.Run) error {
	pod, err := l.pod(ctx, r)
	if err != nil {
		return err
	}
	if pod == nil {
		return l.recap(out, notes, view, "its Pod is gone")
	}
	set, err := kubernetes.NewForConfig(l.config)
	if err != nil {
		return err
	}
	stream, err := set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name, Follow: l.follow}).Stream(ctx)
	if err != nil {
		return l.recap(out, notes, view, fmt.Sprintf("the log of Pod %s cannot be read: %v", pod.Name, err))
	}
	defer stream.Close()
	filter := hostlog.New(l.host)
	if steps := r.StepNames(); l.step != "" && len(steps) > 1 {
		filter.Step(slices.Index(steps, l.step))
	}
	return hostlog.Copy(out, stream, filter)
}

// recap prints what is left of a run whose output is not there, and why it is not.
func (l *logsCommand) recap(out, notes io.Writer, view nodeview.Run, why string) error {
	if view.Outcome == nodeview.Running && view.Recap == nil {
		return fmt.Errorf("no output yet: %s, or it has not started. Retry, or wait with -f", why)
	}
	fmt.Fprintf(notes, "There is no output: %s. The status of the run has this result for the host:\n", why)
	if view.Recap == nil {
		_, err := fmt.Fprintf(out, "%s : no result\n", l.host)
		return err
	}
	if _, err := fmt.Fprintln(out, nodeview.Recap(*view.Recap)); err != nil || view.Recap.Message == "" {
		return err
	}
	_, err := fmt.Fprintln(out, view.Recap.Message)
	return err
}

// pod returns the newest Pod of the run that has begun, or nil if there is none.
// With --follow it is waited for while the run is under way.
func (l *logsCommand) pod(ctx context.Context, r *ansibleeev1.OpenStackAnsibleEE) (*corev1.Pod, error) {
	var found *corev1.Pod
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := l.client.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels{batchv1.JobNameLabel: r.Name}); err != nil {
			return false, fmt.Errorf("listing its Pods: %w", err)
		}
		found = newestBegun(pods.Items)
		if found != nil || !l.follow || r.Finished() {
			return true, nil
		}
		return false, l.client.Get(ctx, client.ObjectKeyFromObject(r), r)
	})
	return found, err
}

// newestBegun returns the newest Pod that has output, or nil.
func newestBegun(pods []corev1.Pod) *corev1.Pod {
	var newest *corev1.Pod
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase != corev1.PodPending && p.Status.Phase != "" && (newest == nil || newest.CreationTimestamp.Before(&p.CreationTimestamp)) {
			newest = p
		}
	}
	return newest
}
