package topology_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

func ref(name string) *topologyv1.TopologyRef { return &topologyv1.TopologyRef{Name: name} }

func TestNearest(t *testing.T) {
	tests := map[string]struct{ refs, want []*topologyv1.TopologyRef }{
		"without references there is none":           {nil, nil},
		"who says nothing inherits":                  {[]*topologyv1.TopologyRef{nil, nil, ref("far")}, []*topologyv1.TopologyRef{ref("far")}},
		"the nearest wins":                           {[]*topologyv1.TopologyRef{ref("near"), ref("far")}, []*topologyv1.TopologyRef{ref("near")}},
		"an empty reference opts out":                {[]*topologyv1.TopologyRef{{}, ref("far")}, nil},
		"who inherits an empty reference has none":   {[]*topologyv1.TopologyRef{nil, {}, ref("far")}, nil},
		"a namespace alone names nothing":            {[]*topologyv1.TopologyRef{{Namespace: "ns"}, ref("far")}, nil},
		"an empty reference far away is not reached": {[]*topologyv1.TopologyRef{ref("near"), {}}, []*topologyv1.TopologyRef{ref("near")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var want *topologyv1.TopologyRef
			if len(tt.want) > 0 {
				want = tt.want[0]
			}
			if diff := cmp.Diff(want, topology.Nearest(tt.refs...)); diff != "" {
				t.Errorf("reference in force (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNearestReturnsACopy(t *testing.T) {
	source := ref("a")
	topology.Nearest(source).Name = "b"
	if source.Name != "a" {
		t.Error("the reference of the spec was changed through the one that is in force")
	}
}

func TestValidateRef(t *testing.T) {
	tests := map[string]struct {
		ref  *topologyv1.TopologyRef
		want string
	}{
		"no reference is in order":         {nil, ""},
		"opting out is in order":           {ref(""), ""},
		"a name is in order":               {ref("glance.spread-pods"), ""},
		"the own namespace is in order":    {&topologyv1.TopologyRef{Name: "a", Namespace: "openstack"}, ""},
		"another namespace is refused":     {&topologyv1.TopologyRef{Name: "a", Namespace: "other"}, `spec.topologyRef.namespace: Invalid value: "other": Customizing namespace field is not supported: remove it, and create the Topology in the namespace of this object`},
		"what can be no name is refused":   {ref("Zone_A"), `spec.topologyRef.name: Invalid value: "Zone_A": is not the name of a Topology: use lower-case letters, digits, "-" and ".", for example glance-default-spread-pods`},
		"another namespace without a name": {&topologyv1.TopologyRef{Namespace: "other"}, `spec.topologyRef.namespace: Invalid value: "other": Customizing namespace field is not supported: remove it, and create the Topology in the namespace of this object`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := topology.ValidateRef(field.NewPath("spec", "topologyRef"), tt.ref, "openstack").ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func constraint(key string, selector *metav1.LabelSelector) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}
}

func matching(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func inZone(zone string) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}}
}

func keyed(c corev1.TopologySpreadConstraint, keys ...string) corev1.TopologySpreadConstraint {
	c.MatchLabelKeys = keys
	return c
}

func TestApply(t *testing.T) {
	own := matching("glanceAPI", "czone")
	anti := topology.Default("glance").PodAntiAffinity
	type pods struct {
		Constraints []corev1.TopologySpreadConstraint
		Affinity    *corev1.Affinity
	}
	tests := map[string]struct {
		spec topologyv1.TopologySpec
		base *corev1.Affinity
		want pods
	}{
		"a constraint leaves the default anti-affinity, as the pods of seeds/001 have it": {
			topologyv1.TopologySpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{constraint("zone", matching("service", "glance"))}},
			topology.Default("glance"),
			pods{[]corev1.TopologySpreadConstraint{constraint("zone", matching("service", "glance"))}, topology.Default("glance")},
		},
		"node affinity stands next to the default anti-affinity, as in seeds/002": {
			topologyv1.TopologySpec{Affinity: &corev1.Affinity{NodeAffinity: inZone("zoneC")}},
			topology.Default("glance"),
			pods{nil, &corev1.Affinity{NodeAffinity: inZone("zoneC"), PodAntiAffinity: anti}},
		},
		"an anti-affinity takes the place of the default one": {
			topologyv1.TopologySpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
			topology.Default("glance"),
			pods{nil, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
		},
		"pod affinity stands next to the default anti-affinity": {
			topologyv1.TopologySpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}},
			topology.Default("glance"),
			pods{nil, &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: anti}},
		},
		"node affinity takes the place of the template's own": {
			topologyv1.TopologySpec{Affinity: &corev1.Affinity{NodeAffinity: inZone("zoneC")}},
			&corev1.Affinity{NodeAffinity: inZone("zoneA")},
			pods{nil, &corev1.Affinity{NodeAffinity: inZone("zoneC")}},
		},
		"a template without affinity gets that of the Topology": {
			topologyv1.TopologySpec{Affinity: &corev1.Affinity{NodeAffinity: inZone("zoneC")}}, nil,
			pods{nil, &corev1.Affinity{NodeAffinity: inZone("zoneC")}},
		},
		"a constraint without a selector gets that of the service, and an empty one stays empty": {
			topologyv1.TopologySpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{constraint("zone", nil), constraint("rack", &metav1.LabelSelector{})}}, nil,
			pods{[]corev1.TopologySpreadConstraint{constraint("zone", own), constraint("rack", &metav1.LabelSelector{})}, nil},
		},
		"keys to match narrow the selector of the service, but for those that it is about": {
			topologyv1.TopologySpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{keyed(constraint("zone", nil), "glanceAPI", "controller-revision-hash")}}, nil,
			pods{[]corev1.TopologySpreadConstraint{keyed(constraint("zone", own), "controller-revision-hash")}, nil},
		},
		"keys to match stay next to a selector of the Topology": {
			topologyv1.TopologySpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{keyed(constraint("zone", matching("service", "glance")), "glanceAPI")}}, nil,
			pods{[]corev1.TopologySpreadConstraint{keyed(constraint("zone", matching("service", "glance")), "glanceAPI")}, nil},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: tt.base}}
			topo := &topologyv1.Topology{Spec: tt.spec}
			before := topo.DeepCopy()
			topology.Apply(template, topo, own)
			if diff := cmp.Diff(tt.want, pods{template.Spec.TopologySpreadConstraints, template.Spec.Affinity}); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, topo); diff != "" {
				t.Errorf("the Topology itself was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestApplySharesNothingWithTheTopology(t *testing.T) {
	topo := &topologyv1.Topology{Spec: topologyv1.TopologySpec{
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{constraint("zone", matching("a", "b"))}, Affinity: &corev1.Affinity{NodeAffinity: inZone("a")},
	}}
	own, template, before := matching("own", "x"), &corev1.PodTemplateSpec{}, topo.DeepCopy()
	topology.Apply(template, topo, own)
	template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["a"] = "changed"
	template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Key = "changed"
	if diff := cmp.Diff(before, topo); diff != "" {
		t.Errorf("a change of the template changed the Topology (-before +after):\n%s", diff)
	}
}

func TestApplyOfNoTopologyChangesNothing(t *testing.T) {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: topology.Default("glance")}}
	before := template.DeepCopy()
	topology.Apply(template, nil, matching("a", "b"), topology.Consumer{Kind: "GlanceAPI", Name: "x"})
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("template (-before +after):\n%s", diff)
	}
}

