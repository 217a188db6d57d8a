package metrics

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newObjects() *Objects { return &Objects{records: map[string]map[types.NamespacedName]record{}} }

// samples are the values of a collector, as name{label=value,...}.
func samples(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out[fmt.Sprintf("%s{%s}", f.GetName(), strings.Join(labels, ","))] = m.GetGauge().GetValue()
		}
	}
	return out
}

func api(name string, conditions ...*condition.Condition) *glancev1.GlanceAPI {
	obj := &glancev1.GlanceAPI{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, c := range conditions {
		obj.Status.Conditions.Set(c)
	}
	return obj
}

func misplaced(name string, reason condition.Reason) *glancev1.GlanceAPI {
	return api(name, condition.FalseCondition(topologyv1.PlacementReadyCondition, reason, condition.SeverityWarning, "x"),
		condition.FalseCondition(condition.ReadyCondition, reason, condition.SeverityWarning, "x"))
}

func deleted(name string, at time.Time) *topologyv1.Topology {
	return &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, DeletionTimestamp: &metav1.Time{Time: at}}}
}

func run(name, step string, made time.Time, status ansibleeev1.JobStatus) *ansibleeev1.OpenStackAnsibleEE {
	r := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.Time{Time: made}}}
	r.Spec.Step, r.Status.JobStatus = step, status
	return r
}

func provisioning(name string, since time.Time) *dataplanev1.OpenStackDataPlaneNode {
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	node.Status.BareMetalHost = &dataplanev1.ClaimedHost{Waiting: string(dataplanev1.MetalProvisioningReason), Since: &metav1.Time{Time: since}}
	return node
}

// fenced is a compute whose host is off, with guests that are not evacuated.
func fenced(name string, severity condition.Severity) *novav1.NovaExternalCompute {
	c := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: novav1.NovaExternalComputeSpec{CellName: "nova-cell1"}}
	c.Status.ComputeService, c.Status.Fence = &novav1.ComputeServiceStatus{Disabled: true}, &novav1.FenceStatus{By: "anna"}
	c.Status.Conditions.MarkFalse(novav1.EvacuatedCondition, novav1.GuestsRemainReason, severity, "x")
	return c
}

// stuck is a compute from or to whose host a guest is moved by a migration that stands still.
func stuck(name string) *novav1.NovaExternalCompute {
	c := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	c.Status.Conditions.MarkFalse(novav1.MigrationsProgressingCondition, novav1.MigrationsStuckReason, condition.SeverityError, "x")
	return c
}

// inPods is a compute with a service in nova for each status, and a pod that nova does not know.
func inPods(name string, services ...novav1.ComputeServiceStatus) *novav1.NovaCompute {
	c := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: novav1.NovaComputeSpec{CellName: "nova-cell1"}}
	c.Status.Hosts = []novav1.PodHostStatus{{Name: name + "-new"}}
	for i := range services {
		c.Status.Hosts = append(c.Status.Hosts, novav1.PodHostStatus{Name: fmt.Sprint(name, "-", i), ComputeService: &services[i]})
	}
	return c
}

func TestObjectsAreCountedByWhereTheyStand(t *testing.T) {
	o := newObjects()
	o.set("GlanceAPI", api("new"))
	o.set("GlanceAPI", api("ready", condition.TrueCondition(condition.ReadyCondition, "fine")))
	o.set("GlanceAPI", misplaced("a", topologyv1.UnsatisfiableReason))
	o.set("GlanceAPI", misplaced("b", topologyv1.UnsatisfiableReason))
	o.set("GlanceAPI", misplaced("c", condition.ErrorReason))
	o.set("Topology", deleted("old", noon))
	o.set("Topology", deleted("older", noon.Add(-time.Hour)))
	o.set("OpenStackAnsibleEE", run("first", "nova", noon, ansibleeev1.JobRunning))
	o.set("OpenStackAnsibleEE", run("second", "nova", noon.Add(time.Minute), ansibleeev1.JobPending))
	o.set("OpenStackAnsibleEE", run("done", "nova", noon.Add(-time.Hour), ansibleeev1.JobFailed))
	o.set("OpenStackAnsibleEE", run("own", "", noon.Add(-time.Minute), ""))
	o.set("OpenStackDataPlaneNode", provisioning("slow", noon.Add(-time.Hour)))
	o.set("OpenStackDataPlaneNode", provisioning("quick", noon))
	o.set("NovaExternalCompute", fenced("off", condition.SeverityError))
	o.set("NovaExternalCompute", fenced("too", condition.SeverityInfo))
	o.set("NovaExternalCompute", stuck("source"))
	o.set("NovaExternalCompute", stuck("target"))
	o.set("NovaCompute", inPods("ironic", novav1.ComputeServiceStatus{Up: true}, novav1.ComputeServiceStatus{Up: true}, novav1.ComputeServiceStatus{}))
	o.set("NovaCompute", inPods("other", novav1.ComputeServiceStatus{Disabled: true}))
	at := func(d time.Duration) float64 { return float64(noon.Add(d).Unix()) }
	want := map[string]float64{
		"edpm_computes_with_stuck_guests{condition=MigrationsProgressing,reason=MigrationsStuck}": 2,
		"edpm_objects{kind=NovaExternalCompute,ready=Unknown}":                                    4,
		"edpm_compute_services{cell=nova-cell1,state=fenced}":                                     2,
		"edpm_objects{kind=NovaCompute,ready=Unknown}":                                            2,
		"edpm_compute_services{cell=nova-cell1,state=up}":                                         2,
		"edpm_compute_services{cell=nova-cell1,state=down}":                                       1,
		"edpm_compute_services{cell=nova-cell1,state=disabled}":                                   1,
		"edpm_computes_with_stuck_guests{condition=Evacuated,reason=GuestsRemain}":                1,
		"edpm_objects{kind=GlanceAPI,ready=Unknown}":                                              1,
		"edpm_objects{kind=GlanceAPI,ready=True}":                                                 1,
		"edpm_objects{kind=GlanceAPI,ready=False}":                                                3,
		"edpm_objects{kind=Topology,ready=Unknown}":                                               2,
		"edpm_objects{kind=OpenStackAnsibleEE,ready=Unknown}":                                     4,
		"edpm_objects_deleting{kind=Topology}":                                                    2,
		"edpm_oldest_deletion_timestamp_seconds{kind=Topology}":                                   at(-time.Hour),
		"edpm_placement_problems{kind=GlanceAPI,reason=Unsatisfiable}":                            2,
		"edpm_objects{kind=OpenStackDataPlaneNode,ready=Unknown}":                                 2,
		"edpm_oldest_provisioning_timestamp_seconds{reason=BareMetalHostProvisioning}":            at(-time.Hour),
		"edpm_runs_unfinished{step=nova}":                                                         2,
		"edpm_runs_unfinished{step=}":                                                             1,
		"edpm_oldest_run_timestamp_seconds{step=nova}":                                            at(0),
		"edpm_oldest_run_timestamp_seconds{step=}":                                                at(-time.Minute),
	}
	if diff := cmp.Diff(want, samples(t, o)); diff != "" {
		t.Errorf("the metrics differ (-want +got):\n%s", diff)
	}
}

