package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// inertReason is that of problems that keep no pod from its place.
const inertReason = topologyv1.InertSelectorReason

// changes are what can be done, what changes least first: to pods that the roll-out
// deletes in any case, to nodes that are out of use, to how they count, to what they refuse and lack, to how pods are spread, to what costs
// hardware, and last to what loses data. Each returns remedies that are variants of one,
// none if it does not apply.
var changes = []func(*situation) []remedy{
	deleteOldPods, raiseQuotas, honorTaints, labelNodes, lowerMinDomains, uncordon, recoverNodes, untaint, fixAffinity, relaxPodAffinity, freePorts, endOtherPods,
	makeRoom, raiseDriverLimits, provideVolumes, returnNodes, raiseMaxSkew, scheduleAnyway, addNodes, untaintControlPlane, dropClaims, deleteClaims,
}

func raiseQuotas(s *situation) []remedy {
	if len(s.ResourceQuotas)+len(s.LimitRanges) == 0 {
		return nil
	}
	return []remedy{{
		text:  always("raise the ResourceQuota of the namespace (kubectl describe resourcequota), or set the requests and limits of the containers and claims within its LimitRanges (kubectl describe limitrange)"),
		apply: func(s *situation) { s.ResourceQuotas, s.LimitRanges = nil, nil },
	}}
}

// honorTaints has nodes that the pods do not tolerate not count as empty domains.
func honorTaints(s *situation) []remedy {
	ignores := func(c *corev1.TopologySpreadConstraint) bool {
		return ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyIgnore
	}
	keys := s.hardKeys(ignores)
	refusing := s.untolerated(func(corev1.Taint) bool { return true })
	if len(keys) == 0 || len(refusing) == 0 {
		return nil
	}
	return []remedy{{
		text: always("set nodeTaintsPolicy: Honor in the topology spread constraint on %s, so that nodes with taints that the pods do not tolerate (%s) no longer count as empty domains",
			strings.Join(keys, " and "), names.List(refusing, names.Few)),
		apply: func(s *situation) {
			s.changeConstraints(ignores, func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor) })
		},
	}}
}

// untolerated returns the nodes that have a taint of a kind that one of the stuck
// workloads does not tolerate.
func (s *situation) untolerated(kind func(corev1.Taint) bool) []string {
	nodes := filter(s.Nodes, func(n *corev1.Node) bool {
		of := &corev1.Node{Spec: corev1.NodeSpec{Taints: filter(n.Spec.Taints, kind)}}
		return slices.ContainsFunc(s.stuckWorkloads(), func(w *Workload) bool { return !tolerates(admit(w.pod(0)), of) })
	})
	return sortedNames(nodes)
}

func sortedNames(nodes []*corev1.Node) []string {
	result := collectNames(nodes, (*corev1.Node).GetName)
	slices.Sort(result)
	return result
}

// labelNodes gives nodes the labels of constraints, in a domain that is there or in one
// of its own.
func labelNodes(s *situation) []remedy {
	var variants []remedy
	for _, key := range s.hardKeys(func(*corev1.TopologySpreadConstraint) bool { return true }) {
		lacking := sortedNames(filter(s.Nodes, func(n *corev1.Node) bool { return !hasAll(n, []string{key}) }))
		if len(lacking) == 0 {
			continue
		}
		domains := append(domainsOf(s.Nodes, key), "")
		for _, domain := range domains {
			variants = append(variants, remedy{
				text: func(p Problem) string { return labelText(p, lacking, key) },
				apply: func(s *situation) {
					s.changeNodes(func(n *corev1.Node) bool { return !hasAll(n, []string{key}) }, func(n *corev1.Node) {
						metav1.SetMetaDataLabel(&n.ObjectMeta, key, domain)
						if domain == "" {
							n.Labels[key] = n.Name
						}
					})
				},
			})
		}
	}
	return variants
}

