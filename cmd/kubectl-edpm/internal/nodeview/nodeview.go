// Package nodeview sums up how nodes stand: their phases, the services and runs
// on them, and why they are not ready. It reads what the operators have written
// into status, and decides nothing again.
package nodeview

import (
	"fmt"
	"slices"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
)

// Node is how one node stands.
type Node struct {
	Name string `json:"name"`
	Role string `json:"role,omitempty"`
	// Host is the address by which the host is reached.
	Host string `json:"host,omitempty"`
	// Cell is the effective cell; empty for a node that is no compute.
	Cell string `json:"cell,omitempty"`
	// Ready reports whether phases -1 and 0 are done.
	Ready bool `json:"ready"`
	// Up reports whether the services of phase 1 are ready as well.
	Up bool `json:"up"`
	// Deleting reports whether the node is on its way out.
	Deleting bool `json:"deleting,omitempty"`
	// Phases in their order.
	Phases []Phase `json:"phases"`
	// Current is the run that is under way, Last the newest one that has ended.
	Current *Run `json:"current,omitempty"`
	Last    *Run `json:"last,omitempty"`
	// NextRetry is when a failed host is tried again.
	NextRetry *time.Time `json:"nextRetry,omitempty"`
	// Guests of a host that nova knows, nil for others.
	Guests *Guests `json:"guests,omitempty"`
	// Problems say why the node is not up, those first that a person can fix.
	Problems []Problem `json:"problems,omitempty"`
	// Warnings of services that are in order, but likely not as they are meant to be.
	Warnings []Problem `json:"warnings,omitempty"`
}

// service begins the name of a phase that is a service.
const service = "1 "

// Phase of a node: what the host needs, whether it is there, what prepares it,
// and each service on it.
type Phase struct {
	// Name of the phase, for example "0 prepared" or "1 nova".
	Name string `json:"name"`
	// Status is True, False or Unknown.
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	// Since when the status is what it is.
	Since *time.Time `json:"since,omitempty"`
}

// Problem is a condition that keeps a node from being up.
type Problem struct {
	// Object that says so, as Kind/name.
	Object    string `json:"object"`
	Condition string `json:"condition,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message"`
	// Waiting reports whether it is expected to pass automatically.
	Waiting bool `json:"waiting,omitempty"`
}

// Source is what a view is made of.
type Source struct {
	Node *dataplanev1.OpenStackDataPlaneNode
	// Role of the node, or nil.
	Role *dataplanev1.OpenStackDataPlaneRole
	// Services are the objects behind status.services, by the name of the service.
	// Those that are not known are left out.
	Services map[string]Service
	// Classes of services in the namespace of the node, as far as they are known.
	Classes []edpmv1.EDPMServiceClass
	// Runs, of this host and of others.
	Runs []ansibleeev1.OpenStackAnsibleEE
}

// Service is what the object behind an entry of status.services says.
type Service struct {
	Conditions condition.Conditions `json:"conditions"`
	// NextRetry is when a step that failed is tried again.
	NextRetry *metav1.Time `json:"nextRetry"`
	// ComputeService and Guests are what nova said last of a compute; nil for what is none.
	ComputeService *novav1.ComputeServiceStatus `json:"computeService"`
	Guests         *novav1.GuestsStatus         `json:"guests"`
}

// selectors are the annotations that give nodes the services of typed kinds.
var selectors = []struct{ annotation, service string }{
	{novav1.CellAnnotation, "nova"},
	{neutronv1.OVNAnnotation, "ovn-controller"},
	{neutronv1.OVNAnnotation, neutronv1.MetadataStep},
}

// New returns how the node stands.
func New(s Source) Node {
	n := s.Node
	view := Node{
		Name: n.Name, Role: n.Spec.Role, Host: host(n), Ready: n.IsReady(), Deleting: !n.DeletionTimestamp.IsZero(),
		Cell: inherit.Annotation(n, s.Role, novav1.CellAnnotation),
	}
	view.Phases = phases(s)
	view.Problems, view.Warnings = problems(s), warnings(s)
	view.Current, view.Last = newest(RunsOf(s.Runs, n.Name, ""), n.Name)
	view.NextRetry, view.Guests = nextRetry(s), guests(s)
	view.Up = view.Ready && !view.Deleting && !slices.ContainsFunc(n.Status.Services, func(e dataplanev1.NodeServiceStatus) bool { return !e.Ready })
	view.Up = view.Up && len(missing(s)) == 0
	return view
}

