package nova

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// maxNamed is how many nodes an error names.
const maxNamed = 10

var (
	annotationPath = field.NewPath("metadata", "annotations").Key(novav1.CellAnnotation)
	rolePath       = field.NewPath("spec", "role")
)

// cellChange is what a write does to the cell of one node. An empty cell is none.
type cellChange struct {
	node string
	// before and after are the effective cells by annotation.
	before, after string
	// recorded is the cell of the NovaExternalCompute of the node.
	recorded string
}

// current returns the cell that the node is in before the write.
func (c cellChange) current() string {
	if c.recorded != "" {
		return c.recorded
	}
	return c.before
}

// forbidden reports whether the write takes the node out of its cell. A write
// that leaves the effective cell alone is allowed even if it disagrees with the
// record, and so is one that restores the agreement.
func (c cellChange) forbidden() bool {
	return c.after != c.before && c.current() != "" && c.after != c.current()
}

// forbiddenChanges returns the changes that are not allowed, sorted by node.
func forbiddenChanges(changes []cellChange) []cellChange {
	found := slices.DeleteFunc(slices.Clone(changes), func(c cellChange) bool { return !c.forbidden() })
	slices.SortFunc(found, func(a, b cellChange) int { return strings.Compare(a.node, b.node) })
	return found
}

// fixedAnnotation reports whether an update changes or removes an annotation that
// is set. An empty value gives no cell and so is not set.
func fixedAnnotation(before, after string) bool { return before != "" && before != after }

// checkCellName refuses what can be the name of no NovaCell: since the
// annotation cannot be changed later, the mistake would be there to stay.
func checkCellName(cell string) field.ErrorList {
	if cell == "" || len(validation.IsDNS1123Subdomain(cell)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(annotationPath, cell, `is not a valid name of a NovaCell: set the name of one in this namespace, for example nova-cell1`)}
}

// nodeErrors turns what a write does to the cell of one node into errors.
// fixed reports whether it changes an annotation that is set, annotated whether
// the annotation changes at all, as opposed to the role. Annotation and role are
// the new ones.
func nodeErrors(c cellChange, fixed, annotated bool, annotation, role string) field.ErrorList {
	path, value := rolePath, role
	if annotated {
		path, value = annotationPath, annotation
	}
	switch {
	case c.forbidden():
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("node %s is in cell %s and cannot be moved to %s: %s",
			c.node, c.current(), cellOrNone(c.after), c.remedy()))}
	case fixed:
		return field.ErrorList{field.Invalid(path, value, "the cell of a node cannot be changed or removed once it is set on the node: restore the annotation, or delete the node and create it again")}
	}
	return nil
}

// remedy says how the node can get to the new cell after all.
func (c cellChange) remedy() string {
	if c.recorded != "" && c.before != c.recorded {
		return fmt.Sprintf("its NovaExternalCompute is in that cell; keep the cell, or delete NovaExternalCompute %s first and wait until its host is cleaned up", c.node)
	}
	return "nova cannot move a compute between cells; keep the cell, or delete the node, wait until its NovaExternalCompute no longer exists, and create it again"
}

// roleErrors turns what a write to a role does into errors: before and after are
// the annotations of the role, changes what happens to its nodes.
func roleErrors(before, after string, changes []cellChange) field.ErrorList {
	found := forbiddenChanges(changes)
	switch {
	case len(found) > 0:
		return field.ErrorList{field.Invalid(annotationPath, after, fmt.Sprintf("cannot move %s to %s: nova cannot move a compute between cells; keep the cell of these nodes, or use another role for nodes of the new cell",
			nodesAndCells(found), cellOrNone(after)))}
	case fixedAnnotation(before, after):
		return field.ErrorList{field.Invalid(annotationPath, after, fmt.Sprintf("is %s and can be neither changed nor removed: restore it, and use another role for nodes of another cell", before))}
	}
	return nil
}

// nodesAndCells names the nodes with the cells that they are in.
func nodesAndCells(changes []cellChange) string {
	var nodes []string
	for _, c := range changes {
		nodes = append(nodes, fmt.Sprintf("%s (in cell %s)", c.node, c.current()))
	}
	return "nodes " + names.List(nodes, maxNamed)
}

// cellOrNone words the new cell. Without one the person may not see why.
func cellOrNone(cell string) string {
	if cell == "" {
		return "no cell (neither the node nor a role that exists has the annotation)"
	}
	return "cell " + cell
}