func TestApplyNotesWhoseThePodsAre(t *testing.T) {
	template := &corev1.PodTemplateSpec{}
	consumers := []topology.Consumer{{Kind: "OpenStackDataPlaneRole", Name: "compute"}, {Kind: "OpenStackDataPlaneNode", Name: "n.0"}}
	topology.Apply(template, &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}, nil, consumers...)
	if got := template.Annotations[topologyv1.NameAnnotation]; got != "edge" {
		t.Errorf("the pods are noted as those of Topology %q", got)
	}
	if diff := cmp.Diff(consumers, topology.ParseConsumers(&corev1.Pod{ObjectMeta: template.ObjectMeta})); diff != "" {
		t.Errorf("consumers read back (-want +got):\n%s", diff)
	}
	if got := topology.ParseConsumers(&corev1.Pod{}); got != nil {
		t.Errorf("a pod without a Topology is that of %v", got)
	}
}

func TestConsumerOf(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := dataplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "edge-compute"}
	for want, obj := range map[topology.Consumer]client.Object{
		{Kind: "OpenStackDataPlaneRole", Name: "edge-compute"}: &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: meta},
		topology.NodesOf("compute"):                            &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: meta, Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Role: "compute"}},
	} {
		if got, err := topology.ConsumerOf(scheme, obj); err != nil || got != want {
			t.Errorf("%T is consumer %v (error %v); want %v", obj, got, err, want)
		}
	}
	if _, err := topology.ConsumerOf(scheme, &corev1.Pod{}); err == nil {
		t.Error("an object of a kind that the scheme does not know is a consumer without an error")
	}
}

