package osd

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// snapshotOf has the nodes and the class of makeSet, which makes volumes where a pod is.
func snapshotOf(nodes []*corev1.Node) placement.Snapshot {
	return placement.Snapshot{Nodes: nodes, StorageClasses: []*storagev1.StorageClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "gp2"}, Provisioner: "ebs.csi.aws.com", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}}}
}

// predictIn predicts in a snapshot.
func predictIn(snapshot placement.Snapshot) Predict {
	return func(ctx context.Context, workloads []placement.Workload) ([]placement.Prediction, error) {
		return placement.PredictAll(ctx, snapshot, workloads)
	}
}

func observed(snapshot placement.Snapshot, eligible []*corev1.Node) Observed {
	return Observed{Nodes: snapshot.Nodes, Eligible: eligible, Namespace: ns, Pods: snapshot.Pods, Claims: snapshot.PersistentVolumeClaims}
}

func project(t *testing.T, snapshot placement.Snapshot, spec *ocsv1.StorageClusterSpec, key string, planned ...DeviceSet) []Projection {
	t.Helper()
	if planned == nil {
		decision, err := Decide(spec, key, Ceph{}, Record{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		planned = decision.DeviceSets
	}
	eligible, err := Eligible(spec, snapshot.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Project(t.Context(), predictIn(snapshot), observed(snapshot, eligible), Placements(spec)["all"], planned)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The numbers of the issue: as even as possible, however many zones there are.
func TestOSDsAreSpreadEvenly(t *testing.T) {
	for _, zones := range []int{3, 4, 5} {
		for _, total := range []int{3, 6, 9, 12} {
			for _, layout := range []ocsv1.DeviceSetLayout{ocsv1.LayoutSplit, ocsv1.LayoutSingle} {
				t.Run(fmt.Sprintf("%d OSDs over %d zones, %s", total, zones, layout), func(t *testing.T) {
					perZone := make([]int, zones)
					for i := range perZone {
						perZone[i] = 3
					}
					spec := specOf(makeSet("a", int32(total), 0))
					spec.DeviceSetLayout = layout
					got := project(t, snapshotOf(inZones(perZone...)), spec, zone)[0]
					even(t, got, total, zones)
				})
			}
		}
	}
}

// even expects that no domain has more than one OSD more than another.
func even(t *testing.T, p Projection, total, domains int) {
	t.Helper()
	sum := 0
	for _, n := range p.Domains {
		sum += n
	}
	want := min(total%domains, 1)
	if sum != total || len(p.Domains) != domains || p.Skew() != want || len(p.Problems) > 0 {
		t.Errorf("%d OSDs over %v, skew %d, problems %v; want %d OSDs over %d domains, skew %d", sum, p.Domains, p.Skew(), p.Problems, total, domains, want)
	}
}

func TestAZoneWithTwiceTheNodesGetsNoMore(t *testing.T) {
	even(t, project(t, snapshotOf(inZones(4, 2, 2)), specOf(makeSet("a", 9, 0)), zone)[0], 9, 3)
}

func TestSeveralDeviceSetsAreSpreadTogether(t *testing.T) {
	got := project(t, snapshotOf(inZones(2, 2, 2, 2)), specOf(makeSet("a", 1, 3), makeSet("b", 1, 1)), zone)
	total := map[string]int{}
	for _, p := range got {
		for domain, n := range p.Domains {
			total[domain] += n
		}
	}
	if diff := cmp.Diff(map[string]int{"zone0": 1, "zone1": 1, "zone2": 1, "zone3": 1}, total); diff != "" {
		t.Errorf("both together (-want +got):\n%s", diff)
	}
}

func TestOSDsThatRunCountWhereTheyAre(t *testing.T) {
	snapshot := snapshotOf(inZones(2, 2, 2))
	for i, node := range []string{"z0-n0", "z0-n1"} {
		claim := makeClaim("a-0", i)
		snapshot.PersistentVolumeClaims = append(snapshot.PersistentVolumeClaims, claim)
		snapshot.Pods = append(snapshot.Pods, makeOSD(fmt.Sprint(i), claim, node))
	}
	even(t, project(t, snapshot, specOf(makeSet("a", 2, 3)), zone)[0], 6, 3)
}

func TestAFinishedJobIsCountedByItsDaemonOnly(t *testing.T) {
	snapshot, claim := snapshotOf(inZones(1, 1, 1)), makeClaim("a-0", 0)
	job := makeOSD("x", claim, "z0-n0")
	job.Labels["app"], job.Status.Phase = jobs, corev1.PodSucceeded
	snapshot.PersistentVolumeClaims, snapshot.Pods = []*corev1.PersistentVolumeClaim{claim}, []*corev1.Pod{job, makeOSD("0", claim, "z1-n0")}
	got := project(t, snapshot, specOf(makeSet("a", 1, 1)), zone)[0]
	if diff := cmp.Diff(map[string]int{"zone0": 0, "zone1": 1, "zone2": 0}, got.Domains); diff != "" || got.Skew() != 1 {
		t.Errorf("skew %d (-want +got):\n%s", got.Skew(), diff)
	}
}

// An OSD whose node is down comes back where its volume is.
func TestAnOSDWithoutANodeGoesWhereItsVolumeIs(t *testing.T) {
	snapshot, claim := snapshotOf(inZones(1, 1, 1)), makeClaim("a-0", 0)
	claim.Spec = makeSet("a", 1, 1).DataPVCTemplate.Spec
	claim.Spec.VolumeName, claim.Annotations = "pv", map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	claim.Status.Phase = corev1.ClaimBound
	snapshot.PersistentVolumeClaims = []*corev1.PersistentVolumeClaim{claim}
	snapshot.PersistentVolumes = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: "gp2", AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
		Capacity:     corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")},
		ClaimRef:     &corev1.ObjectReference{Namespace: ns, Name: claim.Name},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: requires(in(zone, "zone2")).RequiredDuringSchedulingIgnoredDuringExecution},
	}}}
	pending := makeOSD("0", claim, "")
	snapshot.Pods = []*corev1.Pod{pending}
	got := project(t, snapshot, specOf(makeSet("a", 1, 1)), zone)[0]
	if diff := cmp.Diff(map[string]int{"zone0": 0, "zone1": 0, "zone2": 1}, got.Domains); diff != "" || len(got.Problems) > 0 {
		t.Errorf("problems %v (-want +got):\n%s", got.Problems, diff)
	}
}

