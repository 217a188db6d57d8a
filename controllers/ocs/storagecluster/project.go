package storagecluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/osd"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// readOSDs reads the pods and claims of OSDs.
func (s *scope) readOSDs(ctx context.Context) error {
	opts := []client.ListOption{client.InNamespace(s.cluster.Namespace), client.MatchingFields{osdIndex: "true"}, client.UnsafeDisableDeepCopy}
	pods, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{pods, claims} {
		if err := s.List(ctx, list, opts...); err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
	}
	s.pods, s.claims = pointers(pods.Items), pointers(claims.Items)
	return nil
}

func pointers[T any](items []T) []*T {
	result := make([]*T, len(items))
	for i := range items {
		result[i] = &items[i]
	}
	return result
}

// predict predicts where the OSDs go that are to come.
func (s *scope) predict(ctx context.Context, workloads []placement.Workload) ([]placement.Prediction, error) {
	name := client.ObjectKeyFromObject(s.cluster)
	// From here on what changes concerns them: it may come too late for the snapshot.
	s.waiting.Note(name, "", workloads...)
	predictions, err := s.Predictor.PredictAll(ctx, placement.Key{Kind: controllerName, NamespacedName: name}, workloads)
	if err == nil && !slices.ContainsFunc(predictions, func(v placement.Prediction) bool { return !v.Fits() }) {
		s.waiting.Note(name, "")
	}
	return predictions, err
}

// project is the phase that shows where the OSDs are and would go. A problem does
// not hold the CephCluster up: Rook waits for the scheduler as well.
func (s *scope) project(ctx context.Context) error {
	status := &s.cluster.Status
	plan := s.decision.DeviceSets
	observed := osd.Observed{Nodes: s.nodes, Eligible: s.eligible, Namespace: s.cluster.Namespace, Pods: s.pods, Claims: s.claims}
	s.waiting.Note(client.ObjectKeyFromObject(s.cluster), "")
	projections, err := osd.Project(ctx, s.predict, observed, s.decision.All, plan)
	if err != nil {
		return err
	}
	status.DeviceSets, status.OSDs = nil, 0
	total, problems, unplayed := map[string]int{}, []placement.Problem(nil), 0
	for i, p := range projections {
		status.DeviceSets = append(status.DeviceSets, s.statusOf(&plan[i], p))
		status.OSDs += int32(plan[i].OSDs())
		problems, unplayed = append(problems, p.Problems...), unplayed+p.Unplayed
		for domain, n := range p.Domains {
			total[domain] += n
		}
	}
	status.SpreadSummary = placement.Summarize(total)
	uneven := unevenClasses(plan, projections)
	switch {
	case len(problems) > 0:
		status.Conditions.MarkFalse(topologyv1.PlacementReadyCondition, problems[0].Reason, condition.SeverityWarning, "%s", strings.TrimSpace(placement.Describe(problems)+" "+uneven))
	case uneven != "":
		status.Conditions.MarkFalse(topologyv1.PlacementReadyCondition, ocsv1.DeviceClassUnevenReason, condition.SeverityWarning, "%s", uneven)
	case unplayed > 0:
		status.Conditions.MarkTrue(topologyv1.PlacementReadyCondition, "The next %d OSDs would be scheduled; %d more were not predicted, and are not in the distribution", osd.MaxPlayed, unplayed)
	default:
		status.Conditions.MarkTrue(topologyv1.PlacementReadyCondition, "All OSDs are scheduled or can be scheduled")
	}
	return nil
}

// unevenClasses says which domains lack a device class, and what to do; empty if none.
func unevenClasses(plan []osd.DeviceSet, projections []osd.Projection) string {
	uneven := osd.UnevenClasses(plan, projections)
	if len(uneven) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: pools of that class cannot have a copy there. To fix it, set spec.osdPlacement.mode: FailureDomain, which spreads each device class by itself where Rook labels the pods of OSDs with device-class, before the OSDs are created, or add OSDs to the device set",
		strings.Join(uneven, "; "))
}

// statusOf returns the status of a device set. What it says of the CephCluster is what
// it said before: that changes with the CephCluster only.
func (s *scope) statusOf(set *osd.DeviceSet, p osd.Projection) ocsv1.DeviceSetStatus {
	status := ocsv1.DeviceSetStatus{}
	if at := slices.IndexFunc(s.before, func(b ocsv1.DeviceSetStatus) bool { return b.Name == set.Name }); at >= 0 {
		status.Placement, status.Hash, status.StorageClassDeviceSets = s.before[at].Placement, s.before[at].Hash, s.before[at].StorageClassDeviceSets
	}
	status.Name, status.OSDs, status.Skew = set.Name, int32(set.OSDs()), int32(p.Skew())
	domains := slices.Sorted(maps.Keys(p.Domains))
	for _, domain := range domains[:min(len(domains), ocsv1.MaxDomains)] {
		status.Distribution = append(status.Distribution, ocsv1.DomainOSDs{Domain: domain, OSDs: int32(p.Domains[domain])})
	}
	return status
}
