package nova

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestForbidden(t *testing.T) {
	tests := map[string]struct {
		before, after, recorded string
		want                    bool
	}{
		"no cell before and after":                          {"", "", "", false},
		"first cell":                                        {"", "a", "", false},
		"first cell, as recorded":                           {"", "a", "a", false},
		"first cell, but recorded in another":               {"", "b", "a", true},
		"no cell by annotation, recorded in one":            {"", "", "a", false},
		"same cell":                                         {"a", "a", "", false},
		"same cell, as recorded":                            {"a", "a", "a", false},
		"same cell, recorded in another, is no change":      {"b", "b", "a", false},
		"another cell":                                      {"a", "b", "", true},
		"another cell than recorded":                        {"a", "b", "a", true},
		"a cell lost":                                       {"a", "", "", true},
		"a recorded cell lost":                              {"a", "", "a", true},
		"back to the recorded cell":                         {"b", "a", "a", false},
		"from a wrong cell to another that is wrong":        {"b", "c", "a", true},
		"a wrong cell lost while the node is in a recorded": {"b", "", "a", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := cellChange{node: "n", before: tt.before, after: tt.after, recorded: tt.recorded}
			if got := c.forbidden(); got != tt.want {
				t.Errorf("forbidden(before %q, after %q, recorded %q) = %v, want %v", tt.before, tt.after, tt.recorded, got, tt.want)
			}
		})
	}
}

func TestFixedAnnotation(t *testing.T) {
	tests := map[string]struct {
		before, after string
		want          bool
	}{
		"never set":          {"", "", false},
		"set first":          {"", "a", false},
		"kept":               {"a", "a", false},
		"changed":            {"a", "b", true},
		"removed or emptied": {"a", "", true},
	}
	for name, tt := range tests {
		if got := fixedAnnotation(tt.before, tt.after); got != tt.want {
			t.Errorf("%s: fixedAnnotation(%q, %q) = %v, want %v", name, tt.before, tt.after, got, tt.want)
		}
	}
}

func TestNodeErrors(t *testing.T) {
	const annotation = "metadata.annotations[nova.openstack.org/cell]"
	tests := map[string]struct {
		change           cellChange
		fixed, annotated bool
		want             string
	}{
		"an allowed change has none": {cellChange{node: "n", after: "a"}, false, true, ""},
		"an annotation is blamed with its value": {
			cellChange{node: "n", before: "a", after: "b"}, true, true,
			annotation + `: Invalid value: "b": node n is in cell a and cannot be moved to cell b: nova cannot move a compute between cells; keep the cell, or delete the node, wait until its NovaExternalCompute no longer exists, and create it again`,
		},
		"a role is blamed with its name": {
			cellChange{node: "n", before: "a", after: "b", recorded: "a"}, false, false,
			`spec.role: Invalid value: "r": node n is in cell a and cannot be moved to cell b: nova cannot move a compute between cells; keep the cell, or delete the node, wait until its NovaExternalCompute no longer exists, and create it again`,
		},
		"a record is named where nothing else shows the cell": {
			cellChange{node: "n", after: "b", recorded: "a"}, false, true,
			annotation + `: Invalid value: "b": node n is in cell a and cannot be moved to cell b: its NovaExternalCompute is in that cell; keep the cell, or delete NovaExternalCompute n first and wait until its host is cleaned up`,
		},
		"a lost cell says where one could come from": {
			cellChange{node: "n", before: "a"}, false, false,
			`spec.role: Invalid value: "r": node n is in cell a and cannot be moved to no cell (neither the node nor a role that exists has the annotation): nova cannot move a compute between cells; keep the cell, or delete the node, wait until its NovaExternalCompute no longer exists, and create it again`,
		},
		"a removed annotation that the role repeats is missed": {
			cellChange{node: "n", before: "a", after: "a"}, true, true,
			annotation + `: Invalid value: "": the cell of a node cannot be changed or removed once it is set on the node: restore the annotation, or delete the node and create it again`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			value := tt.change.after
			if tt.fixed && tt.change.before == tt.change.after {
				value = ""
			}
			if diff := cmp.Diff(tt.want, text(nodeErrors(tt.change, tt.fixed, tt.annotated, value, "r"))); diff != "" {
				t.Errorf("nodeErrors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoleErrors(t *testing.T) {
	tests := map[string]struct {
		before, after string
		changes       []cellChange
		want          string
	}{
		"first cell of nodes without one": {"", "a", []cellChange{{node: "n", after: "a"}}, ""},
		"changed without nodes": {"a", "b", nil,
			annotationPath.String() + `: Invalid value: "b": is a and can be neither changed nor removed: restore it, and use another role for nodes of another cell`},
		"set over nodes in other cells": {"", "c",
			[]cellChange{{node: "y", after: "c", recorded: "b"}, {node: "z", after: "c", recorded: "c"}, {node: "x", after: "c", recorded: "a"}},
			annotationPath.String() + `: Invalid value: "c": cannot move nodes x (in cell a), y (in cell b) to cell c: nova cannot move a compute between cells; keep the cell of these nodes, or use another role for nodes of the new cell`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, text(roleErrors(tt.before, tt.after, tt.changes))); diff != "" {
				t.Errorf("roleErrors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoleErrorsNameTenNodesOfThousands(t *testing.T) {
	var changes []cellChange
	for i := range 4000 {
		changes = append(changes, cellChange{node: fmt.Sprintf("n-%04d", i), before: "a", after: "b"})
	}
	got := text(roleErrors("a", "b", changes))
	if !strings.Contains(got, "n-0009 (in cell a) and 3990 more to cell b") || strings.Contains(got, "n-0010") {
		t.Errorf("want ten nodes and the number of the rest, got %s", got)
	}
}

func text(errs field.ErrorList) string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return strings.Join(all, "\n")
}
