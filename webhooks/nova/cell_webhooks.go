package nova

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

// Paths of the cell rule. The kinds belong to the data plane, which has its own
// webhooks for them and does not know the meaning of the annotation (seeds/004).
const (
	NodeCellPath = "/validate-nova-cell-openstackdataplanenode"
	RoleCellPath = "/validate-nova-cell-openstackdataplanerole"
)

var (
	nodeKind = dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneNode").GroupKind()
	roleKind = dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneRole").GroupKind()
)

// SetupCellRuleWithManager serves the cell rule. The reader must read from the
// API server: mgr.GetAPIReader().
func SetupCellRuleWithManager(mgr ctrl.Manager, reader client.Reader) error {
	cells := cellReader{reader, mgr.GetClient()}
	err := ctrl.NewWebhookManagedBy(mgr, &dataplanev1.OpenStackDataPlaneNode{}).
		WithValidator(nodeCell{cells}).WithValidatorCustomPath(NodeCellPath).Complete()
	if err != nil {
		return err
	}
	return ctrl.NewWebhookManagedBy(mgr, &dataplanev1.OpenStackDataPlaneRole{}).
		WithValidator(roleCell{cells}).WithValidatorCustomPath(RoleCellPath).Complete()
}

// nodeCell keeps nodes in their cells when the nodes are written.
type nodeCell struct{ cells cellReader }

// ValidateCreate refuses a node whose host is still recorded in another cell.
func (v nodeCell) ValidateCreate(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode) (admission.Warnings, error) {
	return v.validate(ctx, &dataplanev1.OpenStackDataPlaneNode{}, node)
}

// ValidateUpdate refuses to change or remove the annotation, and to change the
// effective cell by role or annotation.
func (v nodeCell) ValidateUpdate(ctx context.Context, old, node *dataplanev1.OpenStackDataPlaneNode) (admission.Warnings, error) {
	return v.validate(ctx, old, node)
}

// ValidateDelete allows everything.
func (nodeCell) ValidateDelete(context.Context, *dataplanev1.OpenStackDataPlaneNode) (admission.Warnings, error) {
	return nil, nil
}

func (v nodeCell) validate(ctx context.Context, old, node *dataplanev1.OpenStackDataPlaneNode) (admission.Warnings, error) {
	change, err := v.change(ctx, old, node)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	before, after := old.Annotations[novav1.CellAnnotation], node.Annotations[novav1.CellAnnotation]
	annotated := before != after || hasAnnotation(old) != hasAnnotation(node)
	errs := nodeErrors(change, fixedAnnotation(before, after), annotated, after, node.Spec.Role)
	if annotated {
		errs = append(errs, checkCellName(after)...)
	}
	if len(errs) > 0 || change.after == change.before {
		return nil, hook.Invalid(nodeKind, node.Name, errs)
	}
	return warn(v.cells.warnings(ctx, node.Namespace, change.after))
}

// change reads what the write does to the cell of the node. An empty old node
// stands for none.
func (v nodeCell) change(ctx context.Context, old, node *dataplanev1.OpenStackDataPlaneNode) (change cellChange, err error) {
	change.node = node.Name
	if old.Name == "" {
		change.recorded, change.after, err = v.arrival(ctx, node)
		return change, err
	}
	if change.before, err = v.effective(ctx, node.Namespace, old); err != nil {
		return change, err
	}
	if change.after, err = v.effective(ctx, node.Namespace, node); err != nil {
		return change, err
	}
	// Read last: the record is what counts, so it should be the freshest.
	change.recorded, err = v.cells.recorded(ctx, node.Namespace, node.Name)
	return change, err
}

// arrival returns the cell in which a node that is created is recorded, and the effective
// one. Where none is recorded the node may be in any, and the effective one is only
// warned of: then the role may be that of the cache, whose annotation stays as it is.
func (v nodeCell) arrival(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode) (recorded, after string, err error) {
	if recorded, err = v.cells.recorded(ctx, node.Namespace, node.Name); err != nil {
		return "", "", err
	}
	if recorded == "" {
		known, err := nodeCell{cellReader{Reader: v.cells.known}}.effective(ctx, node.Namespace, node)
		if err == nil && known != "" {
			return "", known, nil
		}
	}
	after, err = v.effective(ctx, node.Namespace, node)
	return recorded, after, err
}

// effective reads the role of a node that has no annotation itself.
func (v nodeCell) effective(ctx context.Context, namespace string, node *dataplanev1.OpenStackDataPlaneNode) (string, error) {
	if hasAnnotation(node) {
		return node.Annotations[novav1.CellAnnotation], nil
	}
	role, err := v.cells.role(ctx, namespace, node.Spec.Role)
	return inherit.Annotation(node, role, novav1.CellAnnotation), err
}

// roleCell keeps nodes in their cells when their role is written.
type roleCell struct{ cells cellReader }

// ValidateCreate refuses a role that is created after its nodes, or again, with
// a cell other than the one that hosts are recorded in.
func (v roleCell) ValidateCreate(ctx context.Context, role *dataplanev1.OpenStackDataPlaneRole) (admission.Warnings, error) {
	return v.validate(ctx, &dataplanev1.OpenStackDataPlaneRole{}, role)
}

// ValidateUpdate refuses to change or remove the annotation, and to add one
// while nodes of the role are recorded in another cell.
func (v roleCell) ValidateUpdate(ctx context.Context, old, role *dataplanev1.OpenStackDataPlaneRole) (admission.Warnings, error) {
	return v.validate(ctx, old, role)
}

// ValidateDelete allows everything.
func (roleCell) ValidateDelete(context.Context, *dataplanev1.OpenStackDataPlaneRole) (admission.Warnings, error) {
	return nil, nil
}

func (v roleCell) validate(ctx context.Context, old, role *dataplanev1.OpenStackDataPlaneRole) (admission.Warnings, error) {
	before, after := old.Annotations[novav1.CellAnnotation], role.Annotations[novav1.CellAnnotation]
	if before == after {
		return nil, nil
	}
	changes, err := v.changes(ctx, role, before, after)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	errs := append(roleErrors(before, after, changes), checkCellName(after)...)
	if len(errs) > 0 {
		return nil, hook.Invalid(roleKind, role.Name, errs)
	}
	return warn(v.cells.warnings(ctx, role.Namespace, after))
}

func (v roleCell) changes(ctx context.Context, role *dataplanev1.OpenStackDataPlaneRole, before, after string) ([]cellChange, error) {
	nodes, err := v.cells.inheritingNodes(ctx, role.Namespace, role.Name)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	recorded, err := v.cells.recordedOutside(ctx, role.Namespace, after, nodes)
	if err != nil {
		return nil, err
	}
	var changes []cellChange
	for _, node := range nodes {
		changes = append(changes, cellChange{node: node, before: before, after: after, recorded: recorded[node]})
	}
	return changes, nil
}

func hasAnnotation(node *dataplanev1.OpenStackDataPlaneNode) bool {
	_, ok := node.Annotations[novav1.CellAnnotation]
	return ok
}

func warn(warnings []string, err error) (admission.Warnings, error) {
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return warnings, nil
}
