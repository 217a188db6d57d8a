package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/nodeview"
)

// refresh is how often a picture is redrawn at least: ages increase, and the
// objects of services are not watched.
const refresh = 5 * time.Second

// statusCommand is one call of kubectl edpm status.
type statusCommand struct {
	connection
	output  string
	watch   bool
	timeout time.Duration
	subject subject
}

func newStatus(flags *genericclioptions.ConfigFlags) *cobra.Command {
	s := &statusCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "status [node|role]", Short: "Show phases, services and runs of nodes, and why they are not ready", Args: cobra.MaximumNArgs(1),
		Long:    "Show the state of a node, the nodes of a role, or all nodes of the namespace: phases,\nservices, the current and the last run, the next retry, and why they are not ready.\nNothing is written.",
		Example: "  kubectl edpm status -n openstack\n  kubectl edpm status edpm-compute-0 --watch\n  kubectl edpm status role/edpm-compute -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd.Context(), cmd.OutOrStdout(), strings.Join(args, ""))
		},
	}
	addOutput(cmd, &s.output)
	cmd.Flags().BoolVarP(&s.watch, "watch", "w", false, "continue until all of them are Ready with all their services")
	cmd.Flags().DurationVar(&s.timeout, "timeout", 0, "with --watch: fail after this time; 0 means never")
	return cmd
}

func (s *statusCommand) run(ctx context.Context, out io.Writer, arg string) error {
	if !slices.Contains([]string{"text", "json", "yaml"}, s.output) {
		return fmt.Errorf("--output %q is neither text, json nor yaml", s.output)
	}
	if s.timeout != 0 && !s.watch {
		return errors.New("--timeout is for --watch: add it")
	}
	if err := s.connect(); err != nil {
		return err
	}
	var err error
	if s.subject, err = s.find(ctx, arg); err != nil {
		return err
	}
	// Before a watch as well, which would try again for ever what is forbidden.
	views, err := s.views(ctx, s.client, s.subject)
	switch {
	case err != nil:
		return err
	case s.watch:
		return s.follow(ctx, out)
	}
	return s.show(out, views)
}

// show prints the nodes: one by itself, several by role.
func (s *statusCommand) show(out io.Writer, views []nodeview.Node) error {
	now := time.Now()
	if s.subject.node != "" && len(views) == 1 {
		return printAs(out, s.output, views[0], func(out io.Writer) error { return views[0].Text(painter{out}, now) })
	}
	roles := nodeview.Roles(views)
	return printAs(out, s.output, roles, func(out io.Writer) error {
		if len(roles) == 0 {
			return s.sayNoNodes(out)
		}
		for i, r := range roles {
			if i > 0 {
				fmt.Fprintln(out)
			}
			if err := r.Text(painter{out}, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// follow prints the nodes whenever something changes, until all are up.
func (s *statusCommand) follow(ctx context.Context, out io.Writer) error {
	ctx, stop := s.withTimeout(ctx)
	defer stop()
	reader, changed, err := s.watchAll(ctx)
	if err != nil {
		return err
	}
	var shown []nodeview.Node
	for first := true; ; first = false {
		views, err := s.views(ctx, reader, s.subject)
		if err != nil {
			return err
		}
		if s.subject.node != "" && len(views) == 0 {
			return fmt.Errorf("node %s no longer exists", s.subject.node)
		}
		if first || isTerminal(out) && s.output == "text" || !reflect.DeepEqual(shown, views) {
			if err := s.redraw(out, views); err != nil {
				return err
			}
			shown = views
		}
		if allUp(views) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-time.After(refresh):
		}
	}
}

// withTimeout returns a context that ends with --timeout, or when it is stopped.
func (s *statusCommand) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("--timeout: not all nodes are up after %s", s.timeout))
}

func allUp(views []nodeview.Node) bool {
	return !slices.ContainsFunc(views, func(n nodeview.Node) bool { return !n.Up })
}

// redraw prints a picture in the place of the one before, or below it where
// there is no terminal.
func (s *statusCommand) redraw(out io.Writer, views []nodeview.Node) error {
	if isTerminal(out) && s.output == "text" {
		fmt.Fprint(out, "\033[H\033[2J")
	} else if s.output == "text" {
		fmt.Fprintf(out, "\n%s\n", time.Now().UTC().Format(time.RFC3339))
	}
	return s.show(out, views)
}

// watchAll returns a reader that knows all nodes, roles and runs of the
// namespace, and a channel that tells that some of them have changed.
func (s *statusCommand) watchAll(ctx context.Context) (client.Reader, <-chan struct{}, error) {
	watched, err := cache.New(s.config, cache.Options{Scheme: s.client.Scheme(), DefaultNamespaces: map[string]cache.Config{s.namespace: {}}})
	if err != nil {
		return nil, nil, err
	}
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // reported already
		}
	}
	for _, obj := range []client.Object{&dataplanev1.OpenStackDataPlaneNode{}, &dataplanev1.OpenStackDataPlaneRole{}, &ansibleeev1.OpenStackAnsibleEE{}} {
		informer, err := watched.GetInformer(ctx, obj)
		if err != nil {
			return nil, nil, fmt.Errorf("watching %T: %w", obj, err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, nil, err
		}
	}
	go func() { _ = watched.Start(ctx) }() // it ends with the context only
	if !watched.WaitForCacheSync(ctx) {
		return nil, nil, context.Cause(ctx)
	}
	return watched, changed, nil
}
