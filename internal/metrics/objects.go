package metrics

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

var (
	objectsDesc = prometheus.NewDesc("edpm_objects",
		"Objects by kind and status of their condition Ready.", []string{"kind", "ready"}, nil)
	deletingDesc = prometheus.NewDesc("edpm_objects_deleting",
		"Objects that are being deleted, by kind.", []string{"kind"}, nil)
	oldestDeletionDesc = prometheus.NewDesc("edpm_oldest_deletion_timestamp_seconds",
		"When the object that has been terminating for the longest time was deleted, by kind, in seconds since the epoch.", []string{"kind"}, nil)
	placementDesc = prometheus.NewDesc("edpm_placement_problems",
		"Objects whose condition PlacementReady is False, by kind and reason.", []string{"kind", "reason"}, nil)
	unfinishedDesc = prometheus.NewDesc("edpm_runs_unfinished",
		"Runs of Ansible that have not finished, by step; step is empty for runs that users created.", []string{"step"}, nil)
	provisioningDesc = prometheus.NewDesc("edpm_oldest_provisioning_timestamp_seconds",
		"Since when the node waits that has waited longest for its BareMetalHost, by reason, in seconds since the epoch.", []string{"reason"}, nil)
	servicesDesc = prometheus.NewDesc("edpm_compute_services",
		"Services nova-compute on hosts and in pods, as nova shows them, by cell and state.", []string{"cell", "state"}, nil)
	stuckDesc = prometheus.NewDesc("edpm_computes_with_stuck_guests",
		"Computes with guests that are not moved though they are to be, by condition (Drained, Evacuated, MigrationsProgressing) and reason.", []string{"condition", "reason"}, nil)
	oldestRunDesc = prometheus.NewDesc("edpm_oldest_run_timestamp_seconds",
		"When the oldest run that has not finished was created, by step, in seconds since the epoch.", []string{"step"}, nil)
)

// Objects counts the objects of edpm-operators. It follows the caches that the
// controllers have anyway, so that it costs the API server nothing, and counts
// in the manager only whose controllers run.
type Objects struct {
	mu      sync.Mutex
	records map[string]map[types.NamespacedName]record
}

// record is what counts of one object. Times are in seconds since the epoch,
// zero for never.
type record struct {
	ready      string
	misplaced  string
	deleted    int64
	unfinished int64
	step       string
	// waiting is for what a node waits of its BareMetalHost, and since is since when.
	waiting string
	since   int64
	// services is what nova says of those of a compute, and cell its cell.
	services []string
	cell     string
	// stuck is the condition that says that guests are not moved, with its reason.
	stuck labels
}

// SetupWithManager makes the manager count objects of the given kinds.
func SetupWithManager(mgr manager.Manager, kinds ...phase.Object) error {
	o := &Objects{records: map[string]map[types.NamespacedName]record{}}
	Replace(o)
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for _, kind := range kinds {
			if err := o.follow(ctx, mgr, kind); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}))
}

// follow counts the objects of a kind from now on.
func (o *Objects) follow(ctx context.Context, mgr manager.Manager, kind client.Object) error {
	gvk, err := apiutil.GVKForObject(kind, mgr.GetScheme())
	if err != nil {
		return err
	}
	informer, err := mgr.GetCache().GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("counting objects of kind %s: %w", gvk.Kind, err)
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { o.set(gvk.Kind, obj) },
		UpdateFunc: func(_, obj any) { o.set(gvk.Kind, obj) },
		DeleteFunc: func(obj any) { o.remove(gvk.Kind, obj) },
	})
	return err
}

func (o *Objects) set(kind string, obj any) {
	object, ok := obj.(phase.Object)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.records[kind] == nil {
		o.records[kind] = map[types.NamespacedName]record{}
	}
	o.records[kind][client.ObjectKeyFromObject(object)] = newRecord(object)
}

func (o *Objects) remove(kind string, obj any) {
	if gone, missed := obj.(cache.DeletedFinalStateUnknown); missed {
		obj = gone.Obj
	}
	object, ok := obj.(client.Object)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.records[kind], client.ObjectKeyFromObject(object))
}

func newRecord(obj phase.Object) record {
	conditions := obj.GetConditions()
	r := record{ready: readiness(conditions)}
	if c := conditions.Get(topologyv1.PlacementReadyCondition); c != nil && c.Status == corev1.ConditionFalse && slices.Contains(topologyv1.PlacementReasons, c.Reason) {
		r.misplaced = string(c.Reason)
	}
	if t := obj.GetDeletionTimestamp(); t != nil {
		r.deleted = t.Unix()
	}
	if run, ok := obj.(*ansibleeev1.OpenStackAnsibleEE); ok && !run.Finished() {
		r.unfinished, r.step = run.CreationTimestamp.Unix(), Steps.Value(run.Spec.Step)
	}
	if node, ok := obj.(*dataplanev1.OpenStackDataPlaneNode); ok {
		if host := node.Status.BareMetalHost; host != nil && host.Since != nil {
			r.waiting, r.since = host.Waiting, host.Since.Unix()
		}
	}
	r.countServices(obj)
	r.stuck = stuckGuests(conditions)
	return r
}

