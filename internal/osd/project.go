package osd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
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

// Project returns a projection for each device set of the plan. The world is what
// the scheduler is to look at, with all pods, which take room; the pods and claims of
// OSDs in it are known by Rook's labels. An OSD is where a pod of its claim is. One that has none goes where the
// scheduler would put it with its volume, and one that does not exist yet where the
// scheduler would put its prepare Job, set after set, as Rook makes them.
//
// Nothing is played of a set whose OSDs all run, so this costs nothing while
// nothing is to be done.
func Project(ctx context.Context, world placement.World, namespace string, all cephv1.Placement, eligible []*corev1.Node, plan []DeviceSet) ([]Projection, error) {
	p := &projector{world: world, namespace: namespace, all: all, nodes: map[string]*corev1.Node{}, running: map[string]string{}, left: MaxPlayed}
	p.world.Pods = slices.Clone(world.Pods)
	for _, pod := range world.Pods {
		if claim := pod.Labels[cephv1.PVCLabel]; claim != "" && pod.Namespace == namespace && pod.Spec.NodeName != "" && !ended(pod) {
			p.running[claim] = pod.Spec.NodeName
		}
	}
	for _, node := range world.Nodes {
		p.nodes[node.Name] = node
	}
	var result []Projection
	for i := range plan {
		one, err := p.project(ctx, eligible, &plan[i])
		if err != nil {
			return nil, fmt.Errorf("projecting device set %s: %w", plan[i].Name, err)
		}
		result = append(result, one)
	}
	return result, nil
}

// projector plays what is to come, on top of what is there.
type projector struct {
	world     placement.World
	namespace string
	all       cephv1.Placement
	nodes     map[string]*corev1.Node
	// running has the node of the OSD on each claim, or of the Job that prepares it.
	running map[string]string
	// left is how many OSDs may still be played.
	left int
}

func (p *projector) project(ctx context.Context, eligible []*corev1.Node, set *DeviceSet) (Projection, error) {
	result := Projection{Domains: map[string]int{}}
	for _, domain := range Values(eligible, set.Key) {
		result.Domains[domain] = 0
	}
	for i := range set.Parts {
		if err := p.place(ctx, set, &set.Parts[i], &result); err != nil {
			return Projection{}, err
		}
	}
	return result, nil
}

func (p *projector) domain(node, key string) string {
	if n := p.nodes[node]; n != nil {
		if domain, ok := n.Labels[key]; ok {
			return domain
		}
	}
	return NoDomain
}

// place adds the OSDs of a StorageClassDeviceSet that have a node, or would get one.
func (p *projector) place(ctx context.Context, of *DeviceSet, set *cephv1.StorageClassDeviceSet, result *Projection) error {
	var play []placement.Workload
	key, template := of.Key, PrepareTemplate(p.all, set, of.Prepare)
	claims := p.claims(set.Name)
	for _, claim := range claims {
		if node := p.nodeOf(claim); node != "" {
			result.Domains[p.domain(node, key)]++
		} else {
			play = append(play, p.again(template, claim))
		}
	}
	for _, workload := range append(play, p.first(set, template, set.Count-len(claims))) {
		wanted := int(workload.Replicas)
		played := min(wanted, p.left)
		p.left, result.Unplayed, workload.Replicas = p.left-played, result.Unplayed+wanted-played, int32(played)
		nodes, problems, err := p.predict(ctx, workload)
		if err != nil {
			return err
		}
		result.Problems = append(result.Problems, problems...)
		for _, node := range nodes {
			result.Domains[p.domain(node, key)]++
		}
	}
	return nil
}

// claims returns the data claims of a StorageClassDeviceSet, one for each OSD, by
// their identity.
func (p *projector) claims(set string) []*corev1.PersistentVolumeClaim {
	byIndex := map[string]*corev1.PersistentVolumeClaim{}
	for _, claim := range p.world.PersistentVolumeClaims {
		if claim.Namespace != p.namespace || claim.Labels[cephv1.DeviceSetLabel] != set {
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

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// first is the workload of OSDs that do not exist yet.
func (p *projector) first(set *cephv1.StorageClassDeviceSet, template corev1.PodTemplateSpec, count int) placement.Workload {
	w := placement.Workload{
		Namespace: p.namespace, Name: "rook-ceph-osd-prepare-" + set.Name, Replicas: int32(max(count, 0)), Template: template,
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
	w := placement.Workload{Namespace: p.namespace, Name: "rook-ceph-osd-prepare-" + claim.Name, Replicas: 1, Template: *template.DeepCopy()}
	w.Template.Spec.Volumes = []corev1.Volume{{
		Name:         cephv1.DataTemplate,
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}},
	}}
	return w
}

// predict returns the nodes that the scheduler would choose, and puts the pods
// there, so that those that come later count them.
func (p *projector) predict(ctx context.Context, w placement.Workload) ([]string, []placement.Problem, error) {
	if w.Replicas == 0 {
		return nil, nil, nil
	}
	verdict, err := placement.Predict(ctx, p.world, w)
	if err != nil {
		return nil, nil, err
	}
	var nodes []string
	for _, pod := range verdict.Pods {
		if pod.Fits {
			nodes = append(nodes, pod.Node)
			p.world.Pods = append(p.world.Pods, placed(w, pod))
		}
	}
	return nodes, verdict.Problems, nil
}

func placed(w placement.Workload, pod placement.PodVerdict) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: pod.Name, Labels: w.Template.Labels},
		Spec:       corev1.PodSpec{NodeName: pod.Node, Containers: w.Template.Spec.Containers},
	}
}
