package topology

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// Kind is a kind whose objects use Topologies. A cluster need not have all of them.
type Kind struct {
	Name   string
	Object func() client.Object
	List   func() client.ObjectList
}

// nodeKind is the kind of nodes. Those of a role are one consumer.
const nodeKind = "OpenStackDataPlaneNode"

// Kinds are all of them; referencesOf knows where each has its references.
var Kinds = []Kind{
	{"OpenStackDataPlaneRole", func() client.Object { return &dataplanev1.OpenStackDataPlaneRole{} }, func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneRoleList{} }},
	{nodeKind, func() client.Object { return &dataplanev1.OpenStackDataPlaneNode{} }, func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneNodeList{} }},
	{"GlanceAPI", func() client.Object { return &glancev1.GlanceAPI{} }, func() client.ObjectList { return &glancev1.GlanceAPIList{} }},
	{"Nova", func() client.Object { return &novav1.Nova{} }, func() client.ObjectList { return &novav1.NovaList{} }},
	{"NovaCell", func() client.Object { return &novav1.NovaCell{} }, func() client.ObjectList { return &novav1.NovaCellList{} }},
	{"NovaCompute", func() client.Object { return &novav1.NovaCompute{} }, func() client.ObjectList { return &novav1.NovaComputeList{} }},
}

type references []*topologyv1.TopologyRef

// referencesOf returns the references in the spec of an object, and those that its
// status notes: what it runs was made with them.
func referencesOf(obj client.Object) (spec, applied references) {
	switch o := obj.(type) {
	case *dataplanev1.OpenStackDataPlaneRole:
		return references{o.Spec.TopologyRef}, references{o.Status.LastAppliedTopology}
	case *dataplanev1.OpenStackDataPlaneNode:
		return references{o.Spec.TopologyRef}, references{o.Status.LastAppliedTopology}
	case *glancev1.GlanceAPI:
		return references{o.Spec.TopologyRef}, references{o.Status.LastAppliedTopology}
	case *novav1.Nova:
		return references{o.Spec.TopologyRef}, appliedOf(o.Status.API, o.Status.Scheduler)
	case *novav1.NovaCell:
		return references{o.Spec.TopologyRef, o.Spec.ConductorServiceTemplate.TopologyRef}, appliedOf(o.Status.Conductor, o.Status.Metadata, o.Status.NoVNCProxy)
	case *novav1.NovaCompute:
		return references{o.Spec.TopologyRef}, references{o.Status.LastAppliedTopology}
	}
	return nil, nil
}

func appliedOf(services ...*podifiedv1.Status) references {
	var refs references
	for _, s := range services {
		if s != nil {
			refs = append(refs, s.LastAppliedTopology)
		}
	}
	return refs
}

// Referred returns the names of the Topologies that an object of one of the Kinds
// refers to itself, for RefIndex.
func Referred(obj client.Object) []string {
	spec, _ := referencesOf(obj)
	return NamesOf(spec...)
}

// Used returns the names of the Topologies that an object of one of the Kinds refers to
// itself, or that what it runs still follows.
func Used(obj client.Object) []string {
	spec, applied := referencesOf(obj)
	names := NamesOf(append(spec, applied...)...)
	slices.Sort(names)
	return slices.Compact(names)
}
