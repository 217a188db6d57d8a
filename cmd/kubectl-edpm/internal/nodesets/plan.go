package nodesets

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Plan is what inputs become here.
type Plan struct {
	// Objects in the order in which they should be applied.
	Objects  []*unstructured.Unstructured
	Findings []Finding
}

// order of the kinds: what others refer to comes first, and configuration before what it is for.
var order = []string{"Topology", "OpenStackDataPlaneService", "OpenStackDataPlaneRole", "NovaExternalCompute", "OpenStackDataPlaneNode"}

// planner makes a plan.
type planner struct {
	in      *Inputs
	plan    Plan
	objects map[key]*unstructured.Unstructured
	// hosts are the NodeSets and nodes by the addresses of their hosts, in their namespaces.
	hosts map[key]string
	// used are the services that NodeSets and deployments name.
	used map[key]bool
}

// NewPlan returns what the inputs become here.
func NewPlan(in *Inputs) (*Plan, error) {
	p := &planner{in: in, objects: map[key]*unstructured.Unstructured{}, hosts: map[key]string{}, used: map[key]bool{}}
	p.plan.Findings = slices.Clone(in.findings)
	for i := range in.nodeSets {
		if err := p.planNodeSet(&in.nodeSets[i]); err != nil {
			return nil, err
		}
	}
	for i := range in.deployments {
		if err := p.planDeployment(&in.deployments[i]); err != nil {
			return nil, err
		}
	}
	if err := p.planOtherServices(); err != nil {
		return nil, err
	}
	for _, kind := range order {
		for _, k := range slices.SortedFunc(maps.Keys(p.objects), compareKeys) {
			if k.kind == kind {
				p.plan.Objects = append(p.plan.Objects, p.objects[k])
			}
		}
	}
	p.plan.Findings = once(p.plan.Findings)
	return &p.plan, nil
}

// once are findings without those that are there already, of objects that several NodeSets name.
func once(findings []Finding) []Finding {
	seen := map[Finding]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		before := seen[f]
		seen[f] = true
		return before
	})
}

func (p *planner) reporter(source, kind, name string) reporter {
	return reporter{source, kind + "/" + name, &p.plan.Findings}
}

// put adds an object as it is to be applied. Another one of the same name is a finding, and
// the first stays.
func (p *planner) put(r reporter, at *field.Path, gvk schema.GroupVersionKind, object metav1.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	k := key{gvk.Kind, object.GetNamespace(), object.GetName()}
	if other, ok := p.objects[k]; ok && !reflect.DeepEqual(other.Object, u.Object) {
		r.add(at, NoCounterpart, "%s %s is made of something else already: give one of them another name", gvk.Kind, object.GetName())
		return nil
	}
	p.objects[k] = u
	return nil
}

// planOtherServices reports services that nothing names, which are taken over as well.
func (p *planner) planOtherServices() error {
	for _, k := range slices.SortedFunc(maps.Keys(p.in.services), compareKeys) {
		if p.used[k] {
			continue
		}
		s := p.in.services[k]
		r := p.reporter(s.source, ServiceKind, k.name)
		if rule, known := knownService(k.name, &s.object); known {
			r.add(field.NewPath("spec"), NotNeeded, "no NodeSet names it; %s", describe(rule))
			continue
		}
		if _, err := p.customService(&s); err != nil {
			return err
		}
	}
	return nil
}

func compareKeys(a, b key) int {
	return slices.Compare([]string{a.kind, a.namespace, a.name}, []string{b.kind, b.namespace, b.name})
}
