package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	plugin "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// refusal is why no node takes a pod, as the scheduler says it of each node.
type refusal struct {
	pod     *corev1.Pod
	fit     *framework.FitError
	message string
	// nodes of the snapshot, by name.
	nodes   []*corev1.Node
	objects objects
	// spreads are those of the pod's constraints with DoNotSchedule.
	spreads []hardSpread
	// explained are the nodes that a problem already speaks of.
	explained map[string]bool
}

type hardSpread struct {
	constraint corev1.TopologySpreadConstraint
	Spread
}

// explain returns the problems that keep a pod pending, at least one.
func (s *simulation) explain(o outcome) ([]Problem, error) {
	if o.denied != nil {
		return []Problem{refused(o)}, nil //nolint:nilerr // the refusal is what is explained
	}
	r := &refusal{
		pod: o.pod, fit: o.refusal, message: o.message(), objects: s.storage.objects, explained: map[string]bool{},
		nodes: slices.SortedFunc(slices.Values(s.snapshot.Nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) }),
	}
	if err := r.measure(s); err != nil {
		return nil, err
	}
	if held := r.heldByVolumes(); len(held) > 0 {
		return held, nil
	}
	problems := append(r.missingLabels(), r.tooFewDomains()...)
	if len(problems) == 0 || len(r.unexplained()) > 0 {
		problems = append(problems, r.unsatisfiable())
	}
	return problems, nil
}

func (r *refusal) measure(s *simulation) error {
	pods := s.scheduler.lister.pods()
	for _, c := range r.pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		spread, err := Measure(c, r.pod, r.nodes, pods)
		if err != nil {
			return err
		}
		r.spreads = append(r.spreads, hardSpread{c, spread})
	}
	return nil
}

func (r *refusal) statusOf(node *corev1.Node) *fwk.Status {
	return r.fit.Diagnosis.NodeToStatus.Get(node.Name)
}

// refusedBecause returns the nodes of which the scheduler gave a reason.
func (r *refusal) refusedBecause(reason string) []*corev1.Node {
	return filter(r.nodes, func(n *corev1.Node) bool { return slices.Contains(r.statusOf(n).Reasons(), reason) })
}

// heldByVolumes returns the volumes that the pod has and that no node which
// takes it can reach. Those nodes that would take it are refused by the
// scheduler for the volume; those that reach it, for another reason.
func (r *refusal) heldByVolumes() []Problem {
	if len(r.refusedBecause(string(volumebinding.ErrReasonNodeConflict))) == 0 {
		return nil
	}
	var problems []Problem
	for _, claim := range r.claims() {
		pv, err := r.objects.Core().V1().PersistentVolumes().Lister().Get(claim.Spec.VolumeName)
		if err != nil {
			continue
		}
		reach := filter(r.nodes, func(n *corev1.Node) bool { return volume.CheckNodeAffinity(pv, n.Labels) == nil })
		if len(reach) < len(r.nodes) {
			problems = append(problems, r.heldBy(pv, claim, reach))
		}
	}
	return problems
}

func (r *refusal) claims() []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, v := range r.pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, err := r.objects.claims().PersistentVolumeClaims(r.pod.Namespace).Get(v.PersistentVolumeClaim.ClaimName)
		if err == nil && claim.Spec.VolumeName != "" {
			claims = append(claims, claim)
		}
	}
	return claims
}

func (r *refusal) heldBy(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, reach []*corev1.Node) Problem {
	p := Problem{Reason: topologyv1.VolumeNodeAffinityConflictReason, Pods: []string{r.pod.Name}, Volume: pv.Name, claim: claim.Name, size: pv.Spec.Capacity.Storage().String()}
	has := fmt.Sprintf("pod %s has PersistentVolume %s (claim %s)", r.pod.Name, pv.Name, claim.Name)
	if len(reach) == 0 {
		p.Message = has + ", which no node of the cluster can reach"
		return p
	}
	p.Message = fmt.Sprintf("%s, which only %s can reach: %s", has, names.List(collectNames(reach, (*corev1.Node).GetName), names.Few), r.explainEach(reach))
	if len(reach) == 1 {
		p.Node = reach[0].Name
	}
	if r.lacksLabel(reach[0]) {
		p.Key = r.keyLackedBy(reach[0])
	}
	return p
}

func (r *refusal) explainEach(nodes []*corev1.Node) string {
	const few = 3
	why := collectNames(nodes[:min(few, len(nodes))], r.why)
	return strings.Join(why, "; ")
}

