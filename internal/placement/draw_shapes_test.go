package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// attached is a CSI driver with a limit on most nodes, strict one that a node must
	// have. Of each there is a class that waits for pods and one that does not.
	attached, strict             = "attached.example.com", "strict.example.com"
	attachedLate, attachedAtOnce = "attached-late", "attached-at-once"
	strictLate                   = "strict-late"
	// Priority classes. Only pods of patient wait though others have less priority, so
	// that there is no preemption, which is not predicted.
	patient, low, high = "patient", "low", "high"
)

// shapes draws what newDraw does not: clusters of an odd shape, namespaces with
// policies, CSI drivers with limits, priorities, and rules with many parts.
type shapes struct {
	*draw
	zones []string
}

// newShapes returns the draw of that number; the same for the same seed.
func newShapes(seed uint64, number int) *draw {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 1<<40+uint64(number))), prefix: fmt.Sprintf("s%d-", number)}
	d.snapshot.StorageClasses = drawnClasses()
	d.snapshot.CSIDrivers = drawnDrivers()
	d.snapshot.Namespaces = drawnNamespaces()
	s := &shapes{draw: d}
	s.drawNodes()
	s.drawWorkload()
	s.drawPods()
	s.drawClaims()
	s.drawPolicies()
	return d
}

func drawnDrivers() []*storagev1.CSIDriver {
	driver := func(name string, needed bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &needed}}
	}
	return []*storagev1.CSIDriver{driver(attached, false), driver(strict, true)}
}

func drawnPriorities() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: patient}, Value: 1000, PreemptionPolicy: ptr.To(corev1.PreemptNever)},
		{ObjectMeta: metav1.ObjectMeta{Name: low}, Value: -1000},
		{ObjectMeta: metav1.ObjectMeta{Name: high}, Value: 5000},
	}
}

// drawNodes draws one large zone and small ones, one zone per node, or many nodes.
func (s *shapes) drawNodes() {
	large, small := 2+s.IntN(9), s.IntN(5)
	switch {
	case s.maybe(0.1):
		large = 1
	case s.maybe(0.01):
		large = 105 // more than the scheduler looks at each time
	}
	for z := range 1 + small {
		zone := fmt.Sprintf("z%d", z)
		if s.maybe(0.1) {
			zone += strings.Repeat("-long", 12)
		}
		s.zones = append(s.zones, zone)
	}
	for range large {
		s.addNode(s.zones[0])
	}
	for _, zone := range s.zones[1:] {
		s.addNode(zone)
	}
	s.Shuffle(len(s.snapshot.Nodes), func(i, j int) {
		s.snapshot.Nodes[i], s.snapshot.Nodes[j] = s.snapshot.Nodes[j], s.snapshot.Nodes[i]
	})
	last := s.snapshot.Nodes[len(s.snapshot.Nodes)-1]
	last.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	for _, node := range s.snapshot.Nodes {
		s.addCSINode(node)
	}
}

func (s *shapes) addNode(zone string) {
	i := len(s.snapshot.Nodes)
	name := fmt.Sprintf("%sn%d", s.prefix, i)
	node := makeNode(name, "zone", zone, "rank", fmt.Sprint(i%7))
	if s.maybe(0.1) {
		node.Name += strings.Repeat(".a-name-that-is-long", 12)[:240-len(name)] + "z"
	}
	if s.maybe(0.05) {
		delete(node.Labels, "zone")
	}
	s.label(node, "rack", 0.9, 2)
	s.label(node, "disk", 0.5, 3)
	node.Spec.Unschedulable = s.maybe(0.15)
	s.taintNode(node)
	s.sizeNode(node)
	s.snapshot.Nodes = append(s.snapshot.Nodes, node)
}

func (s *shapes) taintNode(node *corev1.Node) {
	n := 0
	switch {
	case s.maybe(0.03):
		n = 100 + s.IntN(200)
	case s.maybe(0.2):
		n = 1 + s.IntN(3)
	}
	for i := range n {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: fmt.Sprintf("taint%d", i), Value: pick(s.draw, "", "a", "b"),
			Effect: pick(s.draw, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
		})
	}
}

