package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// Problem is one cause that keeps pods from their place.
type Problem struct {
	// Reason is one of topologyv1.PlacementReasons.
	Reason condition.Reason `json:"reason"`
	// Pods that it is about, by name.
	Pods []string `json:"pods,omitempty"`
	// Node, if it is about a single one.
	Node string `json:"node,omitempty"`
	// Volume is the name of a PersistentVolume.
	Volume string `json:"volume,omitempty"`
	// Key of a node label.
	Key string `json:"key,omitempty"`
	// ByChance reports that the pods fit for some of the choices that kube-scheduler
	// makes between nodes that score alike.
	ByChance bool `json:"byChance,omitempty"`
	// Preference reports that it is about a rule that need not hold: that it has no
	// effect can be meant, where clusters differ.
	Preference bool `json:"preference,omitempty"`
	// Message says what is wrong, and Remedy what to do.
	Message string `json:"message"`
	Remedy  string `json:"remedy"`

	// For remedies: claim and size of the volume, how many domains there are, and which
	// plugins of the scheduler refuse nodes.
	claim, size string
	domains     int
	plugins     string
}

// maxDescribed bounds how many problems a condition spells out.
const maxDescribed = 3

// Describe returns the message of a condition about problems: which pods, what is
// wrong, and what to do.
func Describe(problems []Problem) string {
	var texts []string
	for _, p := range problems[:min(len(problems), maxDescribed)] {
		texts = append(texts, fmt.Sprintf("%s: %s. To fix it: %s.",
			names.List(slices.Sorted(slices.Values(p.Pods)), names.Few), strings.TrimRight(p.Message, ". "), strings.TrimRight(p.Remedy, ". ")))
	}
	if more := len(problems) - maxDescribed; more > 0 {
		texts = append(texts, fmt.Sprintf("And %d more.", more))
	}
	return strings.Join(texts, " ")
}

// merge joins the pods of problems that have one cause, and sorts
// by how telling the reason is. The message is that of the first pod.
func merge(problems []Problem) []Problem {
	type cause struct {
		reason, node, volume, key, remedy, plugins string
		byChance                                   bool
	}
	var merged []Problem
	at := map[cause]int{}
	for _, p := range problems {
		c := cause{string(p.Reason), p.Node, p.Volume, p.Key, p.Remedy, p.plugins, p.ByChance}
		if i, ok := at[c]; ok {
			merged[i].Pods = append(merged[i].Pods, p.Pods...)
			continue
		}
		at[c] = len(merged)
		merged = append(merged, p)
	}
	slices.SortStableFunc(merged, func(a, b Problem) int {
		return slices.Index(topologyv1.PlacementReasons, a.Reason) - slices.Index(topologyv1.PlacementReasons, b.Reason)
	})
	return merged
}

// Preferences separates problems from those that are about rules that need not hold.
func Preferences(all []Problem) (problems, preferences []Problem) {
	return filter(all, func(p Problem) bool { return !p.Preference }), filter(all, func(p Problem) bool { return p.Preference })
}

func collectNames[T any](all []T, name func(T) string) []string {
	result := make([]string, len(all))
	for i := range all {
		result[i] = name(all[i])
	}
	return result
}