// labelText names the node of the problem, if it is about a single one.
func labelText(p Problem, lacking []string, key string) string {
	if p.Node != "" {
		return fmt.Sprintf("label node %s with %s (kubectl label node %s %s=<domain>)", p.Node, key, p.Node, key)
	}
	return fmt.Sprintf("label the nodes %s, each with its domain (kubectl label node %s %s=<domain>)", names.List(lacking, names.Few), lacking[0], key)
}

// domainsOf returns the values of a label, at most as many as are worth trying.
func domainsOf(nodes []*corev1.Node, key string) []string {
	const few = 4
	values := map[string]bool{}
	for _, n := range nodes {
		if value, has := n.Labels[key]; has {
			values[value] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(values))
	return sorted[:min(few, len(sorted))]
}

func lowerMinDomains(s *situation) []remedy {
	all := func(c *corev1.TopologySpreadConstraint) bool { return ptr.Deref(c.MinDomains, 1) > 1 }
	keys := s.hardKeys(all)
	if len(keys) == 0 {
		return nil
	}
	texts := map[string]string{}
	for _, key := range keys {
		texts[key] = fmt.Sprintf("lower minDomains of the topology spread constraint on %s", key)
	}
	return []remedy{{
		text: func(p Problem) string {
			if p.Reason == topologyv1.MinDomainsUnmetReason {
				return fmt.Sprintf("lower minDomains to %d, or add domains (nodes with other values of the label %s)", p.domains, p.Key)
			}
			return strings.Join(slices.Sorted(maps.Values(texts)), " and ")
		},
		apply: func(s *situation) {
			s.changeConstraints(all, func(c *corev1.TopologySpreadConstraint) { c.MinDomains = nil })
		},
	}}
}

func uncordon(s *situation) []remedy {
	cordoned := func(n *corev1.Node) bool { return n.Spec.Unschedulable }
	nodes := sortedNames(filter(s.Nodes, cordoned))
	if len(nodes) == 0 {
		return nil
	}
	return only(divisible(nodes, func(some []string) remedy {
		return remedy{
			text: always("uncordon nodes (kubectl uncordon): %s", names.List(some, names.Few)),
			apply: func(s *situation) {
				s.changeNodes(isNamed(some, (*corev1.Node).GetName), func(n *corev1.Node) {
					n.Spec.Unschedulable = false
					n.Spec.Taints = filter(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key != corev1.TaintNodeUnschedulable })
				})
			},
		}
	}))
}

// Kinds of taints: those that Kubernetes sets while something is wrong with a node,
// those of control planes, and all others.
func isCondition(t corev1.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") && t.Key != corev1.TaintNodeUnschedulable
}

func isControlPlane(t corev1.Taint) bool {
	return t.Key == "node-role.kubernetes.io/control-plane" || t.Key == "node-role.kubernetes.io/master"
}

func isOther(t corev1.Taint) bool {
	return !isCondition(t) && !isControlPlane(t) && t.Key != corev1.TaintNodeUnschedulable
}

func recoverNodes(s *situation) []remedy {
	return s.withoutTaints(isCondition, "bring these nodes back, which Kubernetes has tainted because something is wrong with them (kubectl describe node): %s")
}

func untaint(s *situation) []remedy {
	return s.withoutTaints(isOther, "take the taints off nodes, or tolerate them: %s")
}

func untaintControlPlane(s *situation) []remedy {
	return s.withoutTaints(isControlPlane, "tolerate the taints of the control plane, which then runs these pods as well: %s")
}

func (s *situation) withoutTaints(kind func(corev1.Taint) bool, format string) []remedy {
	nodes := s.untolerated(kind)
	if len(nodes) == 0 {
		return nil
	}
	return only(divisible(nodes, func(some []string) remedy {
		return remedy{
			text: always(format, names.List(some, names.Few)),
			apply: func(s *situation) {
				s.changeNodes(isNamed(some, (*corev1.Node).GetName), func(n *corev1.Node) {
					n.Spec.Taints = filter(n.Spec.Taints, func(t corev1.Taint) bool { return !kind(t) })
				})
			},
		}
	}))
}