func (s *shapes) sizeNode(node *corev1.Node) {
	size := pick(s.draw, [3]string{"250m", "128Mi", "4"}, [3]string{"1", "1Gi", "16"}, [3]string{"4", "16Gi", "110"}, [3]string{"128", "1Ti", "500"})
	node.Status.Allocatable = resources("cpu", size[0], "memory", size[1], "pods", size[2])
	if s.maybe(0.2) {
		node.Status.Allocatable["example.com/device"] = resource.MustParse(pick(s.draw, "1", "2"))
	}
	node.Status.Capacity = node.Status.Allocatable
}

func (s *shapes) addCSINode(node *corev1.Node) {
	if s.maybe(0.1) {
		return
	}
	csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	for _, name := range []string{attached, strict} {
		driver := storagev1.CSINodeDriver{Name: name, NodeID: node.Name}
		if s.maybe(0.8) {
			driver.Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To(s.Int32N(4))}
		}
		if s.maybe(0.8) {
			csi.Spec.Drivers = append(csi.Spec.Drivers, driver)
		}
	}
	s.snapshot.CSINodes = append(s.snapshot.CSINodes, csi)
}

func (s *shapes) drawWorkload() {
	w := makeWorkload(1 + s.Int32N(5))
	w.Name = s.prefix + "glance"
	if s.maybe(0.1) {
		w.Name += strings.Repeat("-long", 8)
	}
	w.Template.Labels["app"] = "a"
	w.Template.Labels["tier"] = pick(s.draw, "core", "edge")
	spec := &w.Template.Spec
	spec.PriorityClassName = pick(s.draw, "", "", patient, low)
	for range s.IntN(4) {
		s.spread(spec)
	}
	s.drawAffinity(spec)
	s.tolerate(spec)
	s.drawContainers(spec)
	if s.maybe(0.5) {
		w = withClaims(w, pick(s.draw, attachedLate, attachedLate, attachedAtOnce, strictLate))
	}
	s.workload = w
}

func (s *shapes) spread(spec *corev1.PodSpec) {
	c := spreadBy(pick(s.draw, "zone", "zone", "zone", "rack", corev1.LabelHostname), "service", "glance")
	c.MaxSkew = 1 + s.Int32N(3)
	if s.maybe(0.2) {
		c.WhenUnsatisfiable = corev1.ScheduleAnyway
	} else if s.maybe(0.4) {
		c.MinDomains = ptr.To(1 + s.Int32N(6))
	}
	if s.maybe(0.3) {
		c.MatchLabelKeys = pick(s.draw, []string{"tier"}, []string{"tier", "app"}, []string{"absent"})
	}
	if s.maybe(0.2) {
		c.LabelSelector.MatchLabels = nil
		c.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "service", Operator: metav1.LabelSelectorOpExists}, {Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "c"}},
		}
		if len(c.MatchLabelKeys) == 2 {
			c.MatchLabelKeys = nil // a key may not be in both
		}
	}
	policies := []*corev1.NodeInclusionPolicy{nil, ptr.To(corev1.NodeInclusionPolicyHonor), ptr.To(corev1.NodeInclusionPolicyIgnore)}
	c.NodeAffinityPolicy, c.NodeTaintsPolicy = pick(s.draw, policies...), pick(s.draw, policies...)
	alike := func(o corev1.TopologySpreadConstraint) bool {
		return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
	}
	if !slices.ContainsFunc(spec.TopologySpreadConstraints, alike) {
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
	}
}

func (s *shapes) drawAffinity(spec *corev1.PodSpec) {
	a := &corev1.Affinity{}
	if s.maybe(0.3) {
		required := &corev1.NodeSelector{}
		for range 1 + s.IntN(3) {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, s.nodeTerm())
		}
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
	}
	if s.maybe(0.2) {
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1 + s.Int32N(100), Preference: s.nodeTerm()}}
	}
	if s.maybe(0.15) {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.podTerms()}
	}
	if s.maybe(0.25) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.podTerms()}
	}
	spec.Affinity = a
}

// nodeTerm returns a term of several requirements.
func (s *shapes) nodeTerm() corev1.NodeSelectorTerm {
	all := []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: s.zones[:1+s.IntN(len(s.zones))]},
		{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: s.zones[:1]},
		{Key: "rank", Operator: corev1.NodeSelectorOpGt, Values: []string{"2"}},
		{Key: "rank", Operator: corev1.NodeSelectorOpLt, Values: []string{"4"}},
		{Key: "disk", Operator: corev1.NodeSelectorOpDoesNotExist},
		{Key: "disk", Operator: corev1.NodeSelectorOpExists},
	}
	var term corev1.NodeSelectorTerm
	for range 1 + s.IntN(2) {
		term.MatchExpressions = append(term.MatchExpressions, pick(s.draw, all...))
	}
	if s.maybe(0.1) {
		term.MatchFields = []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: pick(s.draw, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{s.node()}},
		}
	}
	return term
}

