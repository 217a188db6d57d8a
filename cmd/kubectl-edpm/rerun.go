package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// rerunCommand is one call of kubectl edpm rerun.
type rerunCommand struct {
	connection
	step string
}

func newRerun(flags *genericclioptions.ConfigFlags) *cobra.Command {
	r := &rerunCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "rerun <node|role>", Short: "Run Ansible again although nothing has changed", Args: cobra.ExactArgs(1),
		Long: "Run phase 0 again, and then the services of phase 1, on a node or on all nodes of a\nrole; with --step only one service of phase 1. This sets a new token in the\nannotation " +
			common.RerunAnnotation + ". Objects below with a token of their own\nget the new token too, because they would ignore the one above them.",
		Example: "  kubectl edpm rerun edpm-compute-0\n  kubectl edpm rerun role/edpm-compute --step nova",
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	cmd.Flags().StringVar(&r.step, "step", "", "only this service of phase 1, for example nova, or the name of a class")
	return cmd
}

func (r *rerunCommand) run(ctx context.Context, out io.Writer, arg string) error {
	if arg == "" {
		return fmt.Errorf("name a node or a role")
	}
	if err := r.connect(); err != nil {
		return err
	}
	s, err := r.find(ctx, arg)
	if err != nil {
		return err
	}
	objects, err := r.objects(ctx, s)
	if err != nil {
		return err
	}
	token := time.Now().UTC().Format(time.RFC3339Nano)
	for _, obj := range objects {
		if err := r.annotate(ctx, obj, token); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s/%s runs again (%s=%s)\n", obj.Kind, obj.Name, common.RerunAnnotation, token)
	}
	return nil
}

func (r *rerunCommand) annotate(ctx context.Context, obj *metav1.PartialObjectMetadata, token string) error {
	before := obj.DeepCopy()
	if obj.Annotations == nil {
		obj.Annotations = map[string]string{}
	}
	obj.Annotations[common.RerunAnnotation] = token
	kind := obj.GroupVersionKind()
	if err := r.client.Patch(ctx, obj, client.MergeFrom(before), client.FieldOwner("kubectl-edpm")); err != nil {
		return fmt.Errorf("annotating %s %s: %w", kind.Kind, obj.Name, err)
	}
	obj.SetGroupVersionKind(kind)
	return nil
}

// objects returns what the token has to be set on: with a step the objects of
// that service, else the node or the role and everything below it that has a
// token of its own.
func (r *rerunCommand) objects(ctx context.Context, s subject) ([]*metav1.PartialObjectMetadata, error) {
	list := &dataplanev1.OpenStackDataPlaneNodeList{}
	if err := r.list(ctx, r.client, list); err != nil {
		return nil, err
	}
	nodes := slices.DeleteFunc(list.Items, func(n dataplanev1.OpenStackDataPlaneNode) bool { return !s.has(&n) })
	services, err := r.serviceObjects(ctx, nodes)
	if err != nil {
		return nil, err
	}
	if r.step != "" {
		if len(services) == 0 {
			return nil, noSuchService(r.step, nodes)
		}
		return services, nil
	}
	top, err := r.get(ctx, s)
	if err != nil {
		return nil, err
	}
	objects := []*metav1.PartialObjectMetadata{top}
	for i := range nodes {
		if n := &nodes[i]; s.role != "" && hasToken(n) {
			objects = append(objects, metadata(n, dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneNode")))
		}
	}
	return append(objects, slices.DeleteFunc(services, func(o *metav1.PartialObjectMetadata) bool { return !hasToken(o) })...), nil
}

func hasToken(obj client.Object) bool {
	_, has := obj.GetAnnotations()[common.RerunAnnotation]
	return has
}

func metadata(obj client.Object, kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), Annotations: obj.GetAnnotations()}}
	m.SetGroupVersionKind(kind)
	return m
}

// get reads the node or the role.
func (r *rerunCommand) get(ctx context.Context, s subject) (*metav1.PartialObjectMetadata, error) {
	kind, name := "OpenStackDataPlaneNode", s.node
	if s.role != "" {
		kind, name = "OpenStackDataPlaneRole", s.role
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(dataplanev1.GroupVersion.WithKind(kind))
	err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: name}, obj)
	return obj, err
}

// serviceObjects returns the objects behind the services of the nodes; of one
// service only if a step is named.
func (r *rerunCommand) serviceObjects(ctx context.Context, nodes []dataplanev1.OpenStackDataPlaneNode) ([]*metav1.PartialObjectMetadata, error) {
	nodesOf := map[string][]string{} // by Kind/name
	kinds := map[string]bool{}
	for _, n := range nodes {
		for _, e := range n.Status.Services {
			if r.step == "" || e.Name == r.step {
				key := e.Kind + "/" + e.ObjectName
				nodesOf[key], kinds[e.Kind] = append(nodesOf[key], n.Name), true
			}
		}
	}
	known, err := r.kindsNamed(kinds)
	if err != nil {
		return nil, err
	}
	var objects []*metav1.PartialObjectMetadata
	for _, k := range known {
		items, err := r.objectsOf(ctx, k)
		if err != nil {
			return nil, err
		}
		for i := range items {
			obj := &items[i]
			if slices.ContainsFunc(nodesOf[k.Kind+"/"+obj.GetName()], func(node string) bool { return isOf(obj, node) }) {
				objects = append(objects, metadata(obj, k.GroupVersionKind))
			}
		}
	}
	return objects, nil
}

// noSuchService says which services there are. Phase 0 steps cannot be
// rerun one by one: the token is that of the whole phase.
func noSuchService(step string, nodes []dataplanev1.OpenStackDataPlaneNode) error {
	var names []string
	for _, n := range nodes {
		for _, e := range n.Status.Services {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if slices.Contains(names, step) {
		return fmt.Errorf("--step %q: no object of this service belongs to these nodes: kubectl edpm status shows why", step)
	}
	return fmt.Errorf("--step %q: these nodes have no service of phase 1 with this name; they have: [%s]. Phase 0 steps cannot be rerun one by one: omit --step", step, strings.Join(names, " "))
}