func fixAffinity(s *situation) []remedy {
	asks := func(w *Workload) bool {
		a := w.Template.Spec.Affinity
		return len(w.Template.Spec.NodeSelector) > 0 || a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
	}
	if !slices.ContainsFunc(s.stuckWorkloads(), asks) {
		return nil
	}
	return []remedy{{
		text: always("fix the node affinity or nodeSelector, or label nodes so that they match"),
		apply: func(s *situation) {
			s.changeTemplates(func(t *corev1.PodTemplateSpec) {
				t.Spec.NodeSelector = nil
				if t.Spec.Affinity != nil && t.Spec.Affinity.NodeAffinity != nil {
					t.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
				}
			})
		},
	}}
}

func makeRoom(s *situation) []remedy {
	if len(s.Nodes) == 0 {
		return nil
	}
	return []remedy{{
		text:  always("make room on nodes or add some, or lower the resource requests"),
		apply: func(s *situation) { s.changeNodes(sampled(s.Nodes), s.enlarge) },
	}}
}

// sampled chooses nodes of all parts of a large cluster: to change each costs the memory
// of a whole view of it.
func sampled(nodes []*corev1.Node) func(*corev1.Node) bool {
	const many = 250
	chosen := map[string]bool{}
	for i := 0; i < len(nodes); i += 1 + len(nodes)/many {
		chosen[nodes[i].Name] = true
	}
	return func(n *corev1.Node) bool { return chosen[n.Name] }
}

// enlarge gives a node room for everything that the workloads ask for.
func (s *situation) enlarge(n *corev1.Node) {
	much := *resource.NewQuantity(1<<50, resource.BinarySI)
	allocatable := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10000"), corev1.ResourceEphemeralStorage: much}
	for name := range n.Status.Allocatable {
		if name != corev1.ResourcePods {
			allocatable[name] = much
		}
	}
	for i := range s.workloads {
		pod := admit(s.workloads[i].pod(0))
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			for name := range c.Resources.Requests {
				allocatable[name] = much
			}
		}
	}
	n.Status.Allocatable = allocatable
}

// raiseDriverLimits has each node take any number of volumes of each driver.
func raiseDriverLimits(s *situation) []remedy {
	drivers := s.drivers()
	if len(drivers) == 0 {
		return nil
	}
	return []remedy{{
		text:  always("add nodes with the CSI drivers, or volumes to their limit: those that there are take no more volumes, or lack the driver"),
		apply: func(s *situation) { s.CSINodes = unlimited(s.Nodes, drivers) },
	}}
}

// drivers are the CSI drivers of classes and volumes.
func (s *situation) drivers() []string {
	drivers := map[string]bool{}
	for _, class := range s.StorageClasses {
		drivers[class.Provisioner] = true
	}
	for _, pv := range s.PersistentVolumes {
		if pv.Spec.CSI != nil {
			drivers[pv.Spec.CSI.Driver] = true
		}
	}
	return slices.Sorted(maps.Keys(drivers))
}

func unlimited(nodes []*corev1.Node, drivers []string) []*storagev1.CSINode {
	var all []*storagev1.CSINode
	for _, n := range nodes {
		csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		for _, driver := range drivers {
			csi.Spec.Drivers = append(csi.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: n.Name})
		}
		all = append(all, csi)
	}
	return all
}

// provideVolumes binds what waits for a volume.
func provideVolumes(s *situation) []remedy {
	if len(s.stuckClaims()) == 0 && !slices.ContainsFunc(s.stuckWorkloads(), func(w *Workload) bool { return len(w.ClaimTemplates) > 0 }) {
		return nil
	}
	return []remedy{{
		text:  always("see that the claims of the pods are bound or can be (kubectl describe pvc): add volumes, or a StorageClass that makes them"),
		apply: (*situation).bindAll,
	}}
}