func TestAClaimOfEachIndexIsOneOSD(t *testing.T) {
	snapshot := snapshotOf(inZones(1, 1, 1))
	data, meta := makeClaim("a-0", 0), makeClaim("a-0", 0)
	meta.Name = "a-0-metadata-0x"
	snapshot.PersistentVolumeClaims = []*corev1.PersistentVolumeClaim{meta, data}
	snapshot.Pods = []*corev1.Pod{makeOSD("0", data, "z2-n0")}
	got := project(t, snapshot, specOf(makeSet("a", 1, 1)), zone)[0]
	if diff := cmp.Diff(map[string]int{"zone0": 0, "zone1": 0, "zone2": 1}, got.Domains); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNewOSDsEvenOutThoseThatWerePinned(t *testing.T) {
	spec := specOf(makeSet("old", 1, 3), makeSet("new", 1, 3))
	snapshot := snapshotOf(inZones(2, 2, 2, 2, 2, 2))
	old := pinned("old-0", "old-1", "old-2")
	for i := range old {
		claim := makeClaim(old[i].Name, 0)
		snapshot.PersistentVolumeClaims = append(snapshot.PersistentVolumeClaims, claim)
		snapshot.Pods = append(snapshot.Pods, makeOSD(fmt.Sprint(i), claim, fmt.Sprintf("z%d-n0", i)))
	}
	planned := plan(t, spec, old)
	got := project(t, snapshot, spec, zone, planned...)
	if planned[0].Placement != "Legacy" || planned[1].Placement != "Constraints" {
		t.Fatalf("the plan is %+v", planned)
	}
	if diff := cmp.Diff(map[string]int{"zone0": 0, "zone1": 0, "zone2": 0, "zone3": 1, "zone4": 1, "zone5": 1}, got[1].Domains); diff != "" {
		t.Errorf("the new ones (-want +got):\n%s", diff)
	}
}

// Pinned sets are played with their own placement.
func TestLegacySetsGoWhereTheyArePinned(t *testing.T) {
	spec := specOf(makeSet("old", 2, 3))
	old := pinned("old-0", "old-1", "old-2")
	for i := range old {
		old[i].Count = 2
	}
	got := project(t, snapshotOf(inZones(2, 2, 2, 2)), spec, zone, plan(t, spec, old)...)[0]
	if diff := cmp.Diff(map[string]int{"zone0": 2, "zone1": 2, "zone2": 2, "zone3": 0}, got.Domains); diff != "" || got.Skew() != 2 {
		t.Errorf("skew %d (-want +got):\n%s", got.Skew(), diff)
	}
}

func TestNoOSDGoesToTheZoneOfAnArbiter(t *testing.T) {
	nodes := inZones(2, 2, 2) // those of zone2 have the storage label by mistake
	got := project(t, snapshotOf(nodes), withArbiter(specOf(makeSet("a", 1, 4)), "zone2"), zone)[0]
	if diff := cmp.Diff(map[string]int{"zone0": 2, "zone1": 2}, got.Domains); diff != "" || len(got.Problems) > 0 {
		t.Errorf("problems %v (-want +got):\n%s", got.Problems, diff)
	}
}

func TestWhatKeepsOSDsFromTheirPlace(t *testing.T) {
	taken := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	unlabelled, tainted := plain(3), inZones(1, 1, 1)
	for _, node := range tainted {
		node.Spec.Taints = []corev1.Taint{taken}
	}
	for name, c := range map[string]struct {
		snapshot placement.Snapshot
		set      ocsv1.StorageDeviceSet
		reason   condition.Reason
	}{
		"nodes without the label": {snapshotOf(unlabelled), makeSet("a", 3, 0), topologyv1.MissingNodeLabelReason},
		"a taint":                 {snapshotOf(tainted), makeSet("a", 3, 0), topologyv1.UnsatisfiableReason},
		"a class that is not there": {
			snapshotOf(inZones(1, 1, 1)), makeSet("a", 3, 0, func(s *ocsv1.StorageDeviceSet) { s.DataPVCTemplate.Spec.StorageClassName = ptr.To("typo") }), topologyv1.UnsatisfiableReason,
		},
		"a constraint of a person that selects nothing": {
			snapshotOf(inZones(1, 1, 1)), makeSet("a", 3, 0, func(s *ocsv1.StorageDeviceSet) {
				s.Placement.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread(zone, hard, "typo")}
			}), topologyv1.InertSelectorReason,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := project(t, c.snapshot, specOf(c.set), zone)[0]
			if len(got.Problems) == 0 || got.Problems[0].Reason != c.reason || got.Problems[0].Remedy == "" {
				t.Errorf("the problems are %+v; want %s", got.Problems, c.reason)
			}
		})
	}
}

