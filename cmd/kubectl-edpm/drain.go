package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// drainCommand is one call of kubectl edpm drain or fence, or with undo of undrain or unfence.
type drainCommand struct {
	connection
	cold, stop, undo bool
	// by is who says that the hosts are off; nil for a drain.
	by       *string
	parallel int
	timeout  time.Duration
}

func newDrain(flags *genericclioptions.ConfigFlags) *cobra.Command {
	d := &drainCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "drain <node>...", Short: "Move the guests off the hosts of nodes", Args: cobra.MinimumNArgs(1),
		Long: "Disable the compute services of nodes in nova, have their guests moved to other hosts,\nand follow that until nova has nothing on them. This sets annotation\n" +
			common.DrainAnnotation + ". If you interrupt the command, the drain\ncontinues; kubectl edpm undrain ends it.",
		Example: "  kubectl edpm drain edpm-compute-0\n  kubectl edpm drain edpm-compute-0 edpm-compute-1 --cold --parallel 4 --timeout 1h",
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	cmd.Flags().BoolVar(&d.cold, "cold", false, "shut guests down, move them, and start them again, instead of moving them while they run")
	cmd.Flags().BoolVar(&d.stop, "stop", false, "shut guests down, and leave them on the host")
	cmd.MarkFlagsMutuallyExclusive("cold", "stop")
	d.addParallel(cmd)
	d.addTimeout(cmd)
	return cmd
}

func (d *drainCommand) addParallel(cmd *cobra.Command) {
	cmd.Flags().IntVar(&d.parallel, "parallel", validate.DefaultDrainParallel, "how many guests of each host are moved at a time")
}

func newUndrain(flags *genericclioptions.ConfigFlags) *cobra.Command {
	d := &drainCommand{connection: connection{flags: flags}, undo: true}
	cmd := &cobra.Command{
		Use: "undrain <node>...", Short: "End the drain of nodes, and have nova use their hosts again", Args: cobra.MinimumNArgs(1),
		Long: "End the drain of nodes: no more guests are moved, and the compute services are enabled\nin nova, unless another user has disabled them. This removes annotation\n" +
			common.DrainAnnotation + ". Guests stay where they are.",
		Example: "  kubectl edpm undrain edpm-compute-0",
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	d.addTimeout(cmd)
	return cmd
}

func (d *drainCommand) addTimeout(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&d.timeout, "timeout", 0, "stop following after this time; what was begun continues. 0 means never")
}

func (d *drainCommand) run(ctx context.Context, out io.Writer, args []string) error {
	if err := d.connect(); err != nil {
		return err
	}
	nodes, err := d.nodes(ctx, args)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := d.annotate(ctx, n); err != nil {
			return err
		}
	}
	return d.follow(ctx, out, nodes)
}