// bindAll has each class make volumes that all nodes reach, and binds claims that wait.
func (s *situation) bindAll() {
	s.CSIStorageCapacities = nil
	classes := map[string]bool{}
	for _, class := range s.StorageClasses {
		classes[class.Name] = true
	}
	s.StorageClasses = replaced(s.StorageClasses, func(*storagev1.StorageClass) bool { return true }, (*storagev1.StorageClass).DeepCopy, makesVolumes)
	add := func(name *string) {
		if name != nil && *name != "" && !classes[*name] {
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: *name}}
			makesVolumes(class)
			s.StorageClasses, classes[*name] = append(s.StorageClasses, class), true
		}
	}
	for i := range s.workloads {
		for j := range s.workloads[i].ClaimTemplates {
			add(s.workloads[i].ClaimTemplates[j].Spec.StorageClassName)
		}
	}
	s.PersistentVolumes = slices.Clone(s.PersistentVolumes)
	waits := func(c *corev1.PersistentVolumeClaim) bool { return c.Spec.VolumeName == "" }
	s.PersistentVolumeClaims = replaced(s.PersistentVolumeClaims, waits, (*corev1.PersistentVolumeClaim).DeepCopy, func(c *corev1.PersistentVolumeClaim) {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "provided-" + c.Namespace + "-" + c.Name}}
		pv.Spec.AccessModes, pv.Spec.Capacity, pv.Spec.StorageClassName = c.Spec.AccessModes, c.Spec.Resources.Requests, ptr.Deref(c.Spec.StorageClassName, "")
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
		pv.Status.Phase = corev1.VolumeBound
		s.PersistentVolumes = append(s.PersistentVolumes, pv)
		c.Spec.VolumeName = pv.Name
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, volume.AnnBindCompleted, "yes")
	})
}

// makesVolumes has a class make volumes for each pod where it is placed.
func makesVolumes(class *storagev1.StorageClass) {
	class.Provisioner, class.AllowedTopologies = "provided.example.com", nil
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
}

// returnNodes brings back the nodes of volumes that no node reaches.
func returnNodes(s *situation) []remedy {
	lost := filter(s.volumesOf(s.stuckClaims()), func(pv *corev1.PersistentVolume) bool {
		return !slices.ContainsFunc(s.Nodes, func(n *corev1.Node) bool { return volume.CheckNodeAffinity(pv, n.Labels) == nil })
	})
	if len(lost) == 0 {
		return nil
	}
	return []remedy{{
		text: always("bring the volume's node back"),
		apply: func(s *situation) {
			for i, pv := range lost {
				node := s.newNode(fmt.Sprintf("returned-%d", i))
				for _, e := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions {
					if len(e.Values) > 0 {
						node.Labels[e.Key] = e.Values[0]
					}
				}
				s.addNode(node)
			}
		},
	}}
}

// newNode returns a node that is empty, and a domain of its own.
func (s *situation) newNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	for _, key := range s.hardKeys(func(*corev1.TopologySpreadConstraint) bool { return true }) {
		node.Labels[key] = name
	}
	s.enlarge(node)
	return node
}

func (s *situation) addNode(node *corev1.Node) {
	s.Nodes = append(slices.Clone(s.Nodes), node)
	s.CSINodes = append(slices.Clone(s.CSINodes), unlimited([]*corev1.Node{node}, s.drivers())...)
}

func raiseMaxSkew(s *situation) []remedy {
	all := func(*corev1.TopologySpreadConstraint) bool { return true }
	var variants []remedy
	for _, key := range s.hardKeys(all) {
		of := func(c *corev1.TopologySpreadConstraint) bool { return c.TopologyKey == key }
		variants = append(variants, remedy{
			text:  always("raise maxSkew of the topology spread constraint on %s by one", key),
			apply: func(s *situation) { s.changeConstraints(of, func(c *corev1.TopologySpreadConstraint) { c.MaxSkew++ }) },
		})
	}
	return variants
}

