package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/mustgather"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/nodeview"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/topologymap"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// gatherCommand is one call of kubectl edpm must-gather.
type gatherCommand struct {
	connection
	dest string
	all  bool
	now  time.Time
}

func newMustGather(flags *genericclioptions.ConfigFlags) *cobra.Command {
	g := &gatherCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "must-gather", Short: "Collect objects, events and logs to diagnose a problem", Args: cobra.NoArgs,
		Long:    "Collect the objects of edpm-operators, events, the logs of runs and of the manager, and\nwhere pods are, in one file or directory. Values of Secrets are not collected, and are\nmasked in everything else. For that purpose Secrets are read, if you have permission.\nNothing is written to the cluster.",
		Example: "  kubectl edpm must-gather -n openstack\n  kubectl edpm must-gather --all-namespaces --dest problem.tar.gz",
		RunE: func(cmd *cobra.Command, _ []string) error {
			g.now = time.Now()
			return g.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&g.dest, "dest", "", "file that ends in .tar.gz or .tgz, or a directory that is empty or new (default edpm-must-gather-<time>.tar.gz)")
	cmd.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "of all namespaces that have objects of edpm-operators")
	return cmd
}

func (g *gatherCommand) run(ctx context.Context, out, notes io.Writer) error {
	if g.dest == "" {
		g.dest = "edpm-must-gather-" + g.now.UTC().Format("20060102T150405Z") + ".tar.gz"
	}
	if err := g.connect(); err != nil {
		return err
	}
	opts, err := g.options(ctx)
	if err != nil {
		return err
	}
	archive, err := g.create()
	if err != nil {
		return fmt.Errorf("--dest: %w", err)
	}
	problems, err := mustgather.Collect(ctx, g.client, archive, opts)
	if err := errors.Join(err, archive.Close()); err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(notes, "Note:", p)
	}
	_, err = fmt.Fprintf(out, "Wrote %s. Review it before you pass it on.\n", g.dest)
	return err
}

// options say what of this cluster is collected.
func (g *gatherCommand) options(ctx context.Context) (mustgather.Options, error) {
	set, err := kubernetes.NewForConfig(g.config)
	if err != nil {
		return mustgather.Options{}, err
	}
	opts := mustgather.Options{Now: g.now, Logs: func(ctx context.Context, pod *corev1.Pod, container string, previous bool) (io.ReadCloser, error) {
		return set.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Previous: previous, Timestamps: true}).Stream(ctx)
	}}
	kinds, err := g.kinds()
	if err != nil {
		return opts, err
	}
	if len(kinds) == 0 {
		return opts, errors.New(notInstalled)
	}
	for _, k := range kinds {
		opts.Kinds = append(opts.Kinds, mustgather.Kind{GroupVersionKind: k.GroupVersionKind, Plural: k.Plural})
	}
	if opts.Namespaces, err = g.namespaces(ctx, kinds); err != nil {
		return opts, err
	}
	opts.Summaries = g.summaries(ctx, opts.Namespaces)
	return opts, nil
}

// namespaces that are asked for: the one of the context, or all that have
// objects of edpm-operators.
func (g *gatherCommand) namespaces(ctx context.Context, kinds []apiKind) ([]string, error) {
	if !g.all {
		return []string{g.namespace}, nil
	}
	var found []string
	for _, k := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if err := g.client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("--all-namespaces: listing %s: %w", k.Plural, err)
		}
		for i := range list.Items {
			found = append(found, list.Items[i].Namespace)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// summaries are what status and topology map print. They are a convenience: one
// that cannot be made says why.
func (g *gatherCommand) summaries(ctx context.Context, namespaces []string) map[string]string {
	texts := map[string]string{}
	snapshot, snapshotErr := placement.Read(ctx, g.client)
	for _, ns := range namespaces {
		here := g.connection
		here.namespace = ns
		texts["namespaces/"+ns+"/status.txt"] = orError(func(out io.Writer) error { return here.writeStatus(ctx, out, g.now) })
		texts["namespaces/"+ns+"/topology.txt"] = orError(func(out io.Writer) error {
			topologies := &topologyv1.TopologyList{}
			if err := here.list(ctx, g.client, topologies); err != nil {
				return err
			}
			m, err := topologymap.New(snapshot, mostNamed(topologies.Items), func(p *corev1.Pod) bool { return p.Namespace == ns })
			if err := errors.Join(snapshotErr, err); err != nil {
				return err
			}
			return m.Text(out)
		})
	}
	return texts
}

// writeStatus writes how all nodes of the namespace stand, and each that is not up.
func (c *connection) writeStatus(ctx context.Context, out io.Writer, now time.Time) error {
	views, err := c.views(ctx, c.client, subject{})
	if err != nil {
		return err
	}
	for _, r := range nodeview.Roles(views) {
		if err := r.Text(out, now); err != nil {
			return err
		}
		for _, n := range r.Nodes {
			if n.Up {
				continue
			}
			fmt.Fprintln(out)
			if err := n.Text(out, now); err != nil {
				return err
			}
		}
		fmt.Fprintln(out)
	}
	return nil
}

func orError(write func(io.Writer) error) string {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		fmt.Fprintf(&text, "This file could not be written: %v\n", err)
	}
	return text.String()
}

// create makes the file or the directory. One that has something is left alone.
func (g *gatherCommand) create() (mustgather.Archive, error) {
	if strings.HasSuffix(g.dest, ".tar.gz") || strings.HasSuffix(g.dest, ".tgz") {
		file, err := os.OpenFile(g.dest, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		prefix := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(g.dest), ".tgz"), ".tar.gz")
		return closing{mustgather.NewTar(file, prefix, g.now), file}, nil
	}
	if found, err := os.ReadDir(g.dest); err == nil && len(found) > 0 {
		return nil, fmt.Errorf("directory %s is not empty", g.dest)
	}
	return mustgather.Dir(g.dest), os.MkdirAll(g.dest, 0o700)
}

// closing closes the file below an archive as well.
type closing struct {
	mustgather.Archive
	file io.Closer
}

// Close completes the archive and the file.
func (c closing) Close() error { return errors.Join(c.Archive.Close(), c.file.Close()) }
