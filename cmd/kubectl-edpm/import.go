package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/nodesets"
)

// importCommand is one call of kubectl edpm import.
type importCommand struct {
	connection
	files                       []string
	fromCluster                 bool
	output, report, acknowledge string
}

func newImport(flags *genericclioptions.ConfigFlags) *cobra.Command {
	c := &importCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "import", Short: "Write roles and nodes of OpenStackDataPlaneNodeSets, to review and apply", Args: cobra.NoArgs,
		Long: "Read OpenStackDataPlaneNodeSets, -Services and -Deployments of openstack-operator with the\nConfigMaps that they name, and write what they are here as YAML: roles, nodes, computes\n" +
			"with their configuration, steps. Nothing is written to a cluster, and Secrets are not read.\nA report has a line for each field: taken over, renamed, not needed, or no counterpart.\n" +
			"Fails if a field has no counterpart, unless its line is in the file of --acknowledge,\nwhich is a report that a person has read.",
		Example: "  kubectl edpm import -f nodesets/ --output imported/ --report report.txt\n  kubectl edpm import --from-cluster -n openstack --output imported/ --report report.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringArrayVarP(&c.files, "filename", "f", nil, "file or directory with objects in YAML or JSON, - for standard input; can be given several times")
	cmd.Flags().BoolVar(&c.fromCluster, "from-cluster", false, "read the objects of the namespace from the cluster")
	cmd.Flags().StringVar(&c.output, "output", "", "directory for a file of each object; without it they are written to standard output")
	cmd.Flags().StringVar(&c.report, "report", "", "file for the report; without it, it is written to standard error")
	cmd.Flags().StringVar(&c.acknowledge, "acknowledge", "", "report of an earlier call, whose lines do not make this one fail")
	cmd.MarkFlagsOneRequired("filename", "from-cluster")
	cmd.MarkFlagsMutuallyExclusive("filename", "from-cluster")
	return cmd
}

func (c *importCommand) run(ctx context.Context, in io.Reader, out, notes io.Writer) error {
	// Before the report is written, which can be the same file.
	acknowledged, err := linesOf(c.acknowledge)
	if err != nil {
		return fmt.Errorf("--acknowledge: %w", err)
	}
	inputs := nodesets.NewInputs()
	if err := c.readAll(ctx, in, inputs); err != nil {
		return err
	}
	if inputs.IsEmpty() {
		return fmt.Errorf("%s no OpenStackDataPlaneNodeSet, -Service or -Deployment", c.whatHas())
	}
	plan, err := nodesets.NewPlan(inputs)
	if err != nil {
		return err
	}
	if err := c.write(out, notes, plan); err != nil {
		return err
	}
	open := slices.DeleteFunc(slices.Clone(plan.Findings), func(f nodesets.Finding) bool {
		return f.Verdict != nodesets.NoCounterpart || acknowledged[printable(f.String())]
	})
	if len(open) > 0 {
		return fmt.Errorf("lines of the report without a counterpart: %d; read them, and pass the report with --acknowledge", len(open))
	}
	return nil
}

// whatHas is what was read, as the begin of a sentence.
func (c *importCommand) whatHas() string {
	if c.fromCluster {
		return fmt.Sprintf("namespace %s, which --namespace chooses, has", c.namespace)
	}
	return "the inputs have"
}

func (c *importCommand) readAll(ctx context.Context, in io.Reader, inputs *nodesets.Inputs) error {
	if c.fromCluster {
		if err := c.connect(); err != nil {
			return err
		}
		return c.readCluster(ctx, inputs)
	}
	for _, file := range c.files {
		if err := readFiles(in, file, inputs); err != nil {
			return fmt.Errorf("--filename: %w", err)
		}
	}
	return nil
}

// write writes the objects and the report.
func (c *importCommand) write(out, notes io.Writer, plan *nodesets.Plan) error {
	write := func() error { return nodesets.Print(out, plan.Objects) }
	if c.output != "" {
		write = func() error { return nodesets.Write(c.output, plan.Objects) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("writing the objects: %w", err)
	}
	if c.report == "" {
		return nodesets.Report(notes, plan.Findings)
	}
	text := &bytes.Buffer{}
	if err := nodesets.Report(tame{text}, plan.Findings); err != nil {
		return err
	}
	if err := os.WriteFile(c.report, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// linesOf returns the lines of a file; none of no file.
func linesOf(name string) (map[string]bool, error) {
	lines := map[string]bool{}
	if name == "" {
		return lines, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines[scanner.Text()] = true
	}
	return lines, scanner.Err()
}

// readFiles reads a file, the YAML and JSON files of a directory and those below it, or
// standard input.
func readFiles(in io.Reader, name string, inputs *nodesets.Inputs) error {
	if name == "-" {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		return inputs.Read("standard input", text)
	}
	return filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || path != name && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // The person names the directory.
		if err != nil {
			return err
		}
		return inputs.Read(path, text)
	})
}

// readCluster reads the objects of the namespace, and the ConfigMaps that they name.
func (c *importCommand) readCluster(ctx context.Context, inputs *nodesets.Inputs) error {
	for _, kind := range []string{nodesets.NodeSetKind, nodesets.ServiceKind, nodesets.DeploymentKind} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: nodesets.Group, Version: nodesets.Version, Kind: kind + "List"})
		err := c.client.List(ctx, list, client.InNamespace(c.namespace))
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the cluster has no kind %s: openstack-operator is not installed there", kind)
		}
		if err != nil {
			return fmt.Errorf("listing %s in namespace %s: %w", kind, c.namespace, err)
		}
		for i := range list.Items {
			if err := readObject(inputs, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	for _, name := range inputs.ConfigMaps() {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, found)
		if apierrors.IsNotFound(err) {
			continue // which the report says
		}
		if err != nil {
			return err
		}
		if err := readObject(inputs, found); err != nil {
			return err
		}
	}
	return nil
}

// readObject adds an object of the cluster, as it is in a file of kubectl get -o yaml, without
// what only the API server needs.
func readObject(inputs *nodesets.Inputs, object *unstructured.Unstructured) error {
	object.SetManagedFields(nil)
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return inputs.Read("cluster", text)
}