func scheduleAnyway(s *situation) []remedy {
	var variants []remedy
	all := func(*corev1.TopologySpreadConstraint) bool { return true }
	soften := func(keys []string) remedy {
		of := func(c *corev1.TopologySpreadConstraint) bool { return slices.Contains(keys, c.TopologyKey) }
		return remedy{
			text: always("use whenUnsatisfiable: ScheduleAnyway in the topology spread constraint on %s", strings.Join(keys, " and ")),
			apply: func(s *situation) {
				s.changeConstraints(of, func(c *corev1.TopologySpreadConstraint) {
					c.WhenUnsatisfiable, c.MinDomains = corev1.ScheduleAnyway, nil
				})
			},
		}
	}
	keys := s.hardKeys(all)
	for _, key := range keys {
		variants = append(variants, soften([]string{key}))
	}
	if len(keys) > 1 {
		variants = append(variants, soften(keys))
	}
	return variants
}

// addNodes adds a node like each of those with other labels, one for each stuck pod.
func addNodes(s *situation) []remedy {
	const few = 20
	return []remedy{{
		text: always("add nodes that can take the pods"),
		apply: func(s *situation) {
			seen := map[string]bool{}
			for _, n := range append(slices.Clone(s.Nodes), &corev1.Node{}) {
				own := maps.Clone(n.Labels)
				delete(own, corev1.LabelHostname)
				if seen[fmt.Sprint(own)] || len(seen) == few {
					continue
				}
				seen[fmt.Sprint(own)] = true
				for i := range min(len(s.stuck), few) {
					node := s.newNode(fmt.Sprintf("added-%d-%d", len(seen), i))
					maps.Copy(node.Labels, own)
					s.addNode(node)
				}
			}
		},
	}}
}

// bound are the claims of stuck pods that have volumes.
func (s *situation) bound() []*corev1.PersistentVolumeClaim {
	return filter(s.stuckClaims(), func(c *corev1.PersistentVolumeClaim) bool { return c.Spec.VolumeName != "" })
}

func dropClaims(s *situation) []remedy {
	if len(s.bound()) == 0 || !slices.ContainsFunc(s.stuckWorkloads(), func(w *Workload) bool { return len(w.ClaimTemplates) > 0 }) {
		return nil
	}
	return []remedy{{
		text: always("give the pods no volumes of their own (storage.external: true, where the service has it)"),
		apply: func(s *situation) {
			s.workloads = slices.Clone(s.workloads)
			for i := range s.workloads {
				s.workloads[i].ClaimTemplates = nil
			}
		},
	}}
}

// deleteClaims loses data: it is the last that is tried, and says what is lost.
func deleteClaims(s *situation) []remedy {
	claims := s.bound()
	if len(claims) == 0 {
		return nil
	}
	return []remedy{{
		loses: true,
		text: func(p Problem) string {
			if p.claim != "" {
				return fmt.Sprintf("delete claim %s, so that a new volume is made elsewhere; all data on PersistentVolume %s (%s) is lost", p.claim, p.Volume, p.size)
			}
			lost := collectNames(claims, func(c *corev1.PersistentVolumeClaim) string {
				return fmt.Sprintf("%s on %s", c.Name, c.Spec.VolumeName)
			})
			return fmt.Sprintf("delete the claims, so that new volumes are made elsewhere; all data is lost of %s", names.List(lost, names.Few))
		},
		apply: func(s *situation) {
			s.PersistentVolumes = filter(s.PersistentVolumes, func(pv *corev1.PersistentVolume) bool { return !slices.Contains(s.volumesOf(claims), pv) })
			s.PersistentVolumeClaims = filter(s.PersistentVolumeClaims, func(c *corev1.PersistentVolumeClaim) bool { return !slices.Contains(claims, c) })
		},
	}}
}

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
