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
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/preflight"
)

// maxOutput is the most bytes of the output of a run that are read: hosts can print a lot.
const maxOutput = 16 << 20

// checkCommand is a command that has runs look at hosts, and prints what they found.
type checkCommand struct {
	connection
	output  string
	timeout time.Duration
}

func (c *checkCommand) addFlags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&c.timeout, "timeout", 10*time.Minute, "how long to wait for the results")
	addOutput(cmd, &c.output)
}

// check runs a playbook on hosts in check mode and prints the results. The error says how
// many checks failed.
func (c *checkCommand) check(ctx context.Context, out io.Writer, check preflight.Playbook, hosts []preflight.Host) error {
	runs, err := check.Plan(hosts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	results, err := c.results(ctx, runs)
	if err != nil {
		return err
	}
	if err := printAs(out, c.output, results, func(w io.Writer) error { return preflight.Write(w, results) }); err != nil {
		return err
	}
	if all, failed := preflight.Count(results); failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, all)
	}
	return nil
}

// hosts reads the nodes with their roles.
func (c *checkCommand) hosts(ctx context.Context, names []string) ([]preflight.Host, error) {
	var hosts []preflight.Host
	seen := map[string]bool{}
	for _, name := range names {
		node, err := c.node(ctx, name)
		if err != nil {
			return nil, err
		}
		if seen[node.Name] {
			continue
		}
		seen[node.Name] = true
		h, role := preflight.Host{Node: node}, &dataplanev1.OpenStackDataPlaneRole{}
		if found, err := c.get(ctx, node.Spec.Role, role); err != nil {
			return nil, err
		} else if found {
			h.Role = role
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// get reads an object, and reports whether it exists.
func (c *checkCommand) get(ctx context.Context, name string, into client.Object) (bool, error) {
	if name == "" {
		return false, nil
	}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, into)
	return err == nil, client.IgnoreNotFound(err)
}

// results of all hosts, in the order of the runs.
func (c *checkCommand) results(ctx context.Context, runs []preflight.Run) ([]preflight.Result, error) {
	defer c.remove(ctx, runs)
	for _, r := range runs {
		if err := c.start(ctx, r); err != nil {
			return nil, err
		}
	}
	var results []preflight.Result
	for _, r := range runs {
		found, why, err := c.finish(ctx, r)
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
func (c *checkCommand) start(ctx context.Context, r preflight.Run) error {
	if err := c.client.Create(ctx, r.Object); err != nil {
		return fmt.Errorf("creating the run: %w", err)
	}
	r.Inputs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(r.Object, ansibleeev1.GroupVersion.WithKind("OpenStackAnsibleEE"))}
	if err := c.client.Create(ctx, r.Inputs); err != nil {
		return fmt.Errorf("creating the Secret with the inputs of the run: %w", err)
	}
	return nil
}

// remove deletes the runs, also when the person has interrupted the command.
func (c *checkCommand) remove(ctx context.Context, runs []preflight.Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	for _, r := range runs {
		for _, obj := range []client.Object{r.Inputs, r.Object} {
			// What is left is deleted with the run, or by the person who sees it.
			_ = c.client.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
	}
}

// finish waits for the end of a run and returns the results of its hosts, and why there are none of others.
func (c *checkCommand) finish(ctx context.Context, r preflight.Run) (map[string]preflight.Result, string, error) {
	f, err := c.newFollower(ansibleeev1.GroupVersion.WithKind("OpenStackAnsibleEE"), c.namespace)
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
	output, err := c.log(ctx, run)
	return r.Parse(output), why, err
}

// log returns the output of a run, empty if its Pod has none.
func (c *checkCommand) log(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) (string, error) {
	pod, err := (&logsCommand{connection: c.connection}).pod(ctx, run)
	if err != nil || pod == nil {
		return "", err
	}
	set, err := kubernetes.NewForConfig(c.config)
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
