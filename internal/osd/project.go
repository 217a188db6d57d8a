package osd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

const (
	// NoDomain is the domain of OSDs on nodes without the label.
	NoDomain = "<none>"
	// MaxPlayed is how many OSDs without a node a projection plays, which takes about
	// a millisecond each. Those beyond are left out.
	MaxPlayed = 500
)

// Projection is where the OSDs of a device set are, and where those that are still
// to come would go.
type Projection struct {
	// Domains has the number of OSDs of every domain of the eligible nodes.
	Domains map[string]int
	// Problems are what keeps OSDs from finding a place.
	Problems []placement.Problem
	// Unplayed is the number of OSDs that were left out, as there are more than
	// MaxPlayed to come.
	Unplayed int
}

// Skew returns the difference between the domains with the most and the fewest OSDs.
func (p Projection) Skew() int {
	var counts []int
	for domain, n := range p.Domains {
		if domain != NoDomain {
			counts = append(counts, n)
		}
	}
	if len(counts) == 0 {
		return 0
	}
	return slices.Max(counts) - slices.Min(counts)
}

// Observed is what there is of the OSDs of a namespace.
type Observed struct {
	// Nodes of the cluster, and those of them that OSDs go to.
	Nodes, Eligible []*corev1.Node
	// Pods and claims of OSDs, known by Rook's labels. There may be others among them.
	Namespace string
	Pods      []*corev1.Pod
	Claims    []*corev1.PersistentVolumeClaim
}

// Predict predicts workloads that are rolled out one after the other.
type Predict func(context.Context, []placement.Workload) ([]placement.Prediction, error)

// Project returns a projection for each device set of the plan. An OSD is where a pod
// of its claim is. One that has none goes where the scheduler would put it with its
// volume, and one that does not exist yet where the scheduler would put its prepare
// Job, set after set, as Rook makes them.
//
// Nothing is predicted of a set whose OSDs all run, so this costs nothing while
// nothing is to be done.
func Project(ctx context.Context, predict Predict, o Observed, all cephv1.Placement, plan []DeviceSet) ([]Projection, error) {
	p := &projector{Observed: o, all: all, nodes: map[string]*corev1.Node{}, running: map[string]string{}, left: MaxPlayed}
	for _, pod := range o.Pods {
		if claim := pod.Labels[cephv1.PVCLabel]; claim != "" && pod.Namespace == o.Namespace && pod.Spec.NodeName != "" && !watch.Ended(pod) {
			p.running[claim] = pod.Spec.NodeName
		}
	}
	for _, node := range o.Nodes {
		p.nodes[node.Name] = node
	}
	for i := range plan {
		p.project(&plan[i])
	}
	return p.result, p.play(ctx, predict, plan)
}

// projector counts what is there, and collects what is to come.
type projector struct {
	Observed
	all   cephv1.Placement
	nodes map[string]*corev1.Node
	// running has the node of the OSD on each claim, or of the Job that prepares it.
	running map[string]string
	result  []Projection
	// workloads are those of OSDs that are to come, of the device sets at these places
	// in the plan; left is how many OSDs may still be played.
	workloads []placement.Workload
	of        []int
	left      int
}

func (p *projector) project(set *DeviceSet) {
	p.result = append(p.result, Projection{Domains: map[string]int{}})
	for _, domain := range Values(p.Eligible, set.Key) {
		p.last().Domains[domain] = 0
	}
	for i := range set.Parts {
		p.count(set, &set.Parts[i])
	}
}

func (p *projector) last() *Projection { return &p.result[len(p.result)-1] }

func (p *projector) domain(node, key string) string {
	if n := p.nodes[node]; n != nil {
		if domain, ok := n.Labels[key]; ok {
			return domain
		}
	}
	return NoDomain
}

// count adds the OSDs of a StorageClassDeviceSet that have a node, and notes those
// that are to get one.
func (p *projector) count(of *DeviceSet, set *cephv1.StorageClassDeviceSet) {
	template, claims := PrepareTemplate(p.all, set, of.Prepare), p.claims(set.Name)
	for _, claim := range claims {
		if node := p.nodeOf(claim); node != "" {
			p.last().Domains[p.domain(node, of.Key)]++
		} else {
			p.note(p.again(template, claim))
		}
	}
	p.note(p.first(set, template, set.Count-len(claims)))
}

// note adds a workload of the last device set, as far as more may be played.
func (p *projector) note(workload placement.Workload) {
	wanted := int(workload.Replicas)
	played := min(wanted, p.left)
	p.left, p.last().Unplayed = p.left-played, p.last().Unplayed+wanted-played
	if workload.Replicas = int32(played); played > 0 {
		p.workloads, p.of = append(p.workloads, workload), append(p.of, len(p.result)-1)
	}
}

// play adds the OSDs that are to come where they would go.
func (p *projector) play(ctx context.Context, predict Predict, plan []DeviceSet) error {
	if len(p.workloads) == 0 {
		return nil
	}
	predictions, err := predict(ctx, p.workloads)
	if err != nil {
		return fmt.Errorf("predicting where OSDs would go: %w", err)
	}
	for i, prediction := range predictions {
		result, key := &p.result[p.of[i]], plan[p.of[i]].Key
		result.Problems = append(result.Problems, prediction.Problems...)
		for _, pod := range prediction.Pods {
			if pod.Fits {
				result.Domains[p.domain(pod.Node, key)]++
			}
		}
	}
	return nil
}

// claims returns the data claims of a StorageClassDeviceSet, one for each OSD, by
// their identity.
func (p *projector) claims(set string) []*corev1.PersistentVolumeClaim {
	byIndex := map[string]*corev1.PersistentVolumeClaim{}
	for _, claim := range p.Claims {
		if claim.Namespace != p.Namespace || claim.Labels[cephv1.DeviceSetLabel] != set {
			continue
		}
		index := claim.Labels[cephv1.SetIndexLabel]
		if other := byIndex[index]; other == nil || p.nodeOf(other) == "" && (p.nodeOf(claim) != "" || claim.Name < other.Name) {
			byIndex[index] = claim
		}
	}
	var claims []*corev1.PersistentVolumeClaim
	for _, claim := range byIndex {
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int { return strings.Compare(a.Name, b.Name) })
	return claims
}

// nodeOf returns where the OSD on a claim runs, or is being prepared; empty if it
// does neither.
func (p *projector) nodeOf(claim *corev1.PersistentVolumeClaim) string { return p.running[claim.Name] }

// first is the workload of OSDs that do not exist yet.
func (p *projector) first(set *cephv1.StorageClassDeviceSet, template corev1.PodTemplateSpec, count int) placement.Workload {
	w := placement.Workload{
		Namespace: p.Namespace, Name: "rook-ceph-osd-prepare-" + set.Name, Replicas: int32(max(count, 0)), Template: template,
	}
	for _, t := range set.VolumeClaimTemplates {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
		if claim.Name == "" {
			claim.Name = cephv1.DataTemplate
		}
		w.ClaimTemplates = append(w.ClaimTemplates, claim)
	}
	return w
}

// again is the workload of an OSD that has a claim and no node.
func (p *projector) again(template corev1.PodTemplateSpec, claim *corev1.PersistentVolumeClaim) placement.Workload {
	w := placement.Workload{Namespace: p.Namespace, Name: "rook-ceph-osd-prepare-" + claim.Name, Replicas: 1, Template: *template.DeepCopy()}
	w.Template.Spec.Volumes = []corev1.Volume{{
		Name:         cephv1.DataTemplate,
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}},
	}}
	return w
}
