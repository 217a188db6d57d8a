// Package kinds is the table of the kinds that the operators define. What can be
// derived from it is: the controllers that are counted, the definitions that each
// operator needs, the children that tests collect, and, by hack/kinds, the
// webhook configurations, the aggregated roles, and the lists in config/.
package kinds

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind that an operator defines.
type Kind struct {
	// Operator whose controllers look after its objects.
	Operator string
	schema.GroupVersionKind
	// Plural is the resource.
	Plural string
	// Validation is what becomes of a write while the webhook does not answer. Ignore is
	// for kinds whose controllers repeat the rules and report them in InputReady. Fail is
	// for those of which a wrong spec runs on hosts, or keeps pods from starting.
	Validation admissionv1.FailurePolicyType
	// Defaulting is when the defaulting webhook has something to add; nil when there is none.
	Defaulting *admissionv1.MatchCondition
	// Owns are the kinds of objects that are deleted with the owner.
	Owns []schema.GroupVersionKind
	// UsesTopologies reports whether its objects refer to Topologies of their own.
	UsesTopologies bool
	// Optional reports whether it is deployed with an overlay of its operator only, and is
	// no part of the cluster's own roles for editors.
	Optional bool
}

// Definition is the name of the resource definition.
func (k Kind) Definition() string { return k.Plural + "." + k.Group }

// word is the name of the kind in names and paths.
func (k Kind) word() string { return strings.ToLower(k.Kind) }

// Names of kinds that are referred to below.
var (
	job       = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secret    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

	node    = beta("dataplane", "OpenStackDataPlaneNode")
	role    = beta("dataplane", "OpenStackDataPlaneRole")
	cell    = beta("nova", "NovaCell")
	compute = beta("nova", "NovaExternalCompute")
	ovn     = beta("neutron", "OVNController")
	agent   = beta("neutron", "OVNMetadataAgent")
	service = beta("edpm", "EDPMService")
)

// beta is a kind of one of the groups of openstack.org.
func beta(group, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group + ".openstack.org", Version: "v1beta1", Kind: kind}
}

// missing is the condition of a defaulting webhook that adds what is missing.
func missing(name, expression string) *admissionv1.MatchCondition {
	return &admissionv1.MatchCondition{Name: name + "-missing", Expression: expression}
}

const (
	imageMissing   = `object.?spec.?containerImage.orValue("") == ""`
	runnerMissing  = `object.?spec.?image.orValue("") == ""`
	computeMissing = `object.?spec.?novaComputeContainerImage.orValue("") == "" || ` +
		`object.?spec.?novaLibvirtContainerImage.orValue("") == "" || object.?spec.?ansibleEEContainerImage.orValue("") == ""`
	layoutMissing      = `object.?spec.?glanceAPIs.orValue({}).exists(name, object.?spec.?glanceAPIs.orValue({})[name].?type.orValue("") == "")`
	planeLayoutMissing = `object.?spec.?glance.?template.?glanceAPIs.orValue({}).exists(name, ` +
		`object.?spec.?glance.?template.?glanceAPIs.orValue({})[name].?type.orValue("") == "")`
)

const (
	fail   = admissionv1.Fail
	ignore = admissionv1.Ignore
)

// Table has all kinds, by operator.
var Table = []Kind{
	{
		Operator: "ansibleee", GroupVersionKind: beta("ansibleee", "OpenStackAnsibleEE"), Plural: "openstackansibleees",
		Validation: fail, Defaulting: missing("image", runnerMissing), Owns: []schema.GroupVersionKind{job, secret},
	},
	{
		Operator: "core", GroupVersionKind: beta("core", "OpenStackControlPlane"), Plural: "openstackcontrolplanes",
		Validation: fail, Defaulting: missing("layout", planeLayoutMissing), Owns: []schema.GroupVersionKind{beta("glance", "Glance"), beta("nova", "Nova")},
	},
	{Operator: "dataplane", GroupVersionKind: beta("dataplane", "OpenStackDataPlane"), Plural: "openstackdataplanes", Validation: ignore, Owns: []schema.GroupVersionKind{role, node}},
	{Operator: "dataplane", GroupVersionKind: role, Plural: "openstackdataplaneroles", Validation: ignore, Owns: []schema.GroupVersionKind{configMap}, UsesTopologies: true},
	{
		Operator: "dataplane", GroupVersionKind: node, Plural: "openstackdataplanenodes", Validation: ignore,
		Owns: []schema.GroupVersionKind{compute, ovn, agent, service, configMap}, UsesTopologies: true,
	},
	{Operator: "dataplane", GroupVersionKind: beta("dataplane", "OpenStackDataPlaneService"), Plural: "openstackdataplaneservices", Validation: ignore},
	{Operator: "edpm", GroupVersionKind: beta("edpm", "EDPMServiceClass"), Plural: "edpmserviceclasses", Validation: fail},
	{Operator: "edpm", GroupVersionKind: service, Plural: "edpmservices", Validation: fail},
	{
		Operator: "glance", GroupVersionKind: beta("glance", "Glance"), Plural: "glances",
		Validation: fail, Defaulting: missing("layout", layoutMissing), Owns: []schema.GroupVersionKind{beta("glance", "GlanceAPI")},
	},
	{Operator: "glance", GroupVersionKind: beta("glance", "GlanceAPI"), Plural: "glanceapis", Validation: fail, UsesTopologies: true},
	{Operator: "neutron", GroupVersionKind: ovn, Plural: "ovncontrollers", Validation: fail, Defaulting: missing("image", imageMissing)},
	{Operator: "neutron", GroupVersionKind: agent, Plural: "ovnmetadataagents", Validation: fail, Defaulting: missing("image", imageMissing)},
	{Operator: "nova", GroupVersionKind: beta("nova", "Nova"), Plural: "nova", Validation: fail, Owns: []schema.GroupVersionKind{cell, secret}, UsesTopologies: true},
	{Operator: "nova", GroupVersionKind: cell, Plural: "novacells", Validation: fail, Owns: []schema.GroupVersionKind{secret}, UsesTopologies: true},
	{Operator: "nova", GroupVersionKind: beta("nova", "NovaCompute"), Plural: "novacomputes", Validation: fail, UsesTopologies: true},
	{Operator: "nova", GroupVersionKind: compute, Plural: "novaexternalcomputes", Validation: fail, Defaulting: missing("image", computeMissing)},
	{
		Operator: "ocs", GroupVersionKind: schema.GroupVersionKind{Group: "ocs.openshift.io", Version: "v1", Kind: "StorageCluster"}, Plural: "storageclusters",
		Validation: fail, Optional: true,
	},
	{Operator: "topology", GroupVersionKind: beta("topology", "Topology"), Plural: "topologies", Validation: fail},
}

// Of returns the kinds of an operator.
func Of(operator string) []Kind {
	return where(func(k Kind) bool { return k.Operator == operator })
}

// UsingTopologies returns the kinds whose objects refer to Topologies of their own.
func UsingTopologies() []Kind { return where(func(k Kind) bool { return k.UsesTopologies }) }

// Definitions returns the names of the resource definitions of kinds, sorted.
func Definitions(kinds []Kind) []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.Definition())
	}
	slices.Sort(names)
	return names
}

func where(is func(Kind) bool) []Kind {
	var kinds []Kind
	for _, k := range Table {
		if is(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
