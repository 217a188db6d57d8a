package hosted

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// agent is a kind of services on hosts that has no more than all have.
type agent struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   hostedv1.ServiceSpec
	Status hostedv1.ServiceStatus
}

func (a *agent) DeepCopyObject() runtime.Object {
	return &agent{a.TypeMeta, *a.ObjectMeta.DeepCopy(), *a.Spec.DeepCopy(), *a.Status.DeepCopy()}
}
func (a *agent) GetConditions() *condition.Conditions                     { return &a.Status.Conditions }
func (a *agent) SetObservedGeneration(g int64)                            { a.Status.ObservedGeneration = g }
func (a *agent) GetLedger() *common.Ledger                                { return &a.Status.Ledger }
func (a *agent) Hosted() (*hostedv1.ServiceSpec, *hostedv1.ServiceStatus) { return &a.Spec, &a.Status }

// newScope is an agent on node n, which is annotated with the agent.
func newScope(parts Parts) *Scope {
	a := &agent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "uid-a"}, Spec: hostedv1.ServiceSpec{DataplaneNodeName: "n", SSHKeySecretName: "key"}}
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "uid-n", Annotations: map[string]string{"example.org/agent": "x"}}}
	node.Spec.Role = "r"
	k := &kind{name: "Agent", creations: newCreations(), Service: Service{
		Object: &agent{}, Name: "agent", Annotation: "example.org/agent", Finalizer: "example.org/agent", RunnerImage: "runner:default",
		Bind: func(*Scope) Parts { return parts },
	}}
	s := (&deployer{kind: k}).scope(a)
	s.Node, s.Role, s.Vars = node, &dataplanev1.OpenStackDataPlaneRole{}, map[string]any{"ansible_host": "192.0.2.1"}
	return s
}