// countServices counts the services of a compute that nova knows. In pods a compute has several.
func (r *record) countServices(obj phase.Object) {
	cell := ""
	switch compute := obj.(type) {
	case *novav1.NovaExternalCompute:
		cell, r.services = compute.Spec.CellName, serviceState(compute.Status.ComputeService, compute.Status.Fence)
	case *novav1.NovaCompute:
		cell = compute.Spec.CellName
		for _, host := range compute.Status.Hosts {
			r.services = append(r.services, serviceState(host.ComputeService, nil)...)
		}
	}
	if len(r.services) > 0 {
		r.cell = Cells.Value(cell)
	}
}

// stuckGuests is the condition that says that guests are not moved until a person does
// something, or nova answers again, with its reason.
func stuckGuests(conditions *condition.Conditions) labels {
	for _, t := range []condition.Type{novav1.DrainedCondition, novav1.EvacuatedCondition, novav1.MigrationsProgressingCondition} {
		if c := conditions.Get(t); c != nil && c.Status == corev1.ConditionFalse && c.Severity != condition.SeverityInfo {
			return labels{string(t), string(c.Reason)}
		}
	}
	return labels{}
}

// serviceState is what nova says of a service, none if nothing. It is down only if it should be up:
// one that is disabled may be down as well.
func serviceState(service *novav1.ComputeServiceStatus, fence *novav1.FenceStatus) []string {
	switch {
	case service == nil:
		return nil
	case fence != nil:
		return []string{"fenced"}
	case service.Disabled:
		return []string{"disabled"}
	case service.Up:
		return []string{"up"}
	}
	return []string{"down"}
}

// readiness is the status of Ready, which is Unknown as long as no one has set it.
func readiness(conditions *condition.Conditions) string {
	switch {
	case conditions.IsTrue(condition.ReadyCondition):
		return string(corev1.ConditionTrue)
	case conditions.IsFalse(condition.ReadyCondition):
		return string(corev1.ConditionFalse)
	}
	return string(corev1.ConditionUnknown)
}

// Describe implements prometheus.Collector.
func (o *Objects) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{objectsDesc, deletingDesc, oldestDeletionDesc, placementDesc, unfinishedDesc, oldestRunDesc, provisioningDesc, servicesDesc, stuckDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (o *Objects) Collect(ch chan<- prometheus.Metric) {
	t := o.tally()
	t.objects.send(ch, objectsDesc, 2)
	t.deleting.send(ch, deletingDesc, 1)
	t.oldestDeletion.send(ch, oldestDeletionDesc, 1)
	t.misplaced.send(ch, placementDesc, 2)
	t.unfinished.send(ch, unfinishedDesc, 1)
	t.oldestRun.send(ch, oldestRunDesc, 1)
	t.provisioning.send(ch, provisioningDesc, 1)
	t.services.send(ch, servicesDesc, 2)
	t.stuck.send(ch, stuckDesc, 2)
}

// tally is the values of all metrics.
type tally struct{ objects, deleting, oldestDeletion, misplaced, unfinished, oldestRun, provisioning, services, stuck values }

func (o *Objects) tally() tally {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := tally{values{}, values{}, values{}, values{}, values{}, values{}, values{}, values{}, values{}}
	for kind, records := range o.records {
		for _, r := range records {
			t.add(kind, r)
		}
	}
	return t
}

func (t *tally) add(kind string, r record) {
	t.objects[labels{kind, r.ready}]++
	if r.misplaced != "" {
		t.misplaced[labels{kind, r.misplaced}]++
	}
	if r.deleted > 0 {
		t.deleting[labels{kind}]++
		t.oldestDeletion.least(labels{kind}, r.deleted)
	}
	if r.unfinished > 0 {
		t.unfinished[labels{r.step}]++
		t.oldestRun.least(labels{r.step}, r.unfinished)
	}
	if r.since > 0 {
		t.provisioning.least(labels{r.waiting}, r.since)
	}
	for _, state := range r.services {
		t.services[labels{r.cell, state}]++
	}
	if r.stuck != (labels{}) {
		t.stuck[r.stuck]++
	}
}

// labels are the values of one or two labels.
type labels [2]string

// values of one metric.
type values map[labels]int64

func (v values) least(l labels, n int64) {
	if old, ok := v[l]; !ok || n < old {
		v[l] = n
	}
}

// send sends the values of a metric with so many labels.
func (v values) send(ch chan<- prometheus.Metric, desc *prometheus.Desc, n int) {
	for l, value := range v {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), l[:n]...)
	}
}
