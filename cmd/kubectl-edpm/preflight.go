package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/preflight"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
)

// maxOutput is the most bytes of the output of a run that are read: hosts can print a lot.
const maxOutput = 16 << 20

// preflightCommand is one call of kubectl edpm preflight.
type preflightCommand struct {
	connection
	output  string
	timeout time.Duration
}

func newPreflight(flags *genericclioptions.ConfigFlags) *cobra.Command {
	p := &preflightCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "preflight <node>...", Short: "Check what hosts need before anything is deployed on them", Args: cobra.MinimumNArgs(1),
		Long: "Check nodes from runner Pods that are where those of a deployment would be: SSH, sudo,\nPython, clock, disk, MTU, DNS, message bus, keystone, registries and TLS. Nothing is\n" +
			"changed on the hosts. The run and its Secret are deleted at the end. The exit code is\n0 only if no check failed.",
		Example: "  kubectl edpm preflight edpm-compute-0 edpm-compute-1 -n openstack",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	cmd.Flags().DurationVar(&p.timeout, "timeout", 10*time.Minute, "how long to wait for the results")
	addOutput(cmd, &p.output)
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
	runs, err := preflight.Plan(hosts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	results, err := p.results(ctx, runs)
	if err != nil {
		return err
	}
	if err := printAs(out, p.output, results, func(w io.Writer) error { return preflight.Write(w, results) }); err != nil {
		return err
	}
	if all, failed := preflight.Count(results); failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, all)
	}
	return nil
}

// hosts reads the nodes with what decides how they are checked.
func (p *preflightCommand) hosts(ctx context.Context, names []string) ([]preflight.Host, error) {
	var hosts []preflight.Host
	seen := map[string]bool{}
	for _, name := range names {
		node, err := p.node(ctx, name)
		if err != nil {
			return nil, err
		}
		if seen[node.Name] {
			continue
		}
		seen[node.Name] = true
		h := preflight.Host{Node: node}
		if err := p.complete(ctx, &h); err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// complete reads the role, the cell and the compute of a node, each of which can be missing.
func (p *preflightCommand) complete(ctx context.Context, h *preflight.Host) error {
	role, cell, compute := &dataplanev1.OpenStackDataPlaneRole{}, &novav1.NovaCell{}, &novav1.NovaExternalCompute{}
	if found, err := p.get(ctx, h.Node.Spec.Role, role); err != nil {
		return err
	} else if found {
		h.Role = role
	}
	if found, err := p.get(ctx, inherit.Annotation(h.Node, h.Role, novav1.CellAnnotation), cell); err != nil {
		return err
	} else if found {
		h.Cell = cell
	}
	if found, err := p.get(ctx, h.Node.Name, compute); err != nil || !found {
		return err
	}
	h.Images = []string{compute.Spec.NovaComputeContainerImage, compute.Spec.NovaLibvirtContainerImage}
	return nil
}

// get reads an object, and reports whether it exists.
func (p *preflightCommand) get(ctx context.Context, name string, into client.Object) (bool, error) {
	if name == "" {
		return false, nil
	}
	err := p.client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, into)
	return err == nil, client.IgnoreNotFound(err)
}

// results of all hosts, in the order of the runs.
func (p *preflightCommand) results(ctx context.Context, runs []preflight.Run) ([]preflight.Result, error) {
	defer p.remove(ctx, runs)
	for _, r := range runs {
		if err := p.start(ctx, r); err != nil {
			return nil, err
		}
	}
	var results []preflight.Result
	for _, r := range runs {
		found, why, err := p.finish(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, host := range r.Hosts {
			result, ok := found[host]
			if !ok {
				result = preflight.Missing(host, why)
			}
			results = append(results, result)
		}
	}
	return results, nil
}

// start creates a run and its inputs, which belong to it.
func (p *preflightCommand) start(ctx context.Context, r preflight.Run) error {
	if err := p.client.Create(ctx, r.Object); err != nil {
		return fmt.Errorf("creating the run: %w", err)
	}
	r.Inputs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(r.Object, ansibleeev1.GroupVersion.WithKind("OpenStackAnsibleEE"))}
	if err := p.client.Create(ctx, r.Inputs); err != nil {
		return fmt.Errorf("creating the Secret with the inputs of the run: %w", err)
	}
	return nil
}

// remove deletes the runs, also when the person has interrupted the command.
func (p *preflightCommand) remove(ctx context.Context, runs []preflight.Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	for _, r := range runs {
		for _, obj := range []client.Object{r.Inputs, r.Object} {
			// What is left is deleted with the run, or by the person who sees it.
			_ = p.client.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
	}
}

// finish waits for the end of a run and returns the results of its hosts, and why there are none of others.
func (p *preflightCommand) finish(ctx context.Context, r preflight.Run) (map[string]preflight.Result, string, error) {
	f, err := p.newFollower(ansibleeev1.GroupVersion.WithKind("OpenStackAnsibleEE"), p.namespace)
	if err != nil {
		return nil, "", err
	}
	run := &ansibleeev1.OpenStackAnsibleEE{}
	err = f.follow(ctx, r.Object.Name, func(obj *unstructured.Unstructured) (bool, error) {
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, run)
		return run.Finished(), err
	})
	why := "the run has no result of the host"
	if ready := run.Status.Conditions.Get("Ready"); ready != nil && ready.Status != corev1.ConditionTrue {
		why = ready.Message
	}
	if err != nil {
		return nil, "", fmt.Errorf("run %s: %w: %s", r.Object.Name, err, why)
	}
	output, err := p.log(ctx, run)
	return r.Parse(output), why, err
}

// log returns the output of a run, empty if its Pod has none.
func (p *preflightCommand) log(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) (string, error) {
	pod, err := (&logsCommand{connection: p.connection}).pod(ctx, run)
	if err != nil || pod == nil {
		return "", err
	}
	set, err := kubernetes.NewForConfig(p.config)
	if err != nil {
		return "", err
	}
	stream, err := set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the log of Pod %s: %w", pod.Name, err)
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, maxOutput))
	return string(text), err
}
