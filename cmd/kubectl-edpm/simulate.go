package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/topologymap"
)

func newSimulate(s *session) *cobra.Command {
	var file, target string
	cmd := &cobra.Command{
		Use: "simulate", Short: "Draw the placement of pods before and after a Topology, without changing anything", Args: cobra.NoArgs,
		Long:    "Draw where the pods of a service are and where they would be with a Topology, as\npredicted by the code of kube-scheduler. Nothing is written. Fails if a pod would be unschedulable.",
		Example: "  kubectl edpm topology simulate -n openstack -f topo.yaml --for glance/default",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.simulate(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), file, target)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the Topology, - for standard input")
	cmd.Flags().StringVar(&target, "for", "", "service, or service/part, that would use it, for example glance/default")
	for _, name := range []string{"filename", "for"} {
		cobra.CheckErr(cmd.MarkFlagRequired(name))
	}
	return cmd
}

func (s *session) simulate(ctx context.Context, in io.Reader, out io.Writer, file, target string) error {
	t, err := readTopology(in, file)
	if err != nil {
		return err
	}
	if s.key == "" && len(t.Spec.TopologySpreadConstraints) > 0 {
		s.key = t.Spec.TopologySpreadConstraints[0].TopologyKey
	}
	snapshot, err := s.begin(ctx)
	if err != nil {
		return err
	}
	service, part, _ := strings.Cut(target, "/")
	sets, err := s.statefulSets(ctx, service, part)
	if err != nil {
		return err
	}
	result, err := topologymap.Simulate(ctx, snapshot, s.key, t, sets)
	if err != nil {
		return err
	}
	if err := s.print(out, result); err != nil {
		return err
	}
	if n := len(result.Pending); n > 0 {
		return fmt.Errorf("%d pods would be unschedulable", n)
	}
	return nil
}

// readTopology reads one Topology. An unknown field is an error, as with
// kubectl --validate=strict.
func readTopology(in io.Reader, file string) (*topologyv1.Topology, error) {
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		read = func() ([]byte, error) { return io.ReadAll(in) }
	}
	text, err := read()
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	t := &topologyv1.Topology{}
	if err := yaml.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("--filename %s: %w", file, err)
	}
	if t.Kind != "Topology" || t.GroupVersionKind().GroupVersion() != topologyv1.GroupVersion {
		return nil, fmt.Errorf("--filename %s: has a %s %s; give one Topology of %s", file, t.APIVersion, t.Kind, topologyv1.GroupVersion)
	}
	if len(t.Spec.TopologySpreadConstraint) > 0 {
		return nil, fmt.Errorf("--filename %s: spec.topologySpreadConstraint: there is no such field: write topologySpreadConstraints", file)
	}
	if err := yaml.UnmarshalStrict(text, t); err != nil {
		return nil, fmt.Errorf("--filename %s: %w", file, err)
	}
	return t, nil
}
