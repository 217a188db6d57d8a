package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/topologymap"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// defaultKey is the label of nodes that Kubernetes reserves for zones.
const defaultKey = corev1.LabelTopologyZone

// picture is what both commands print.
type picture interface {
	Text(io.Writer) error
	SVG(io.Writer) error
}

// session is one call of a command.
type session struct {
	connection
	key, output string
}

func newTopology(flags *genericclioptions.ConfigFlags) *cobra.Command {
	s := &session{connection: connection{flags: flags}}
	cmd := &cobra.Command{Use: "topology", Short: "Show current and predicted pod placement"}
	cmd.PersistentFlags().StringVar(&s.key, "key", "", "label of the nodes whose values are the domains (default: the most frequent topologyKey of the Topologies in the namespace, else "+defaultKey+")")
	cmd.PersistentFlags().StringVarP(&s.output, "output", "o", "text", "text, json or svg")
	cmd.AddCommand(newMap(s), newSimulate(s))
	return cmd
}

func newMap(s *session) *cobra.Command {
	var selector string
	cmd := &cobra.Command{
		Use: "map", Short: "Draw the domains with their nodes and pods, and the skew of each constraint", Args: cobra.NoArgs,
		Example: "  kubectl edpm topology map -n openstack\n  kubectl edpm topology map -n openstack -l service=glance -o svg > map.svg",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.showMap(cmd.Context(), cmd.OutOrStdout(), selector)
		},
	}
	cmd.Flags().StringVarP(&selector, "selector", "l", "service", "which pods to draw")
	return cmd
}

func (s *session) showMap(ctx context.Context, out io.Writer, selector string) error {
	chosen, err := labels.Parse(selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	snapshot, err := s.begin(ctx)
	if err != nil {
		return err
	}
	m, err := topologymap.New(snapshot, s.key, func(p *corev1.Pod) bool {
		return p.Namespace == s.namespace && chosen.Matches(labels.Set(p.Labels))
	})
	if err != nil {
		return err
	}
	return s.print(out, m)
}

// begin connects, reads the cluster, and finds the key of the domains.
func (s *session) begin(ctx context.Context) (placement.Snapshot, error) {
	if !slices.Contains([]string{"text", "json", "svg"}, s.output) {
		return placement.Snapshot{}, fmt.Errorf("--output %q is neither text, json nor svg", s.output)
	}
	if err := s.connect(); err != nil {
		return placement.Snapshot{}, err
	}
	if err := s.chooseKey(ctx); err != nil {
		return placement.Snapshot{}, err
	}
	return placement.Read(ctx, s.client)
}

// chooseKey takes the key that most constraints of the namespace have.
func (s *session) chooseKey(ctx context.Context) error {
	if s.key != "" {
		return nil
	}
	list := &topologyv1.TopologyList{}
	if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil && !isMissingKind(err) {
		return fmt.Errorf("listing the Topologies of namespace %s: %w", s.namespace, err)
	}
	s.key = mostNamed(list.Items)
	return nil
}

// mostNamed is the topology key that most constraints have, of several the
// first in the alphabet.
func mostNamed(topologies []topologyv1.Topology) string {
	times := map[string]int{}
	for _, t := range topologies {
		for _, c := range t.Spec.TopologySpreadConstraints {
			times[c.TopologyKey]++
		}
	}
	best := defaultKey
	for _, key := range slices.Sorted(maps.Keys(times)) {
		if times[key] > times[best] {
			best = key
		}
	}
	return best
}

func (s *session) print(out io.Writer, p picture) error {
	switch s.output {
	case "svg":
		return p.SVG(out)
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(p)
	default:
		return p.Text(out)
	}
}

// statefulSets returns those of a service, or of one of its parts: for example
// glance, glance/default.
func (s *session) statefulSets(ctx context.Context, service, part string) ([]appsv1.StatefulSet, error) {
	list := &appsv1.StatefulSetList{}
	if err := s.client.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{"service": service}); err != nil {
		return nil, fmt.Errorf("listing the StatefulSets of service %s: %w", service, err)
	}
	var sets []appsv1.StatefulSet
	var parts []string
	for _, set := range list.Items {
		names := []string{set.Name, set.Labels["glanceAPI"], set.Labels["owner"]}
		parts = append(parts, set.Name)
		if part == "" || slices.Contains(names, part) {
			sets = append(sets, set)
		}
	}
	switch {
	case len(list.Items) == 0:
		return nil, s.noSets(ctx, service)
	case len(sets) == 0:
		return nil, fmt.Errorf("--for: no StatefulSet of service %q in namespace %s is named or labelled %q; there are: %v", service, s.namespace, part, parts)
	case !slices.ContainsFunc(sets, func(set appsv1.StatefulSet) bool { return ptr.Deref(set.Spec.Replicas, 1) > 0 }):
		return nil, fmt.Errorf("--for: %s of namespace %s has no pods to place (replicas: 0): raise its replicas first", service, s.namespace)
	}
	return sets, nil
}

// noSets says that a service has no StatefulSet, and which ones do.
func (s *session) noSets(ctx context.Context, service string) error {
	all := &appsv1.StatefulSetList{}
	if err := s.client.List(ctx, all, client.InNamespace(s.namespace), client.HasLabels{"service"}); err != nil {
		return fmt.Errorf("listing the StatefulSets of namespace %s: %w", s.namespace, err)
	}
	services := map[string]bool{}
	for _, set := range all.Items {
		services[set.Labels["service"]] = true
	}
	if len(services) == 0 {
		return fmt.Errorf("--for: no StatefulSet of service %q is in namespace %s, nor of any other service: name the namespace of the services with -n, or create %s first", service, s.namespace, service)
	}
	return fmt.Errorf("--for: no StatefulSet of service %q is in namespace %s; the services there are: %v", service, s.namespace, slices.Sorted(maps.Keys(services)))
}