func TestAnObjectCountsOnceAndNoLongerThanItExists(t *testing.T) {
	o := newObjects()
	o.set("GlanceAPI", misplaced("a", topologyv1.UnsatisfiableReason))
	o.set("GlanceAPI", misplaced("a", topologyv1.MinDomainsUnmetReason))
	o.set("Topology", deleted("t", noon))
	o.set("OpenStackAnsibleEE", run("r", "nova", noon, ansibleeev1.JobRunning))
	want := map[string]float64{
		"edpm_objects{kind=GlanceAPI,ready=False}":                       1,
		"edpm_placement_problems{kind=GlanceAPI,reason=MinDomainsUnmet}": 1,
	}
	o.remove("Topology", deleted("t", noon))
	o.remove("OpenStackAnsibleEE", cache.DeletedFinalStateUnknown{Key: "ns/r", Obj: run("r", "nova", noon, ansibleeev1.JobRunning)})
	if diff := cmp.Diff(want, samples(t, o)); diff != "" {
		t.Errorf("the metrics differ (-want +got):\n%s", diff)
	}
}

func TestMetricsAreNamedAsPrometheusAsks(t *testing.T) {
	o := newObjects()
	o.set("GlanceAPI", misplaced("a", topologyv1.UnsatisfiableReason))
	o.set("Topology", deleted("t", noon))
	o.set("OpenStackAnsibleEE", run("r", "nova", noon, ansibleeev1.JobRunning))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o)
	families, err := registry.Gather()
	if err != nil || len(families) != 6 {
		t.Fatalf("there are %d metrics, %v; want all 6", len(families), err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestSeriesAreBoundedWhateverObjectsThereAre(t *testing.T) {
	steps := Steps
	Steps = NewVocabulary(MaxSteps)
	t.Cleanup(func() { Steps = steps })
	o := newObjects()
	for i := range 1000 {
		name := fmt.Sprint("x-", i)
		o.set("GlanceAPI", misplaced(name, condition.Reason(fmt.Sprint("Reason", i))))
		odd := api(name+"-odd", condition.FalseCondition(condition.ReadyCondition, "x", condition.SeverityInfo, "x"))
		odd.Status.Conditions[0].Status = "Perhaps"
		o.set("GlanceAPI", odd)
		o.set("Topology", deleted(name, noon))
		o.set("OpenStackAnsibleEE", run(name, name, noon, ansibleeev1.JobRunning))
	}
	got := samples(t, o)
	if n := len(got); n > 80 || got["edpm_runs_unfinished{step="+Other+"}"] == 0 {
		t.Errorf("there are %d series: %v", n, got)
	}
}

func TestAVocabularyKeepsWhatCameFirst(t *testing.T) {
	v := NewVocabulary(2)
	var got []string
	for _, name := range []string{"", "a", "b", "c", "a", "", "b", "d"} {
		got = append(got, v.Value(name))
	}
	if diff := cmp.Diff([]string{"", "a", "b", Other, "a", "", "b", Other}, got); diff != "" {
		t.Errorf("the values differ (-want +got):\n%s", diff)
	}
}

func TestManagersThatStartTogetherReplaceEachOther(t *testing.T) {
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() { Replace(newObjects()) })
	}
	all.Wait()
	if crmetrics.Registry.Unregister(newObjects()); crmetrics.Registry.Unregister(newObjects()) {
		t.Error("more than one collector of objects is registered")
	}
}

func TestReplaceTakesThePlaceOfTheFormer(t *testing.T) {
	former, next := newObjects(), newObjects()
	former.set("Topology", deleted("former", noon))
	next.set("Glance", &glancev1.Glance{})
	Replace(former)
	Replace(next)
	t.Cleanup(func() { crmetrics.Registry.Unregister(next) })
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "edpm_objects_deleting" {
			t.Error("the former collector is still registered")
		}
	}
}
