package nodesets

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// planDeployment reports what a deployment asks for, which here is the state that roles want.
// Where its runner Pods are to run becomes a Topology of the roles.
func (p *planner) planDeployment(in *input[deployment]) error {
	d := &in.object
	r := p.reporter(in.source, DeploymentKind, d.Metadata.Name)
	r.add(spec.Child("nodeSets"), NotNeeded, "hosts follow their role once deployStrategy.deploy is no longer false")
	for i, name := range d.Spec.NodeSets {
		if !slices.ContainsFunc(p.in.nodeSets, func(s input[nodeSet]) bool { return s.object.Metadata.Name == name }) {
			r.add(spec.Child("nodeSets").Index(i), NoCounterpart, "NodeSet %s is not among the inputs: give it, too", name)
		}
	}
	r.schedule(&d.Spec)
	p.override(r, d)
	return p.runners(r, d)
}

// schedule are the fields that say how and how often a deployment is run.
func (r reporter) schedule(d *deploymentSpec) {
	for _, f := range []struct {
		name string
		is   bool
		text string
	}{
		{"backoffLimit", d.BackoffLimit != nil, "failed hosts are tried again until they succeed"},
		{"preserveJobs", d.PreserveJobs != nil, "runs are kept for a while: see kubectl edpm logs"},
		{"deploymentRequeueTime", d.DeploymentRequeueTime != nil, "nothing is polled"},
		{"ansibleTags", d.AnsibleTags != "", "it was for one run; deployStrategy of a role has ansibleTags"},
		{"ansibleLimit", d.AnsibleLimit != "", "it was for one run; deployStrategy of a role has ansibleLimit"},
		{"ansibleSkipTags", d.AnsibleSkipTags != "", "it was for one run; deployStrategy of a role has ansibleSkipTags"},
	} {
		if f.is {
			r.add(spec.Child(f.name), NotNeeded, "%s", f.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.AnsibleExtraVars)) {
		r.add(spec.Child("ansibleExtraVars").Key(name), NoCounterpart, "runs have no extra variables: set it in ansibleVars of the role, if hosts are to keep it")
	}
	if d.AnsibleEEEnvConfigMapName != "" {
		r.add(spec.Child("ansibleEEEnvConfigMapName"), NoCounterpart, "write the variables in env of the role")
	}
}

// override reports services that only a deployment names: nothing says whether hosts have them.
func (p *planner) override(r reporter, d *deployment) {
	for i, name := range d.Spec.ServicesOverride {
		at, everywhere := spec.Child("servicesOverride").Index(i), true
		for _, set := range p.in.nodeSets {
			if slices.Contains(d.Spec.NodeSets, set.object.Metadata.Name) {
				names := set.object.Spec.Services
				if names == nil {
					names = serviceTable().Defaults
				}
				everywhere = everywhere && slices.Contains(names, name)
			}
		}
		given, ok := find(p.in.services, ServiceKind, d.Metadata.Namespace, name)
		object := (*service)(nil)
		if ok {
			object = &given.object
		}
		rule, known := knownService(name, object)
		switch {
		case everywhere || known && rule.NotNeeded != "":
			r.add(at, NotNeeded, "it was for one run")
		default:
			r.add(at, NoCounterpart, "only the deployment names it: add it to services of the NodeSets whose hosts are to have it, and import again")
		}
	}
}

// rolesOf are the NodeSets of a deployment that become roles.
func (p *planner) rolesOf(d *deployment) []string {
	return slices.DeleteFunc(slices.Clone(d.Spec.NodeSets), func(name string) bool {
		_, ok := find(p.objects, "OpenStackDataPlaneRole", d.Metadata.Namespace, name)
		return !ok
	})
}

// runners makes a Topology for each role of a node selector for runner Pods.
func (p *planner) runners(r reporter, d *deployment) error {
	at, selector := spec.Child("ansibleJobNodeSelector"), d.Spec.AnsibleJobNodeSelector
	if len(selector) == 0 || !r.admits(at, validate.NodeSelector(at, &selector)) {
		return nil
	}
	term := corev1.NodeSelectorTerm{}
	for _, label := range slices.Sorted(maps.Keys(selector)) {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{selector[label]}})
	}
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}
	if len(p.rolesOf(d)) == 0 {
		r.add(at, NoCounterpart, "none of the NodeSets is among the inputs: give them, too")
	}
	for _, name := range p.rolesOf(d) {
		role, _ := find(p.objects, "OpenStackDataPlaneRole", d.Metadata.Namespace, name)
		t := &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: role.GetNamespace(), Name: name + "-runners"}}
		t.Spec.Affinity = affinity
		r.add(at, Renamed, "Topology %s, and topologyRef of role %s", t.Name, name)
		if err := p.put(r, at, topologyv1.GroupVersion.WithKind("Topology"), t); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(role.Object, t.Name, "spec", "topologyRef", "name"); err != nil {
			return err
		}
	}
	return nil
}