func (s *shapes) podTerms() []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	for range 1 + s.IntN(2) {
		term := corev1.PodAffinityTerm{
			TopologyKey:   pick(s.draw, "zone", "rack", corev1.LabelHostname),
			LabelSelector: &metav1.LabelSelector{MatchLabels: pick(s.draw, labelled("service", "glance"), labelled("app", "b"))},
		}
		switch {
		case s.maybe(0.3):
			term.MatchLabelKeys = []string{"tier"}
		case s.maybe(0.4):
			term.MismatchLabelKeys = []string{"tier"}
		}
		terms = append(terms, term)
	}
	return terms
}

func (s *shapes) tolerate(spec *corev1.PodSpec) {
	switch {
	case s.maybe(0.1):
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	case s.maybe(0.4):
		for i := range pick(s.draw, 2, 100) {
			spec.Tolerations = append(spec.Tolerations, pick(s.draw,
				corev1.Toleration{Key: fmt.Sprintf("taint%d", i), Operator: corev1.TolerationOpExists},
				corev1.Toleration{Key: fmt.Sprintf("taint%d", i), Value: "a", Effect: corev1.TaintEffectNoSchedule},
			))
		}
	}
}

func (s *shapes) drawContainers(spec *corev1.PodSpec) {
	s.sizeContainer(&spec.Containers[0])
	if s.maybe(0.2) {
		spec.Containers = append(spec.Containers, corev1.Container{Name: "sidecar", Image: "none"})
		s.sizeContainer(&spec.Containers[1])
	}
	if s.maybe(0.2) {
		spec.InitContainers = []corev1.Container{{Name: "init", Image: "none"}}
		s.sizeContainer(&spec.InitContainers[0])
		if s.maybe(0.3) {
			spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
	}
	if s.maybe(0.08) {
		device := resources("example.com/device", "1")
		spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: device, Requests: device.DeepCopy()}
	}
}

func (s *shapes) sizeContainer(c *corev1.Container) {
	cpu, memory := pick(s.draw, "50m", "300m", "1"), pick(s.draw, "16Mi", "200Mi", "1Gi")
	r := &c.Resources
	switch s.IntN(5) {
	case 0:
		r.Requests = resources("cpu", cpu)
	case 1:
		r.Limits = resources("cpu", cpu, "memory", memory)
	case 2:
		r.Requests, r.Limits = resources("cpu", cpu, "memory", memory), resources("cpu", "2", "memory", "2Gi")
	case 3:
		r.Requests = resources("memory", memory)
	}
}

// drawPods draws pods of others and of the workload, some with volumes of CSI drivers.
func (s *shapes) drawPods() {
	for i := range s.IntN(15) {
		pod := makePod(fmt.Sprintf("%sp%d", s.prefix, i), s.node(), "app", pick(s.draw, "a", "b"), "tier", pick(s.draw, "core", "edge"))
		if s.maybe(0.4) {
			pod.Labels["service"] = "glance"
		}
		pod.Spec.PriorityClassName = s.priorityBeside()
		s.sizeContainer(&pod.Spec.Containers[0])
		switch {
		case s.maybe(0.2):
			pod.Namespace = otherNS
		case s.maybe(0.3):
			s.attach(pod)
		}
		if s.maybe(0.1) {
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.podTerms()}}
		}
		switch {
		case s.maybe(0.05):
			pod.Status.Phase = pick(s.draw, corev1.PodSucceeded, corev1.PodFailed)
		case s.maybe(0.06):
			pod.DeletionTimestamp, pod.Finalizers = ptr.To(metav1.Unix(1, 0)), []string{held}
		}
		s.snapshot.Pods = append(s.snapshot.Pods, pod)
	}
	s.drawOwnPods()
}

// priorityBeside returns a priority that the workload cannot preempt.
func (s *shapes) priorityBeside() string {
	if s.workload.Template.Spec.PriorityClassName == "" {
		return pick(s.draw, "", high)
	}
	return pick(s.draw, "", high, low)
}