// missing are the services that annotations of the node or its role select, and that the
// node does not show yet.
func missing(s Source) []string {
	var names []string
	for _, by := range selectors {
		if inherit.Annotation(s.Node, s.Role, by.annotation) != "" {
			names = append(names, by.service)
		}
	}
	for i := range s.Classes {
		class := &s.Classes[i]
		value := inherit.Annotation(s.Node, s.Role, class.Spec.Annotation)
		if value != "" && value != "false" && class.DeletionTimestamp.IsZero() {
			names = append(names, class.Name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(s.Node.Status.Services, func(e dataplanev1.NodeServiceStatus) bool { return e.Name == name })
	})
}

func host(n *dataplanev1.OpenStackDataPlaneNode) string {
	for _, name := range []string{n.Spec.AnsibleHost, n.Spec.HostName} {
		if name != "" {
			return name
		}
	}
	return n.Name
}

// phases are the conditions of the node that stand for phases, and its services.
func phases(s Source) []Phase {
	var list []Phase
	for _, p := range []struct {
		name string
		is   condition.Type
	}{
		{"inputs", condition.InputReadyCondition},
		{"-1 host", dataplanev1.ProvisionReadyCondition},
		{"0 prepared", condition.DeploymentReadyCondition},
	} {
		list = append(list, phase(p.name, s.Node.Status.Conditions.Get(p.is)))
	}
	for _, e := range s.Node.Status.Services {
		p := Phase{Name: service + e.Name, Status: status(e.Ready), Message: e.Message}
		if object, known := s.Services[e.Name]; known {
			// What keeps the service from being that of the node is only in the entry.
			if ofObject := phase(p.Name, object.Conditions.Get(condition.ReadyCondition)); e.Ready || ofObject.Status != corev1.ConditionTrue {
				p = ofObject
			}
		}
		list = append(list, p)
	}
	return list
}

func phase(name string, c *condition.Condition) Phase {
	if c == nil {
		return Phase{Name: name, Status: corev1.ConditionUnknown, Message: "The operator has not reconciled it yet"}
	}
	since := c.LastTransitionTime.Time
	p := Phase{Name: name, Status: c.Status, Since: &since}
	if c.Status != corev1.ConditionTrue {
		p.Reason, p.Message = string(c.Reason), c.Message
	}
	return p
}

func status(ready bool) corev1.ConditionStatus {
	if ready {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// problems of the node and of its services. That a later phase has not been
// looked at is none: it follows from an earlier one.
func problems(s Source) []Problem {
	n := s.Node
	object := "OpenStackDataPlaneNode/" + n.Name
	var list []Problem
	if n.Status.ObservedGeneration != n.Generation {
		list = append(list, Problem{Object: object, Waiting: true, Message: fmt.Sprintf(
			"the operator has observed generation %d of the spec, and the current one is %d: if this persists, the manager is not running", n.Status.ObservedGeneration, n.Generation)})
	}
	list = append(list, conditionProblems(object, n.Status.Conditions)...)
	for _, e := range n.Status.Services {
		object := e.Kind + "/" + e.ObjectName
		found := conditionProblems(object, s.Services[e.Name].Conditions)
		if len(found) == 0 && !e.Ready {
			found = []Problem{{Object: object, Message: "service " + e.Name + " is not ready: " + orNone(e.Message), Waiting: true}}
		}
		list = append(list, found...)
	}
	if n.IsReady() {
		for _, name := range missing(s) {
			list = append(list, Problem{Object: object, Waiting: true, Message: "an annotation of the node or its role selects service " + name +
				", and the node does not show it yet: if this persists, the manager or its operator for this service is not running"})
		}
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return count(a.Waiting) - count(b.Waiting) })
	return list
}

// warnings are conditions of services that are True for a reason that people should know.
func warnings(s Source) []Problem {
	var list []Problem
	for _, e := range s.Node.Status.Services {
		for _, c := range s.Services[e.Name].Conditions {
			if c.Status == corev1.ConditionTrue && c.Reason == novav1.OptionsWarnedReason {
				list = append(list, Problem{Object: e.Kind + "/" + e.ObjectName, Condition: string(c.Type), Reason: string(c.Reason), Message: c.Message})
			}
		}
	}
	return list
}

func conditionProblems(object string, conditions condition.Conditions) []Problem {
	var list []Problem
	for _, c := range conditions {
		if c.Status == corev1.ConditionTrue || c.Type == condition.ReadyCondition || c.Reason == condition.InitReason {
			continue
		}
		waiting := c.Status == corev1.ConditionUnknown || c.Severity == condition.SeverityInfo
		list = append(list, Problem{object, string(c.Type), string(c.Reason), c.Message, waiting})
	}
	return list
}

// nextRetry is the earliest time at which the node or one of its services is tried again.
func nextRetry(s Source) *time.Time {
	next := s.Node.Status.NextRetry
	for _, service := range s.Services {
		if at := service.NextRetry; at != nil && (next == nil || at.Before(next)) {
			next = at
		}
	}
	if next == nil {
		return nil
	}
	return &next.Time
}

// Role is how the nodes of a role stand.
type Role struct {
	// Name of the role; empty for nodes that have none.
	Name string `json:"name"`
	// Ready nodes, and those whose services are ready as well.
	Ready int    `json:"ready"`
	Up    int    `json:"up"`
	Nodes []Node `json:"nodes"`
}

// Roles gathers nodes by role; both are sorted by name.
func Roles(nodes []Node) []Role {
	byName := map[string]*Role{}
	var names []string
	for _, n := range nodes {
		r := byName[n.Role]
		if r == nil {
			r = &Role{Name: n.Role}
			byName[n.Role], names = r, append(names, n.Role)
		}
		r.Nodes = append(r.Nodes, n)
		r.Ready += count(n.Ready)
		r.Up += count(n.Up)
	}
	slices.Sort(names)
	roles := make([]Role, 0, len(names))
	for _, name := range names {
		slices.SortFunc(byName[name].Nodes, byNodeName)
		roles = append(roles, *byName[name])
	}
	return roles
}
