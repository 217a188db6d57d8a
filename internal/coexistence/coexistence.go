// Package coexistence decides which operators of edpm-operators can run in a cluster
// that may have other operators with the same kinds: nova-operator,
// glance-operator, infra-operator, ocs-operator and those that came before them. It watches
// the definitions that decide it, and reports on the Pod of the manager what runs.
package coexistence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/kinds"
)

// needs of an operator in a cluster, in addition to its own kinds, which no other operator
// may manage.
type needs struct {
	// operators that it cannot work without: it makes their objects, or waits for
	// what they say. They may run in another manager.
	operators []string
	// reads are definitions of kinds that it reads, whoever manages them. Of a
	// Topology, that of infra-operator has the same version and the same fields.
	reads []string
	// watches are definitions of kinds that it watches where they exist.
	watches []string
}

var topologies = kinds.Definitions(kinds.Of("topology"))

// needsOf is what each operator needs.
var needsOf = map[string]needs{
	"ansibleee": {reads: topologies},
	"core":      {operators: []string{"glance", "nova"}, reads: topologies},
	"dataplane": {operators: []string{"ansibleee"}, reads: topologies},
	"edpm":      {operators: []string{"ansibleee", "dataplane"}, reads: topologies},
	"glance":    {reads: topologies},
	"neutron":   {operators: []string{"ansibleee", "dataplane"}, reads: topologies},
	"nova":      {operators: []string{"ansibleee", "dataplane"}, reads: topologies},
	"ocs":       {},
	"topology":  {watches: kinds.Definitions(kinds.UsingTopologies())},
}

// owns returns the definitions of the kinds of an operator.
func owns(operator string) []string { return kinds.Definitions(kinds.Of(operator)) }

// Definitions are the resource definitions of a cluster: by name whether one is
// that of edpm-operators. Those that do not exist are omitted.
type Definitions map[string]bool

// Ours reports by its labels whether a resource definition is that of edpm-operators.
func Ours(labels map[string]string) bool { return labels[common.PartOfLabel] == common.PartOf }

// Decision says which operators run.
type Decision struct {
	// Running operators, in the order in which they were chosen.
	Running []string
	// LeftOut are the others of those that were chosen.
	LeftOut []LeftOut
	// Watched are the definitions that exist of those that running operators do
	// without.
	Watched []string
}

// LeftOut is an operator that does not run although it was chosen.
type LeftOut struct {
	Operator string
	// Reason is ForeignDefinition or MissingDefinition.
	Reason condition.Reason
	// Message says which definition it is, and the remedy.
	Message string
}

// Names returns the names of the definitions on which it depends whether the
// operators run, sorted.
func Names(operators []string) []string {
	var names []string
	for _, o := range operators {
		n := needsOf[o]
		names = slices.Concat(names, owns(o), n.reads, n.watches, Names(n.operators))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Decide returns which of the chosen operators run: those whose kinds are their
// own, and that find what else they need.
func Decide(chosen []string, found Definitions) Decision {
	var d Decision
	for _, operator := range chosen {
		if out := found.leaves(operator); out != nil {
			d.LeftOut = append(d.LeftOut, *out)
		} else {
			d.Running = append(d.Running, operator)
			d.Watched = append(d.Watched, found.existing(needsOf[operator].watches)...)
		}
	}
	return d
}

// existing returns those of the definitions that exist, whoever's they are.
func (found Definitions) existing(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, exists := found[name]
		return !exists
	})
}

// leaves returns why an operator is disabled, nil if it is not.
func (found Definitions) leaves(operator string) *LeftOut {
	n := needsOf[operator]
	for _, name := range owns(operator) {
		if ours, exists := found[name]; exists && !ours {
			return &LeftOut{operator, common.ForeignDefinitionReason, fmt.Sprintf(
				"definition %s belongs to another operator: set --operators without %s, or remove that operator and its definition and apply the definition of this project", name, operator)}
		}
	}
	for _, name := range slices.Concat(owns(operator), n.reads) {
		if _, exists := found[name]; !exists {
			return &LeftOut{operator, common.MissingDefinitionReason, fmt.Sprintf("definition %s does not exist: apply config/crd", name)}
		}
	}
	for _, other := range n.operators {
		if out := found.leaves(other); out != nil {
			return &LeftOut{operator, out.Reason, fmt.Sprintf("it needs operator %s, which is disabled: %s", other, out.Message)}
		}
	}
	return nil
}

// Condition returns what the decision says of the manager: the status, reason and
// message of the condition OperatorsRunning.
func (d Decision) Condition() (isTrue bool, reason condition.Reason, message string) {
	if len(d.LeftOut) == 0 {
		return true, common.AllRunningReason, "Running: " + strings.Join(d.Running, ", ")
	}
	parts := []string{"Running: " + cmp.Or(strings.Join(d.Running, ", "), "none")}
	reason = common.MissingDefinitionReason
	for _, out := range d.LeftOut {
		parts = append(parts, fmt.Sprintf("%s is disabled: %s", out.Operator, out.Message))
		if out.Reason == common.ForeignDefinitionReason {
			reason = out.Reason
		}
	}
	return false, reason, strings.Join(parts, "; ")
}