func TestWhichFinalizersAreOurs(t *testing.T) {
	used := map[topology.Consumer]bool{{Kind: "GlanceAPI", Name: "a"}: true, topology.NodesOf("compute"): true}
	for finalizer, want := range map[string]struct{ ours, stale bool }{
		topologyv1.Finalizer:                            {true, false},
		"openstack.org/glanceapi-a":                     {true, false},
		"openstack.org/glanceapi-b":                     {true, true},
		"openstack.org/openstackdataplanenodes-compute": {true, false},
		"openstack.org/openstackdataplanenodes-other":   {true, true},
		"openstack.org/openstackdataplanenode-n1":       {true, true},
		"openstack.org/nova-nova":                       {true, true},
		"openstack.org/cinderapi-a":                     {false, false},
		"openstack.org/odd":                             {false, false},
		"example.com/glanceapi-b":                       {false, false},
		"foregroundDeletion":                            {false, false},
	} {
		if ours, stale := topology.IsOurs(finalizer), topology.IsStale(finalizer, used); ours != want.ours || stale != want.stale {
			t.Errorf("%s: ours %v, stale %v; want %+v", finalizer, ours, stale, want)
		}
	}
}

// Every kind with a topologyRef is one that a Topology is protected for.
func TestWhatObjectsReferToAndUse(t *testing.T) {
	one, two, three := ref("one"), ref("two"), ref("three")
	service := func(r *topologyv1.TopologyRef) *podifiedv1.Status { return &podifiedv1.Status{LastAppliedTopology: r} }
	cell := &novav1.NovaCell{}
	cell.Spec.TopologyRef, cell.Spec.ConductorServiceTemplate.TopologyRef = one, two
	cell.Status.Conductor, cell.Status.NoVNCProxy = service(three), service(one)
	nova := &novav1.Nova{}
	nova.Spec.TopologyRef, nova.Status.API, nova.Status.Scheduler = one, service(two), service(three)
	for want, obj := range map[string]client.Object{
		"[one two] [one three two]": cell,
		"[one] [one three two]":     nova,
		"[one] [one two]":           &glancev1.GlanceAPI{Spec: glancev1.GlanceAPISpec{APIService: glancev1.APIService{TopologyRef: one}}, Status: glancev1.GlanceAPIStatus{Status: *service(two)}},
		"[] [two]":                  &novav1.NovaCompute{Spec: novav1.NovaComputeSpec{TopologyRef: ref("")}, Status: novav1.NovaComputeStatus{Status: *service(two)}},
		"[two] [two]":               &dataplanev1.OpenStackDataPlaneRole{Spec: dataplanev1.OpenStackDataPlaneRoleSpec{TopologyRef: two}, Status: dataplanev1.OpenStackDataPlaneRoleStatus{LastAppliedTopology: two}},
		"[] []":                     &dataplanev1.OpenStackDataPlaneNode{},
	} {
		if got := fmt.Sprint(topology.Referred(obj), topology.Used(obj)); got != want {
			t.Errorf("%T: refers to and uses %s; want %s", obj, got, want)
		}
	}
	for _, kind := range topology.Kinds {
		obj, list := kind.Object(), kind.List()
		if name := reflect.TypeOf(obj).Elem().Name(); name != kind.Name || reflect.TypeOf(list).Elem().Name() != name+"List" {
			t.Errorf("kind %s has objects of %T and lists of %T", kind.Name, obj, list)
		}
	}
}