// A zone whose nodes are drained or dedicated counts as an empty domain, for Jobs that prepare
// OSDs (rook#5932) as for pods of services.
func TestAZoneThatTakesNoOSDHasARemedyThatHelps(t *testing.T) {
	for name, taint := range map[string]corev1.Taint{
		"cordoned":  {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
		"dedicated": {Key: "dedicated", Effect: corev1.TaintEffectNoSchedule},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := inZones(2, 2, 2)
			for _, node := range nodes[4:] {
				node.Spec.Unschedulable, node.Spec.Taints = name == "cordoned", []corev1.Taint{taint}
			}
			set := makeSet("a", 6, 0)
			got := project(t, snapshotOf(nodes), specOf(set), zone)[0]
			want := "set nodeTaintsPolicy: Honor in the topology spread constraint on " + zone
			if len(got.Problems) == 0 || !strings.HasPrefix(got.Problems[0].Remedy, want) || !strings.Contains(got.Problems[0].Remedy, "(z2-n0, z2-n1)") {
				t.Fatalf("the problems are %+v; want first %q, and the nodes", got.Problems, want)
			}
			counted := spread(zone, hard, "rook-ceph-osd", "rook-ceph-osd-prepare")
			counted.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
			set.PreparePlacement = ptr.To(constraints(counted))
			if got = project(t, snapshotOf(nodes), specOf(set), zone)[0]; len(got.Problems) > 0 || got.Domains["zone0"] != 3 || got.Domains["zone1"] != 3 {
				t.Errorf("with it the OSDs go to %v, and the problems are %+v", got.Domains, got.Problems)
			}
		})
	}
}

