package topology

import (
	"cmp"
	"context"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// maxNamed is how many consumers a condition names.
const maxNamed = 10

// consumers is the phase that shows who uses the Topology, and with how many pods.
func (s *scope) consumers(context.Context) error {
	all := s.consumersWithPods()
	status := &s.topology.Status
	status.ConsumerCount = int32(len(all))
	status.Consumers = all[:min(len(all), topologyv1.MaxConsumers)]
	switch {
	case !s.topology.DeletionTimestamp.IsZero():
		status.Conditions.MarkFalse(topologyv1.ConsumersReadyCondition, topologyv1.InUseReason, condition.SeverityWarning,
			"Deleting: held by %s. It is removed once they refer to another Topology, or to none, and their pods are replaced", s.holders(all))
	case len(all) == 0:
		status.Conditions.MarkTrue(topologyv1.ConsumersReadyCondition, "No object refers to the Topology")
	default:
		status.Conditions.MarkTrue(topologyv1.ConsumersReadyCondition, "Used by %d objects", len(all))
	}
	return nil
}

// consumersWithPods returns the consumers by kind and name.
func (s *scope) consumersWithPods() []topologyv1.Consumer {
	pods := map[topology.Consumer]int32{}
	for _, pod := range s.own {
		for _, c := range topology.ParseConsumers(pod) {
			pods[c]++
		}
	}
	var all []topologyv1.Consumer
	for c := range s.used {
		all = append(all, topologyv1.Consumer{Kind: c.Kind, Name: c.Name, Pods: pods[c]})
	}
	slices.SortFunc(all, func(a, b topologyv1.Consumer) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// holders names what keeps a deleted Topology: consumers, and finalizers of others.
func (s *scope) holders(all []topologyv1.Consumer) string {
	var holders []string
	for _, c := range all {
		holders = append(holders, c.Kind+"/"+c.Name)
	}
	for _, f := range s.topology.Finalizers {
		if !topology.IsOurs(f) {
			holders = append(holders, "finalizer "+f)
		}
	}
	return names.List(holders, maxNamed)
}