func TestPhasesOfTheKindAreAmongThoseOfAll(t *testing.T) {
	of := func(c condition.Type) []phase.Phase { return []phase.Phase{phase.Of(c)} }
	s := newScope(Parts{Inputs: of("PeerReady"), Deployed: of("Up")})
	want := []condition.Type{"InputReady", "PeerReady", "DataPlaneNodeReady", "ServiceConfigReady", "DeploymentReady", "Up"}
	if diff := cmp.Diff(want, phase.Conditions(s.phases())); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestAnyValueOfTheAnnotationSelectsAKindWithoutRule(t *testing.T) {
	for value, want := range map[string]condition.Reason{"x": "", "y": "", "": hostedv1.AnnotationMissingReason} {
		s := newScope(Parts{})
		s.Node.Annotations["example.org/agent"] = value
		var got condition.Reason
		if halt := s.selected(); halt != nil {
			got = halt.Reason
		}
		if got != want {
			t.Errorf("annotation %q: the reason is %q, want %q", value, got, want)
		}
	}
	s := newScope(Parts{})
	s.Node.Annotations, s.Role = nil, nil
	if halt := s.selected(); halt != nil {
		t.Errorf("the annotation of a role that does not exist is unknown, but: %v", halt)
	}
}

func TestATargetHasWhatAllHaveAndWhatTheStepAdds(t *testing.T) {
	s := newScope(Parts{Cell: "c"})
	s.Object.SetAnnotations(map[string]string{common.RerunAnnotation: "again"})
	target := s.target(Step{Step: edpm.Step{Name: "agent"}, Complete: func(t *edpm.Target) { t.Vars["image"] = "agent:1" }})
	want := edpm.Target{
		Namespace: "ns", Host: "n", OwnerKind: "Agent", OwnerUID: "uid-a", Step: edpm.Step{Name: "agent"}, Role: "r", Cell: "c",
		Rerun: "again", Tokens: map[string]string{"service": "again"}, Image: "runner:default", SSHKeySecret: "key",
		Vars: map[string]any{"ansible_host": "192.0.2.1", "image": "agent:1"},
	}
	if diff := cmp.Diff(want, target, cmpopts.IgnoreUnexported(edpm.Target{})); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	if _, leaks := s.Vars["image"]; leaks {
		t.Error("the variable of one step is in all")
	}
}

// several has agents for the services x and y of every namespace. Their objects name
// them in a label.
func several() *MultiInstance {
	return &MultiInstance{
		All: func(context.Context, string) ([]ServiceClass, error) {
			return []ServiceClass{{Name: "x", Annotation: "example.org/x"}, {Name: "y", Annotation: "example.org/y"}}, nil
		},
		Of:     func(o Object) string { return o.GetLabels()["service"] },
		Assign: func(o Object, service string) { o.SetLabels(map[string]string{"service": service}) },
	}
}

func TestANodeHasAnObjectForEachOfItsServices(t *testing.T) {
	for name, c := range map[string]struct {
		node, role map[string]string
		want       []string
	}{
		"none is selected":                 {nil, nil, nil},
		"by its role":                      {nil, map[string]string{"example.org/x": "true"}, []string{"x-n"}},
		"by the node, with any value":      {map[string]string{"example.org/y": "0"}, map[string]string{"example.org/x": "yes"}, []string{"x-n", "y-n"}},
		"false opts out of its role's":     {map[string]string{"example.org/x": "false"}, map[string]string{"example.org/x": "true"}, nil},
		"the empty value opts out as well": {map[string]string{"example.org/x": ""}, map[string]string{"example.org/x": "true"}, nil},
		"false on the role selects no one": {nil, map[string]string{"example.org/x": "false"}, nil},
	} {
		s := newScope(Parts{})
		s.MultiInstance, s.Node.Annotations, s.Role.Annotations = several(), c.node, c.role
		classes, _ := s.classes(t.Context(), "ns")
		var got []string
		for _, o := range classes {
			if s.selects(s.Node, s.Role, o) {
				got = append(got, s.objectName(o.Name, s.Node.Name))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: objects (-want +got):\n%s", name, diff)
		}
	}
}

func TestAServiceThatEndsGetsNoFurtherNode(t *testing.T) {
	s := newScope(Parts{})
	s.MultiInstance, s.Role.Annotations = several(), map[string]string{"example.org/x": "true"}
	if s.selects(s.Node, s.Role, ServiceClass{Name: "x", Annotation: "example.org/x", Removed: true}) {
		t.Error("a node that has no object gets one")
	}
}

func TestTheNameOfAnObjectFitsAndIsStable(t *testing.T) {
	long := strings.Repeat("n", 250)
	for _, c := range []struct{ service, node, want string }{
		{"node-exporter", "compute-0", "node-exporter-compute-0"},
		{"x", long, "x-" + long},
		{"xyz", long, "xyz-" + long[:238] + "-e1bd9d4a48"},
	} {
		if got := ObjectName(c.service, c.node); got != c.want || len(got) > 253 {
			t.Errorf("the object of %s on a node with %d characters is %q (%d), want %q", c.service, len(c.node), got, len(got), c.want)
		}
	}
	if ObjectName("xyz", long) == ObjectName("xyz", long+"o") {
		t.Error("two nodes have the same object")
	}
}

func TestAnObjectWithAnotherNameThanItsServiceAndNodeMakeServesNobody(t *testing.T) {
	s := newScope(Parts{})
	s.MultiInstance = several()
	halt := s.mismatch(s.Object, ServiceClass{Name: "x"}, "true")
	if halt == nil || halt.Reason != hostedv1.InvalidSpecReason || !strings.Contains(halt.Message, `must be "x-n"`) {
		t.Errorf("mismatch is %v", halt)
	}
	s.Object.SetName("x-n")
	if halt := s.mismatch(s.Object, ServiceClass{Name: "x"}, "true"); halt != nil {
		t.Errorf("mismatch is %v, want none", halt)
	}
}

func TestATargetOfOneOfSeveralServicesNamesItsOwner(t *testing.T) {
	s := newScope(Parts{})
	s.MultiInstance, s.class = several(), ServiceClass{Name: "x", RunnerImage: "mine:1"}
	s.Object.SetName("x-n")
	target := s.target(Step{Step: edpm.Step{Name: "x"}})
	if target.Host != "n" || target.Owner != "x-n" || target.Service != "x" || target.Image != "mine:1" || !target.ImageChosen {
		t.Errorf("target is %+v", target)
	}
}

func TestAnObjectOfAFormerNodeIsTakenOverByTheNextOne(t *testing.T) {
	owner := func(kind, name string, uid types.UID) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: uid, Controller: &yes}}
	}
	for name, c := range map[string]struct {
		owners []metav1.OwnerReference
		change func(*Scope)
		want   bool
	}{
		"a node of the same name":                 {owner("OpenStackDataPlaneNode", "n", "former"), nil, true},
		"its own node":                            {owner("OpenStackDataPlaneNode", "n", "uid-n"), nil, false},
		"no one":                                  {nil, nil, false},
		"something else":                          {owner("Deployment", "n", "former"), nil, false},
		"a node that is being deleted itself":     {owner("OpenStackDataPlaneNode", "n", "former"), func(s *Scope) { now := metav1.Now(); s.Node.DeletionTimestamp = &now }, false},
		"a node that is not to have the service":  {owner("OpenStackDataPlaneNode", "n", "former"), func(s *Scope) { s.Node.Annotations = nil }, false},
		"a node that does not exist (or not yet)": {owner("OpenStackDataPlaneNode", "n", "former"), func(s *Scope) { s.Node = nil }, false},
	} {
		s := newScope(Parts{})
		s.Object.SetOwnerReferences(c.owners)
		if c.change != nil {
			c.change(s)
		}
		if got := s.takenOver(); got != c.want {
			t.Errorf("%s: takenOver is %t, want %t", name, got, c.want)
		}
	}
}