func TestNodesWithoutTheLabelAreShown(t *testing.T) {
	snapshot, claim := snapshotOf(append(inZones(1, 1, 1), makeNode("outside"))), makeClaim("a-0", 0)
	snapshot.PersistentVolumeClaims, snapshot.Pods = []*corev1.PersistentVolumeClaim{claim}, []*corev1.Pod{makeOSD("0", claim, "outside")}
	got := project(t, snapshot, specOf(makeSet("a", 1, 1)), zone)[0]
	if got.Domains[NoDomain] != 1 || got.Skew() != 0 {
		t.Errorf("%v, skew %d", got.Domains, got.Skew())
	}
}

// A quiet cluster costs nothing: what runs is not played.
func TestNothingIsPlayedWhileNothingIsToBeDone(t *testing.T) {
	snapshot := snapshotOf(inZones(1, 1, 1))
	for i := range 3 {
		claim := makeClaim(fmt.Sprintf("a-%d", i), 0)
		snapshot.PersistentVolumeClaims = append(snapshot.PersistentVolumeClaims, claim)
		snapshot.Pods = append(snapshot.Pods, makeOSD(fmt.Sprint(i), claim, fmt.Sprintf("z%d-n0", i)))
	}
	set := makeSet("a", 1, 3, func(s *ocsv1.StorageDeviceSet) {
		// A selector that the scheduler would refuse, were it asked.
		c := spread(zone, hard, "x")
		c.LabelSelector.MatchExpressions[0].Operator = "Is"
		s.Placement.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c}
	})
	even(t, project(t, snapshot, specOf(set), zone)[0], 3, 3)
}

// A slip in a number must not keep the manager busy for hours.
func TestOnlySoManyOSDsArePlayed(t *testing.T) {
	if testing.Short() {
		t.Skip("as many OSDs are played as ever, which takes seconds")
	}
	got := project(t, snapshotOf(inZones(20, 20, 20)), specOf(makeSet("a", 10000, 100), makeSet("b", 1, 3)), zone)
	played := 0
	for _, p := range got {
		for _, n := range p.Domains {
			played += n
		}
	}
	if played != MaxPlayed || got[0].Unplayed != 1000000-MaxPlayed || got[1].Unplayed != 3 || got[0].Skew() > 1 {
		t.Errorf("%d are played, and %d and %d left out", played, got[0].Unplayed, got[1].Unplayed)
	}
}

func TestSkewOfNothing(t *testing.T) {
	if got := (Projection{}).Skew(); got != 0 {
		t.Errorf("the skew is %d", got)
	}
	if got := (Projection{Domains: maps.Clone(map[string]int{NoDomain: 5})}).Skew(); got != 0 {
		t.Errorf("the skew of OSDs in no domain is %d", got)
	}
}