// nodes returns those of the names, each once. All of them must have a compute.
func (d *drainCommand) nodes(ctx context.Context, args []string) ([]*dataplanev1.OpenStackDataPlaneNode, error) {
	var nodes []*dataplanev1.OpenStackDataPlaneNode
	for _, arg := range args {
		n, err := d.node(ctx, arg)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(nodes, func(known *dataplanev1.OpenStackDataPlaneNode) bool { return known.Name == n.Name }) {
			continue
		}
		if !slices.ContainsFunc(n.Status.Services, func(e dataplanev1.NodeServiceStatus) bool { return e.Kind == computeKind.Kind }) {
			return nil, fmt.Errorf("node %s has no compute, and so no guests: annotation %s makes a node a compute", n.Name, novav1.CellAnnotation)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// annotate says on a node what is done with its guests.
func (d *drainCommand) annotate(ctx context.Context, n *dataplanev1.OpenStackDataPlaneNode) error {
	before := n.DeepCopy()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	delete(n.Annotations, common.DrainParallelAnnotation)
	key, value := common.DrainAnnotation, d.mode()
	if d.by != nil {
		key, value = common.FenceAnnotation, *d.by
	}
	if delete(n.Annotations, key); !d.undo {
		delete(n.Annotations, common.DrainAnnotation) // a host that is off is not drained
		n.Annotations[key] = value
		if d.parallel != validate.DefaultDrainParallel {
			n.Annotations[common.DrainParallelAnnotation] = strconv.Itoa(d.parallel)
		}
	}
	if _, _, errs := validate.Drain(n.Annotations); len(errs) > 0 { // admission may be off
		return fmt.Errorf("--parallel: %w", errs.ToAggregate())
	}
	if _, errs := validate.Fence(n.Annotations); len(errs) > 0 {
		return errs.ToAggregate()
	}
	if err := d.client.Patch(ctx, n, client.MergeFrom(before), client.FieldOwner("kubectl-edpm")); err != nil {
		return fmt.Errorf("annotating node %s: %w", n.Name, err)
	}
	return nil
}

func (d *drainCommand) mode() string {
	switch {
	case d.cold:
		return validate.DrainCold
	case d.stop:
		return validate.DrainStop
	}
	return validate.DrainLive
}

// follow prints what computes report until nova has nothing on their hosts, or until the
// drain has ended.
func (d *drainCommand) follow(ctx context.Context, out io.Writer, nodes []*dataplanev1.OpenStackDataPlaneNode) error {
	ctx, cancel := watchtools.ContextWithOptionalTimeout(ctx, d.timeout)
	defer cancel()
	f, err := d.newFollower(computeKind, d.namespace)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	var printing sync.Mutex
	ended := make([]error, len(nodes))
	for i, n := range nodes {
		all.Go(func() {
			last := ""
			show := func(text string) {
				printing.Lock()
				defer printing.Unlock()
				if text != "" && text != last {
					fmt.Fprintf(out, "%s: %s\n", n.Name, text)
					last = text
				}
			}
			err := f.follow(ctx, n.Name, func(compute *unstructured.Unstructured) (bool, error) { return d.report(compute, show) })
			if errors.Is(err, errDeleted) {
				show("the compute was deleted")
				err = nil
			}
			ended[i] = err
		})
	}
	all.Wait()
	return d.verdict(nodes, ended)
}

// verdict on nodes, of which those that are no longer followed are not done.
func (d *drainCommand) verdict(nodes []*dataplanev1.OpenStackDataPlaneNode, ended []error) error {
	var open []string
	for i, err := range ended {
		if errors.Is(err, errUnfinished) {
			open = append(open, nodes[i].Name)
			ended[i] = nil
		}
	}
	names := strings.Join(open, " ")
	switch {
	case names == "":
	case d.by != nil:
		ended = append(ended, fmt.Errorf("the evacuation of %s continues, and is no longer followed: kubectl edpm status shows its progress", names))
	case d.undo:
		ended = append(ended, fmt.Errorf("the drain of %s has ended, but moves that it started are no longer followed: kubectl edpm status shows their progress", names))
	default:
		ended = append(ended, fmt.Errorf("the drain of %s continues, and is no longer followed: kubectl edpm status shows its progress, and kubectl edpm undrain %s ends it", names, names))
	}
	return errors.Join(ended...)
}

// computeKind is the kind of the objects that report how far drains are.
var computeKind = novav1.GroupVersion.WithKind("NovaExternalCompute")

// report shows what a compute reports, and returns whether its node is done.
func (d *drainCommand) report(compute *unstructured.Unstructured, show func(string)) (done bool, err error) {
	conditions := serviceOf(compute).Conditions
	drained, service := conditions.Get(d.condition()), conditions.Get(novav1.ComputeServiceReadyCondition)
	switch {
	case d.undo && drained == nil:
		if service != nil {
			show(service.Message)
		}
		return true, nil
	case drained == nil:
		return false, nil
	}
	if step, isForStep := stepOfDrain(compute); d.undo && isForStep && drained.Type == novav1.DrainedCondition {
		show("it stays drained until " + step + " has run: see status.drain of the compute, and deployStrategy.drain of its role")
		return true, nil
	}
	show(drained.Message)
	if d.undo {
		return false, nil
	}
	switch drained.Reason {
	case novav1.DrainNotPossibleReason:
		return false, fmt.Errorf("node %s cannot be drained: %s; kubectl edpm explain %[2]s says what to do", compute.GetName(), drained.Reason)
	case novav1.EvacuationNotPossibleReason, novav1.HostAliveReason:
		return false, fmt.Errorf("node %s is not evacuated: %s; kubectl edpm explain %[2]s says what to do", compute.GetName(), drained.Reason)
	}
	// The condition can still be that of a drain in another way.
	return drained.Status == corev1.ConditionTrue && d.isReasonOf(drained.Reason), nil
}

// stepOfDrain returns the step for which the operators drain the host of a compute, and whether
// they do.
func stepOfDrain(compute *unstructured.Unstructured) (step string, isForStep bool) {
	drain, isForStep, _ := unstructured.NestedMap(compute.Object, "status", "drain")
	if name, _ := drain["step"].(string); name != "" {
		return "step " + name, isForStep
	}
	return "a step of the node", isForStep
}

// condition that says how far it is.
func (d *drainCommand) condition() condition.Type {
	if d.by != nil {
		return novav1.EvacuatedCondition
	}
	return novav1.DrainedCondition
}

func (d *drainCommand) isReasonOf(reason condition.Reason) bool {
	return d.stop == (reason == novav1.GuestsStoppedReason)
}