func (s *shapes) drawOwnPods() {
	if !s.maybe(0.4) {
		return
	}
	for ordinal := range s.workload.Replicas + 1 {
		if s.maybe(0.6) {
			pod := s.workload.pod(ordinal)
			pod.Spec.NodeName, pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints = s.node(), nil, nil
			s.age(pod)
			s.snapshot.Pods = append(s.snapshot.Pods, pod)
		}
	}
}

// attach gives a pod a volume of a CSI driver that has been bound before.
func (s *shapes) attach(pod *corev1.Pod) {
	claim := makeClaim("data-"+pod.Name, pick(s.draw, attachedLate, strictLate), "1Gi")
	pv := s.csiVolume(claim)
	bind(claim, pv)
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
	}}}
	s.snapshot.PersistentVolumes = append(s.snapshot.PersistentVolumes, pv)
	s.snapshot.PersistentVolumeClaims = append(s.snapshot.PersistentVolumeClaims, claim)
}

func (s *shapes) csiVolume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	driver := attached
	if *claim.Spec.StorageClassName == strictLate {
		driver = strict
	}
	key := pick(s.draw, "", "", "zone")
	pv := makeVolume("pv-"+claim.Name, *claim.Spec.StorageClassName, "1Gi", key, pick(s.draw, s.zones...))
	pv.Spec.PersistentVolumeSource = csiSource(driver, pv.Name)
	return pv
}

func csiSource(driver, handle string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}}
}

// drawClaims gives bound claims to pods that are there, and to some that have been
// there before. No one binds claims in the test: those of a class with Immediate
// binding are bound or never.
func (s *shapes) drawClaims() {
	for ordinal := range s.workload.Replicas + 1 {
		runs := slices.ContainsFunc(s.snapshot.Pods, func(p *corev1.Pod) bool { return p.Name == s.workload.podName(ordinal) })
		for _, claim := range s.workload.claims(ordinal) {
			switch {
			case s.maybe(0.4) || runs:
				pv := s.csiVolume(claim)
				bind(claim, pv)
				s.snapshot.PersistentVolumes = append(s.snapshot.PersistentVolumes, pv)
			case *claim.Spec.StorageClassName != attachedAtOnce:
				continue
			}
			s.snapshot.PersistentVolumeClaims = append(s.snapshot.PersistentVolumeClaims, claim)
		}
	}
}

// drawPolicies draws a LimitRange and quotas for the namespace of the workload. Which
// of several LimitRanges gives defaults is up to the API server's luck.
func (s *shapes) drawPolicies() {
	if s.maybe(0.2) {
		r := makeLimitRange(s.limit())
		r.Name = s.prefix + r.Name
		s.snapshot.LimitRanges = []*corev1.LimitRange{r}
	}
	if !s.maybe(0.25) {
		return
	}
	hard := corev1.ResourceList{}
	for range 1 + s.IntN(2) {
		name := pick(s.draw, "pods", "count/pods", "requests.cpu", "limits.cpu", "requests.memory", "memory", "limits.memory")
		hard[corev1.ResourceName(name)] = resource.MustParse(s.hard(name))
	}
	q := makeQuota(s.prefix+"quota", hard, nil)
	if s.maybe(0.2) {
		q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}
	}
	if s.maybe(0.2) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{patient, high}},
		}}
	}
	s.snapshot.ResourceQuotas = []*corev1.ResourceQuota{q}
}

func (s *shapes) hard(name string) string {
	switch {
	case strings.HasSuffix(name, "pods"):
		return fmt.Sprint(s.IntN(18))
	case strings.HasSuffix(name, "cpu"):
		return pick(s.draw, "200m", "2", "6")
	}
	return pick(s.draw, "128Mi", "2Gi", "6Gi")
}

func (s *shapes) limit() corev1.LimitRangeItem {
	return pick(s.draw,
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: resources("cpu", "200m", "memory", "100Mi")},
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: resources("cpu", "1", "memory", "1Gi"), DefaultRequest: resources("cpu", "100m")},
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: resources("cpu", "1500m")},
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: resources("memory", "100Mi")},
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: resources("cpu", "4")},
		corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: resources("cpu", "2", "memory", "2Gi")},
		corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: resources("cpu", "100m")},
	)
}
