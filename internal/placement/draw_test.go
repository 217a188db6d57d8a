package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	otherNS = "other"
	// bySelf is a class whose volumes are made when a pod comes, byHand one whose
	// volumes are there already, atOnce one whose claims are bound at once.
	bySelf, byHand, atOnce = "by-self", "by-hand", "at-once"
	// held is a finalizer that keeps a pod terminating.
	held = "example.com/held"
)

// draw is a random cluster and a StatefulSet to be. Its objects are as an API
// server accepts them, and their names are of this draw alone.
type draw struct {
	*rand.Rand
	prefix   string
	snapshot Snapshot
	workload Workload
}

// newDraw returns the draw of that number; the same for the same seed.
func newDraw(seed uint64, number int) *draw {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, uint64(number))), prefix: fmt.Sprintf("d%d-", number)}
	d.snapshot.StorageClasses = drawnClasses()
	d.snapshot.Namespaces = drawnNamespaces()
	d.drawNodes()
	d.drawWorkload()
	d.drawPods()
	d.drawClaims()
	return d
}

// newRetained draws what a service finds that was deleted and is applied again, or
// restored from a backup: no pod, and claims with volumes on the nodes. The same for the
// same seed.
func newRetained(seed uint64, number int) *draw {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 1<<41+uint64(number))), prefix: fmt.Sprintf("r%d-", number)}
	d.snapshot.StorageClasses = drawnClasses()
	d.snapshot.Namespaces = drawnNamespaces()
	for i := range 3 + d.IntN(4) {
		node := makeNode(fmt.Sprintf("%sn%d", d.prefix, i), "zone", fmt.Sprintf("zone%d", i%(2+d.IntN(2))))
		if d.maybe(0.1) {
			node.Spec.Taints = append(node.Spec.Taints, d.taint())
		}
		d.snapshot.Nodes = append(d.snapshot.Nodes, node)
	}
	d.snapshot.Nodes[len(d.snapshot.Nodes)-1].Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	w := withClaims(makeWorkload(2+d.Int32N(4), spreadBy("zone", "service", "glance")), byHand)
	w.Name = d.prefix + "glance"
	if d.maybe(0.3) {
		w.Template.Spec.TopologySpreadConstraints = append(w.Template.Spec.TopologySpreadConstraints, spreadBy(corev1.LabelHostname, "service", "glance"))
	}
	d.workload = w
	for ordinal := range w.Replicas {
		if d.maybe(0.9) {
			claim, pv := w.claims(ordinal)[0], d.volume(fmt.Sprintf("bound%d", ordinal), byHand, "2Gi")
			bind(claim, pv)
			d.snapshot.PersistentVolumes = append(d.snapshot.PersistentVolumes, pv)
			d.snapshot.PersistentVolumeClaims = append(d.snapshot.PersistentVolumeClaims, claim)
		}
	}
	return d
}

func drawnClasses() []*storagev1.StorageClass {
	return []*storagev1.StorageClass{
		makeClass(bySelf, "example.com/by-self", storagev1.VolumeBindingWaitForFirstConsumer),
		makeClass(byHand, noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer),
		makeClass(atOnce, "example.com/at-once", storagev1.VolumeBindingImmediate),
		makeClass(attachedLate, attached, storagev1.VolumeBindingWaitForFirstConsumer),
		makeClass(attachedAtOnce, attached, storagev1.VolumeBindingImmediate),
		makeClass(strictLate, strict, storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

func drawnNamespaces() []*corev1.Namespace {
	return []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: labelled("team", "cloud")}},
		{ObjectMeta: metav1.ObjectMeta{Name: otherNS, Labels: labelled("team", "other")}},
	}
}

// maybe is true with that probability.
func (d *draw) maybe(p float64) bool { return d.Float64() < p }

func pick[T any](d *draw, of ...T) T { return of[d.IntN(len(of))] }

func (d *draw) drawNodes() {
	zones, racks := 1+d.IntN(4), 1+d.IntN(3)
	for i := range 1 + d.IntN(8) {
		node := makeNode(fmt.Sprintf("%sn%d", d.prefix, i))
		d.label(node, "zone", 0.85, zones)
		d.label(node, "rack", 0.8, racks)
		d.label(node, "disk", 0.6, 2)
		if d.maybe(0.05) {
			delete(node.Labels, corev1.LabelHostname)
		}
		node.Spec.Unschedulable = d.maybe(0.08)
		if d.maybe(0.25) {
			node.Spec.Taints = append(node.Spec.Taints, d.taint())
		}
		node.Status.Allocatable[corev1.ResourceCPU] = *resource.NewQuantity(int64(1+d.IntN(4)), resource.DecimalSI)
		if d.maybe(0.1) {
			node.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(int64(1+d.IntN(3)), resource.DecimalSI)
		}
		d.snapshot.Nodes = append(d.snapshot.Nodes, node)
	}
	// The last node has room for the pod that tells when a scheduler is up to date.
	last := d.snapshot.Nodes[len(d.snapshot.Nodes)-1]
	last.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
}

