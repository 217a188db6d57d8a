// Package conditions is the one list of what the conditions of edpm-operators can
// say: every condition and reason, what it means and what helps. The tables in
// docs/ are made from it, and kubectl edpm explain prints it.
package conditions

import (
	"cmp"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
)

// Reason is why a condition is not True.
type Reason struct {
	// Name of the reason, as in the condition.
	Name condition.Reason `json:"name"`
	// Means says what is the matter.
	Means string `json:"means"`
	// Remedy says what to do.
	Remedy string `json:"remedy"`
}

// Condition of a kind.
type Condition struct {
	// Type of the condition.
	Type condition.Type `json:"type"`
	// Means says what is true when it is True.
	Means string `json:"means"`
	// Reasons why it is not True.
	Reasons []Reason `json:"reasons,omitempty"`
	// Like names the table that has more reasons of this condition.
	Like string `json:"like,omitempty"`
}

// Table is what one or several kinds have in common.
type Table struct {
	// Name of the table, by which a page has it.
	Name string
	// Title of a table that others refer to.
	Title string
	// Kinds whose objects have these conditions.
	Kinds []string
	// Link to the table, relative to docs/.
	Link string
	// Conditions in the order of the phases.
	Conditions []Condition
}

// Match is what the name of a condition or a reason can stand for.
type Match struct {
	// Kinds whose objects say so.
	Kinds []string `json:"kinds"`
	// Condition, with the reasons that were asked for.
	Condition Condition `json:"condition"`
	// Page of the documentation.
	Page string `json:"page"`
}

// Find returns everything that the name can stand for: all reasons of a
// condition, or each condition that has the reason. Upper and lower case are
// the same. It returns nothing for a name that no condition and no reason has.
func Find(name string) []Match {
	var found []Match
	for _, t := range Tables() {
		for _, c := range t.Conditions {
			if !strings.EqualFold(string(c.Type), name) {
				c.Reasons = slices.DeleteFunc(slices.Clone(c.Reasons), func(r Reason) bool { return !strings.EqualFold(string(r.Name), name) })
				if len(c.Reasons) == 0 {
					continue
				}
			}
			found = append(found, Match{t.Kinds, c, t.Link})
		}
	}
	return found
}

// Names returns every condition and reason, sorted.
func Names() []string {
	var names []string
	for _, t := range Tables() {
		for _, c := range t.Conditions {
			names = append(names, string(c.Type))
			for _, r := range c.Reasons {
				names = append(names, string(r.Name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// withMeaning returns the condition as it is for a kind.
func (c Condition) withMeaning(text string) Condition {
	c.Means = text
	return c
}

// withReasons returns the condition with more reasons.
func (c Condition) withReasons(reasons ...Reason) Condition {
	c.Reasons = slices.Concat(c.Reasons, reasons)
	return c
}

// withTable returns the condition with the reasons of a table.
func (c Condition) withTable(table string) Condition {
	c.Like = table
	return c
}

// withMeaning returns the reason as it is for a condition of a kind; an empty text changes nothing.
func (r Reason) withMeaning(text string) Reason {
	r.Means = cmp.Or(text, r.Means)
	return r
}

// withRemedy returns the reason with what to do for a condition of a kind.
func (r Reason) withRemedy(text string) Reason {
	r.Remedy = text
	return r
}