func TestOSDsThatDoNotFitAreProblems(t *testing.T) {
	large := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("17")}}
	text := map[string]any{"limits": map[string]any{"cpu": "17"}}
	busy := snapshotOf(inZones(1, 1, 1))
	for i, node := range busy.Nodes {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "another", Name: fmt.Sprint(i)}}
		pod.Spec.NodeName, pod.Spec.Containers = node.Name, []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("15")}}}}
		busy.Pods = append(busy.Pods, pod)
	}
	for name, c := range map[string]struct {
		snapshot placement.Snapshot
		set      corev1.ResourceRequirements
		ceph     map[string]any
		fits     bool
	}{
		"a set that asks for nothing fits":                {busy, corev1.ResourceRequirements{}, nil, true},
		"a set that is too large for any node":            {snapshotOf(inZones(1, 1, 1)), large, nil, false},
		"a set that is too large next to other pods":      {busy, corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}, nil, false},
		"a limit counts where nothing is requested":       {snapshotOf(inZones(1, 1, 1)), corev1.ResourceRequirements{Limits: large.Requests}, nil, false},
		"Rook takes the resources of all OSDs for it":     {snapshotOf(inZones(1, 1, 1)), corev1.ResourceRequirements{}, map[string]any{"osd": text}, false},
		"Rook prefers those of the device class":          {snapshotOf(inZones(1, 1, 1)), corev1.ResourceRequirements{}, map[string]any{"osd": text, "osd-ssd": map[string]any{"requests": map[string]any{"cpu": "1"}}}, true},
		"a set that has its own does not have Rook's":     {snapshotOf(inZones(1, 1, 1)), corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}, map[string]any{"osd": text}, true},
		"the Job may be larger than the daemon":           {snapshotOf(inZones(1, 1, 1)), corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}, map[string]any{"prepareosd": text}, false},
		"the resources of other daemons are of no matter": {snapshotOf(inZones(1, 1, 1)), corev1.ResourceRequirements{}, map[string]any{"mon": text}, true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(makeSet("a", 1, 3, func(s *ocsv1.StorageDeviceSet) { s.Resources, s.DeviceClass = c.set, "ssd" }))
			d := decide(t, spec, Ceph{Exists: true, Resources: c.ceph})
			got := project(t, c.snapshot, spec, zone, d.DeviceSets...)[0]
			if fits := len(got.Problems) == 0; fits != c.fits {
				t.Errorf("problems %v; want none: %v", got.Problems, c.fits)
			}
		})
	}
}

// Device sets share what a quota leaves, and volumes that exist.
func TestDeviceSetsShareQuotasAndVolumes(t *testing.T) {
	spec := specOf(makeSet("a", 1, 1), makeSet("b", 1, 1))
	one := corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("1")}
	counted := snapshotOf(inZones(1, 1, 1))
	counted.ResourceQuotas = []*corev1.ResourceQuota{{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "claims"}, Spec: corev1.ResourceQuotaSpec{Hard: one},
		Status: corev1.ResourceQuotaStatus{Hard: one, Used: corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("0")}},
	}}
	byHand := snapshotOf(inZones(1, 1, 1))
	byHand.StorageClasses[0].Provisioner = "kubernetes.io/no-provisioner"
	claim := makeSet("a", 1, 1).DataPVCTemplate.Spec
	byHand.PersistentVolumes = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: "gp2", AccessModes: claim.AccessModes, VolumeMode: claim.VolumeMode, Capacity: claim.Resources.Requests,
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: requires(in(zone, "zone2")).RequiredDuringSchedulingIgnoredDuringExecution},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}}
	for name, snapshot := range map[string]placement.Snapshot{"a quota of one claim": counted, "one volume": byHand} {
		t.Run(name, func(t *testing.T) {
			got := project(t, snapshot, spec, zone)
			if len(got[0].Problems) > 0 || len(got[1].Problems) == 0 {
				t.Errorf("problems of the first set: %v, and of the second: %v; want some of the second only", got[0].Problems, got[1].Problems)
			}
		})
	}
}