// why says in a sentence why one node refuses the pod.
func (r *refusal) why(node *corev1.Node) string {
	if r.lacksLabel(node) {
		return fmt.Sprintf("node %s lacks the label %s that a topology spread constraint needs", node.Name, r.keyLackedBy(node))
	}
	if s, ok := r.overfull(node); ok {
		return fmt.Sprintf("node %s is in %s %s, where one more pod would make the skew larger than maxSkew %d (%s)",
			node.Name, s.TopologyKey, node.Labels[s.TopologyKey], s.MaxSkew, s.counts())
	}
	return fmt.Sprintf("of node %s the scheduler says: %s", node.Name, strings.Join(r.statusOf(node).Reasons(), ", "))
}

func (r *refusal) lacksLabel(node *corev1.Node) bool {
	return slices.Contains(r.statusOf(node).Reasons(), podtopologyspread.ErrReasonNodeLabelNotMatch)
}

// keyLackedBy returns the key that the scheduler misses first.
func (r *refusal) keyLackedBy(node *corev1.Node) string {
	for _, s := range r.spreads {
		if _, ok := node.Labels[s.TopologyKey]; !ok {
			return s.TopologyKey
		}
	}
	return ""
}

// overfull returns the constraint that keeps the pod off a node by its skew.
func (r *refusal) overfull(node *corev1.Node) (Spread, bool) {
	if !slices.Contains(r.statusOf(node).Reasons(), podtopologyspread.ErrReasonConstraintsNotMatch) {
		return Spread{}, false
	}
	for _, s := range r.spreads {
		if !s.Admits(node.Labels[s.TopologyKey]) {
			return s.Spread, true
		}
	}
	return Spread{}, false
}

// missingLabels returns a problem for each topology key that nodes lack which
// would otherwise have been looked at.
func (r *refusal) missingLabels() []Problem {
	lacking := map[string][]string{}
	for _, node := range r.refusedBecause(podtopologyspread.ErrReasonNodeLabelNotMatch) {
		key := r.keyLackedBy(node)
		lacking[key] = append(lacking[key], node.Name)
		r.explained[node.Name] = true
	}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(lacking)) {
		nodes := lacking[key]
		p := Problem{
			Reason: topologyv1.MissingNodeLabelReason, Pods: []string{r.pod.Name}, Key: key,
			Message: fmt.Sprintf("a topology spread constraint needs nodes with the label %s, which these lack: %s", key, names.List(nodes, names.Few)),
		}
		if len(nodes) == 1 {
			p.Node = nodes[0]
		}
		problems = append(problems, p)
	}
	return problems
}

// tooFewDomains returns a problem for each constraint that refuses nodes while
// there are fewer domains than its minDomains.
func (r *refusal) tooFewDomains() []Problem {
	blocked := map[string]Spread{}
	for _, node := range r.nodes {
		if s, ok := r.overfull(node); ok && len(s.Domains) < int(s.MinDomains) {
			blocked[s.TopologyKey] = s
			r.explained[node.Name] = true
		}
	}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(blocked)) {
		s := blocked[key]
		problems = append(problems, Problem{
			Reason: topologyv1.MinDomainsUnmetReason, Pods: []string{r.pod.Name}, Key: key, domains: len(s.Domains),
			Message: fmt.Sprintf("the topology spread constraint on %s wants %d domains and finds %d (%s): until there are more, each takes %d pods at most",
				key, s.MinDomains, len(s.Domains), s.counts(), s.MaxSkew),
		})
	}
	return problems
}

// unexplained returns the nodes that no problem speaks of yet.
func (r *refusal) unexplained() []*corev1.Node {
	return filter(r.nodes, func(n *corev1.Node) bool { return !r.explained[n.Name] })
}

// unsatisfiable returns the scheduler's message, and the counts behind it.
func (r *refusal) unsatisfiable() Problem {
	p := Problem{Reason: topologyv1.UnsatisfiableReason, Pods: []string{r.pod.Name}, Message: r.message}
	rest := r.unexplained()
	p.plugins = r.plugins(rest)
	if slices.ContainsFunc(rest, func(n *corev1.Node) bool { return r.statusOf(n).Plugin() == plugin.PodTopologySpread }) {
		for _, s := range r.spreads {
			p.Message += fmt.Sprintf(" Pods by %s: %s.", s.TopologyKey, s.counts())
		}
	}
	return p
}

// plugins are those that refuse one of the nodes.
func (r *refusal) plugins(nodes []*corev1.Node) string {
	refusedBy := map[string]bool{}
	for _, node := range nodes {
		refusedBy[r.statusOf(node).Plugin()] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(refusedBy)), ",")
}

// counts lists the pods per domain.
func (s Spread) counts() string {
	var counts []string
	for _, domain := range slices.Sorted(maps.Keys(s.Domains)) {
		counts = append(counts, fmt.Sprintf("%s %d", domain, s.Domains[domain]))
	}
	return strings.Join(counts, ", ")
}

func filter[T any](all []T, keep func(T) bool) []T {
	var kept []T
	for _, x := range all {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}