func (d *draw) label(node *corev1.Node, key string, p float64, values int) {
	if d.maybe(p) {
		node.Labels[key] = fmt.Sprintf("%s%d", key, d.IntN(values))
	}
}

func (d *draw) taint() corev1.Taint {
	return pick(d,
		corev1.Taint{Key: "dedicated", Value: "storage", Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: "dedicated", Value: "storage", Effect: corev1.TaintEffectNoExecute},
		corev1.Taint{Key: "dedicated", Value: "storage", Effect: corev1.TaintEffectPreferNoSchedule},
		corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
	)
}

func (d *draw) drawPods() {
	for i := range d.IntN(12) {
		pod := makePod(fmt.Sprintf("%sp%d", d.prefix, i), d.node(), "app", pick(d, "a", "b"))
		if d.maybe(0.6) {
			pod.Labels["service"] = "glance"
		}
		if d.maybe(0.3) {
			pod.Labels["tier"] = pick(d, "core", "edge")
		}
		if d.maybe(0.15) {
			pod.Namespace = otherNS
		}
		if d.maybe(0.12) {
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{d.term()},
			}}
		}
		d.request(pod.Spec.Containers)
		switch {
		case d.maybe(0.06):
			pod.Status.Phase = corev1.PodSucceeded
		case d.maybe(0.08):
			pod.DeletionTimestamp, pod.Finalizers = ptr.To(metav1.Unix(1, 0)), []string{held}
		}
		d.snapshot.Pods = append(d.snapshot.Pods, pod)
	}
	d.drawRunningPods()
}

// drawRunningPods are those of the workload that will be recreated, or are
// beyond its replicas.
func (d *draw) drawRunningPods() {
	if !d.maybe(0.4) {
		return
	}
	for ordinal := range d.workload.Replicas + 1 {
		if d.maybe(0.6) {
			pod := makePod(d.workload.podName(ordinal), d.node(), "service", "glance", "app", "a")
			pod.Spec.Volumes = d.workload.volumes(nil, ordinal)
			d.age(pod)
			d.snapshot.Pods = append(d.snapshot.Pods, pod)
		}
	}
}

// age makes a pod of the workload one of an old template. Most are Ready; others are not,
// or are terminating, or have no node: kube-scheduler leaves pods with a gate alone.
func (d *draw) age(pod *corev1.Pod) {
	setReady(pod, corev1.ConditionTrue)
	switch {
	case d.maybe(0.15):
		setReady(pod, corev1.ConditionFalse)
	case d.maybe(0.08):
		pod.DeletionTimestamp, pod.Finalizers = ptr.To(metav1.Unix(1, 0)), []string{held}
	case d.maybe(0.07):
		pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{}
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: held}}
	}
	if d.maybe(0.2) {
		apart := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labelled("service", "glance")}}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{apart}}}
	}
}

func (d *draw) node() string { return d.snapshot.Nodes[d.IntN(len(d.snapshot.Nodes))].Name }

func (d *draw) request(containers []corev1.Container) {
	quantity := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(200*(1+d.IntN(6))), resource.DecimalSI)}
	switch {
	case d.maybe(0.5):
		containers[0].Resources.Requests = quantity
	case d.maybe(0.4):
		containers[0].Resources.Limits = quantity
	}
}

func (d *draw) drawWorkload() {
	w := makeWorkload(1 + d.Int32N(4))
	w.Name = d.prefix + "glance"
	w.Template.Labels["app"] = pick(d, "a", "b")
	if d.maybe(0.7) {
		w.Template.Labels["tier"] = pick(d, "core", "edge")
	}
	spec := &w.Template.Spec
	for range 2 {
		d.constrain(spec)
	}
	d.drawAffinity(spec)
	if d.maybe(0.3) {
		spec.Tolerations = append(spec.Tolerations, pick(d,
			corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: "dedicated", Value: "storage", Effect: corev1.TaintEffectNoSchedule},
			corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5)},
		))
	}
	if d.maybe(0.12) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 9292, Protocol: corev1.ProtocolTCP}}
		if spec.HostNetwork = d.maybe(0.5); !spec.HostNetwork {
			spec.Containers[0].Ports[0].HostPort = 9292
		}
	}
	d.request(spec.Containers)
	if d.maybe(0.45) {
		w = withClaims(w, pick(d, bySelf, byHand, atOnce))
		w.ClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(pick(d, "1Gi", "2Gi"))
	}
	d.workload = w
}