func TestAnObjectIsWokenByWhatItReads(t *testing.T) {
	s := newScope(Parts{})
	s.Reads = func(Object) []string { return []string{"Secret/peer"} }
	want := []string{"ConfigMap/", "Secret/key", "ConfigMap/" + ansibleeev1.DefaultEnvConfigMap, "Secret/peer"}
	if diff := cmp.Diff(want, s.inputsOf(s.Object)); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

func TestANodeShowsTheNoticeOfAnObjectThatWaits(t *testing.T) {
	waiting := *condition.FalseCondition("Ready", "Pending", condition.SeverityInfo, "soon")
	k := &kind{Service: Service{Notices: []condition.Type{"Silent", "Quiet"}}}
	for title, c := range map[string]struct {
		conditions condition.Conditions
		want       string
	}{
		"it has none":             {condition.Conditions{waiting}, "being deployed"},
		"it has one":              {condition.Conditions{waiting, *condition.FalseCondition("Quiet", "Draining", condition.SeverityInfo, "soon")}, "Draining: see the conditions of the object"},
		"it has two":              {condition.Conditions{waiting, *condition.FalseCondition("Quiet", "Draining", condition.SeverityInfo, "soon"), *condition.TrueCondition("Silent", "yes")}, "Silent: see the conditions of the object"},
		"it has one that is True": {condition.Conditions{waiting, *condition.TrueCondition("Quiet", "yes")}, "Quiet: see the conditions of the object"},
		"it has a problem": {condition.Conditions{*condition.FalseCondition("Ready", "Failed", condition.SeverityWarning, "no"), *condition.TrueCondition("Quiet", "yes")},
			"Failed: see the conditions of the object"},
	} {
		if got := k.stateOf(&agent{Status: hostedv1.ServiceStatus{Conditions: c.conditions}}); got.ready || got.message != c.want {
			t.Errorf("%s: the node shows %+v, want %q", title, got, c.want)
		}
	}
}

func TestANodeShowsWhatItsObjectSays(t *testing.T) {
	ready := func(c *condition.Condition) condition.Conditions { return condition.Conditions{*c} }
	now := metav1.Now()
	for name, c := range map[string]struct {
		conditions condition.Conditions
		deleted    *metav1.Time
		want       state
	}{
		"ready":                   {ready(condition.TrueCondition("Ready", "yes")), nil, state{ready: true}},
		"new":                     {nil, nil, state{message: "being deployed"}},
		"waiting":                 {ready(condition.FalseCondition("Ready", "Pending", condition.SeverityInfo, "soon")), nil, state{message: "being deployed"}},
		"failed":                  {ready(condition.FalseCondition("Ready", "Failed", condition.SeverityWarning, "no")), nil, state{message: "Failed: see the conditions of the object"}},
		"ready, and deleted":      {ready(condition.TrueCondition("Ready", "yes")), &now, state{message: "being removed"}},
		"failed to be cleaned up": {ready(condition.FalseCondition("Ready", "CleanupFailed", condition.SeverityError, "no")), &now, state{message: "CleanupFailed: see the conditions of the object"}},
	} {
		a := &agent{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: c.deleted}, Status: hostedv1.ServiceStatus{Conditions: c.conditions}}
		if got := stateOf(a); got != c.want {
			t.Errorf("%s: the node shows %+v, want %+v", name, got, c.want)
		}
	}
}
