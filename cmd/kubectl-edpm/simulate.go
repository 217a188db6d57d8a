package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
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
	if text, err = onlyDocument(text); err != nil {
		return nil, fmt.Errorf("--filename %s: %w", file, err)
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

// onlyDocument returns the document of a file that has one.
func onlyDocument(text []byte) ([]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var found [][]byte
	var names []string
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		object := &metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal(document, object); err != nil {
			return nil, err
		}
		if content := map[string]any{}; yaml.Unmarshal(document, &content) == nil && len(content) == 0 {
			continue // only comments
		}
		found = append(found, document)
		names = append(names, object.Kind+" "+object.Name)
	}
	switch len(found) {
	case 0:
		return nil, errors.New("is empty: give a Topology")
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("has %d documents (%s), of which one is simulated at a time: give each Topology in a file of its own", len(found), strings.Join(names, ", "))
}