// constrain adds a topology spread constraint, if there is none like it.
func (d *draw) constrain(spec *corev1.PodSpec) {
	if d.maybe(0.25) {
		return
	}
	c := spreadBy(pick(d, "zone", "zone", "rack", corev1.LabelHostname, "unknown"), "service", "glance")
	if c.TopologyKey == "unknown" && !d.maybe(0.3) {
		c.TopologyKey = "zone"
	}
	c.MaxSkew = 1 + d.Int32N(2)
	if d.maybe(0.2) {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
	} else if d.maybe(0.25) {
		c.MinDomains = ptr.To(1 + d.Int32N(4))
	}
	if d.maybe(0.25) {
		c.LabelSelector = pick(d, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: labelled("app", "a")},
			&metav1.LabelSelector{MatchLabels: labelled("service", "nova")},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b"}}}})
	}
	if d.maybe(0.2) {
		c.MatchLabelKeys = []string{"tier"}
	}
	policies := []*corev1.NodeInclusionPolicy{nil, nil, ptr.To(corev1.NodeInclusionPolicyHonor), ptr.To(corev1.NodeInclusionPolicyIgnore)}
	c.NodeAffinityPolicy, c.NodeTaintsPolicy = pick(d, policies...), pick(d, policies...)
	alike := func(o corev1.TopologySpreadConstraint) bool {
		return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
	}
	if !slices.ContainsFunc(spec.TopologySpreadConstraints, alike) {
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
	}
}

func (d *draw) drawAffinity(spec *corev1.PodSpec) {
	spec.Affinity = &corev1.Affinity{}
	if d.maybe(0.2) {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{d.nodeTerm()},
		}}
	}
	if d.maybe(0.1) {
		spec.NodeSelector = labelled("disk", "disk0")
	}
	if d.maybe(0.15) {
		spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{d.term()}}
	}
	if d.maybe(0.2) {
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{d.term()}}
	} else {
		// What every service has, as the dump in seeds/001 shows.
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labelled("service", "glance")},
			},
		}}}
	}
}

func (d *draw) nodeTerm() corev1.NodeSelectorTerm {
	if d.maybe(0.15) {
		field := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{d.node()}}
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{field}}
	}
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{pick(d,
		corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"zone0", "zone1"}},
		corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"zone0"}},
		corev1.NodeSelectorRequirement{Key: "disk", Operator: corev1.NodeSelectorOpExists},
	)}}
}

func (d *draw) term() corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{
		TopologyKey:   pick(d, "zone", "rack", corev1.LabelHostname),
		LabelSelector: &metav1.LabelSelector{MatchLabels: pick(d, labelled("service", "glance"), labelled("app", "a"), labelled("app", "b"))},
	}
	if d.maybe(0.15) {
		term.MatchLabelKeys = []string{"tier"}
	} else if d.maybe(0.1) {
		term.MismatchLabelKeys = []string{"tier"}
	}
	if d.maybe(0.1) {
		term.Namespaces = []string{ns, otherNS}
	} else if d.maybe(0.1) {
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labelled("team", "other")}
	}
	return term
}

// drawClaims gives claims to pods that have been there before, and volumes to
// choose from to those that have not.
func (d *draw) drawClaims() {
	if len(d.workload.ClaimTemplates) == 0 {
		return
	}
	class := *d.workload.ClaimTemplates[0].Spec.StorageClassName
	for ordinal := range d.workload.Replicas {
		claim := d.workload.claims(ordinal)[0]
		switch {
		case d.maybe(0.55):
			pv := d.volume(fmt.Sprintf("bound%d", ordinal), class, "2Gi")
			bind(claim, pv)
			d.snapshot.PersistentVolumes = append(d.snapshot.PersistentVolumes, pv)
		// No one binds claims in the test: those of this class are there or never.
		case class != atOnce && d.maybe(0.8):
			continue
		}
		d.snapshot.PersistentVolumeClaims = append(d.snapshot.PersistentVolumeClaims, claim)
	}
	if class == byHand {
		for i := range d.IntN(5) {
			size := fmt.Sprintf("%dMi", 1024+100*i+d.IntN(90)+d.IntN(2)*1024) // no two alike
			d.snapshot.PersistentVolumes = append(d.snapshot.PersistentVolumes, d.volume(fmt.Sprintf("free%d", i), class, size))
		}
	}
}

func (d *draw) volume(name, class, size string) *corev1.PersistentVolume {
	key, value := corev1.LabelHostname, d.node()
	if d.maybe(0.25) {
		key, value = "zone", pick(d, "zone0", "zone1", "zone2")
	} else if d.maybe(0.1) {
		key = ""
	} else if d.maybe(0.1) {
		value = "gone"
	}
	return makeVolume(d.prefix+name, class, size, key, value)
}
