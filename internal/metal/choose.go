package metal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// Want is what a node asks of a machine.
type Want struct {
	// Namespace and Node that asks.
	Namespace, Node string
	// Name of the BareMetalHost; empty means any that Labels and Hardware fit.
	Name string
	// Former is the host that the node had before, and has only again by its Name.
	Former   string
	Labels   map[string]string
	Hardware *dataplanev1.HardwareReqs
	// Hints select the disk of the image; nil means any.
	Hints *metal3v1.RootDeviceHints
	// SpreadLabel is a label of BareMetalHosts over whose values the nodes of the
	// role are spread; empty means none.
	SpreadLabel string
	// Members are the names of the nodes of the role.
	Members map[string]bool
	// Exists reports whether there is a node of that name.
	Exists func(node string) bool
	// Occupant returns, in words, the node that is reached at an address of the host,
	// empty if none is.
	Occupant func(*metal3v1.BareMetalHost) string
}

// Choose returns the host that the node is to claim, the same for the same hosts
// in any order, or nil and what is missing.
func (w Want) Choose(hosts []metal3v1.BareMetalHost) (*metal3v1.BareMetalHost, string) {
	if w.Name != "" {
		return w.named(hosts)
	}
	selector := labels.SelectorFromSet(w.Labels)
	var fitting []*metal3v1.BareMetalHost
	missing := tally{selector: selector}
	for i := range hosts {
		host := &hosts[i]
		if !selector.Matches(labels.Set(host.Labels)) {
			continue
		}
		why := w.findObstacle(host)
		if problem := cmp.Or(why, w.replaced(host), escapeForeignText(unmet(w.Hardware, w.Hints, host))); problem != "" {
			missing.add(host.Name, problem, why == "")
			continue
		}
		fitting = append(fitting, host)
	}
	if len(fitting) == 0 {
		return nil, missing.message()
	}
	used := w.used(hosts)
	return slices.MinFunc(fitting, func(a, b *metal3v1.BareMetalHost) int {
		return cmp.Or(cmp.Compare(w.rank(used, a), w.rank(used, b)), cmp.Compare(a.Labels[w.SpreadLabel], b.Labels[w.SpreadLabel]), cmp.Compare(a.Name, b.Name))
	}), ""
}

// named returns the host that the node names.
func (w Want) named(hosts []metal3v1.BareMetalHost) (*metal3v1.BareMetalHost, string) {
	for i := range hosts {
		if hosts[i].Name != w.Name {
			continue
		}
		if problem := w.findObstacle(&hosts[i]); problem != "" {
			return nil, fmt.Sprintf("BareMetalHost %s (spec.bareMetalHost) %s", w.Name, problem)
		}
		return &hosts[i], ""
	}
	return nil, fmt.Sprintf("BareMetalHost %s (spec.bareMetalHost) does not exist in namespace %s: register the machine, or correct the name", w.Name, w.Namespace)
}

// used is how many nodes of the role each value of the label has already.
func (w Want) used(hosts []metal3v1.BareMetalHost) map[string]int {
	used := map[string]int{}
	for i := range hosts {
		if ref := hosts[i].Spec.ConsumerRef; ofNode(ref, w.Namespace) && w.Members[ref.Name] {
			used[hosts[i].Labels[w.SpreadLabel]]++
		}
	}
	return used
}

// rank orders hosts by how many nodes their value of the label has. A host without
// the label comes last: no one knows where it is.
func (w Want) rank(used map[string]int, host *metal3v1.BareMetalHost) int {
	if w.SpreadLabel == "" {
		return 0
	}
	value, labelled := host.Labels[w.SpreadLabel]
	if !labelled {
		return int(^uint(0) >> 1)
	}
	return used[value]
}

// findObstacle returns why no one may claim the host, empty if the node may. It is fit
// for a message: who writes BareMetalHosts, and the machines, chose parts of it.
func (w Want) findObstacle(host *metal3v1.BareMetalHost) string {
	return escapeForeignText(w.ineligible(host))
}

func (w Want) ineligible(host *metal3v1.BareMetalHost) string {
	switch ref := host.Spec.ConsumerRef; {
	case !host.DeletionTimestamp.IsZero():
		return "is being deleted"
	case ofNode(ref, w.Namespace) && w.Exists != nil && !w.Exists(ref.Name):
		return fmt.Sprintf("is claimed by OpenStackDataPlaneNode %s, which does not exist: create that node again, or remove spec.consumerRef from the host if nothing runs there", ref.Name)
	case ref != nil:
		return fmt.Sprintf("is claimed by %s %s", cmp.Or(ref.Kind, "an object"), ref.Name)
	}
	return cmp.Or(findHold(host), w.rooted(host), w.occupied(host))
}

// findHold returns why a host that no one has claimed is not free.
func findHold(host *metal3v1.BareMetalHost) string {
	state := host.Status.Provisioning.State
	if mark := findMark(host); mark != "" {
		return mark
	}
	switch {
	case has(host, metal3v1.PausedAnnotation):
		return "is paused: remove annotation " + metal3v1.PausedAnnotation
	case has(host, metal3v1.DetachedAnnotation) || host.Status.OperationalStatus == metal3v1.StatusDetached:
		return "is detached: remove annotation " + metal3v1.DetachedAnnotation
	case host.Spec.ExternallyProvisioned || state == metal3v1.StateExternallyProvisioned:
		return "is externally provisioned: use it as a node with preProvisioned: true and its address"
	case host.Status.OperationalStatus == metal3v1.StatusError || host.Status.ErrorType != "" || host.Status.ErrorMessage != "":
		return fmt.Sprintf("is in error (%s): correct it", cmp.Or(host.Status.ErrorType, "no type"))
	case host.Spec.Image != nil || host.Spec.CustomDeploy != nil:
		return "has an image of its own: remove spec.image if nothing runs there"
	case state != metal3v1.StateAvailable && state != metal3v1.StateReady:
		return fmt.Sprintf("is not available yet (%s)", cmp.Or(string(state), "not registered"))
	}
	return ""
}

// findMark returns by what a person or another controller has marked a host as not to be
// used.
func findMark(host *metal3v1.BareMetalHost) string {
	for _, annotation := range []string{metal3v1.UnhealthyAnnotation, metal3v1.FormerUnhealthyAnnotation} {
		if has(host, annotation) {
			return "is marked as unhealthy: repair the machine, and remove annotation " + annotation
		}
	}
	for _, annotation := range slices.Sorted(maps.Keys(host.Annotations)) {
		if strings.HasPrefix(annotation, metal3v1.HeldOffAnnotation) {
			return "is kept powered off: remove annotation " + annotation
		}
	}
	if _, found := host.Labels[metal3v1.NodeReuseLabel]; found {
		return "is reserved for another cluster: remove label " + metal3v1.NodeReuseLabel
	}
	return ""
}

// rooted returns why a host whose disk for the image is chosen already does not do.
func (w Want) rooted(host *metal3v1.BareMetalHost) string {
	if raid := host.Spec.RAID; w.Hints == nil || raid == nil || !slices.ContainsFunc(raid.SoftwareRAIDVolumes, isRoot) {
		return ""
	}
	return "has a software RAID volume with rootVolume: true, which baremetal-operator takes without rootDeviceHints only: remove baremetalSetTemplate.rootDeviceHints, or rootVolume"
}

func isRoot(volume metal3v1.RAIDVolume) bool { return volume.RootVolume }

// replaced returns why the node does not claim the machine that it had before.
func (w Want) replaced(host *metal3v1.BareMetalHost) string {
	if w.Former != host.Name {
		return ""
	}
	return fmt.Sprintf("is the machine that %s had before: set spec.bareMetalHost of the node to have it again", w.Node)
}

func (w Want) occupied(host *metal3v1.BareMetalHost) string {
	if w.Occupant == nil {
		return ""
	}
	if node := w.Occupant(host); node != "" {
		return fmt.Sprintf("has an address of %s, which runs there already", node)
	}
	return ""
}

func has(host *metal3v1.BareMetalHost, annotation string) bool {
	_, found := host.Annotations[annotation]
	return found
}

// ofNode reports whether the consumer is a node of the namespace.
func ofNode(ref *corev1.ObjectReference, namespace string) bool {
	return ref != nil && ref.Kind == ConsumerKind && ref.Namespace == namespace && strings.HasPrefix(ref.APIVersion, dataplanev1.GroupVersion.Group+"/")
}

// tally is why hosts do not do, for a message.
type tally struct {
	selector labels.Selector
	free     int
	// hosts by the problem that they have.
	hosts map[string][]string
}

func (t *tally) add(host, problem string, free bool) {
	if t.hosts == nil {
		t.hosts = map[string][]string{}
	}
	t.hosts[problem] = append(t.hosts[problem], host)
	if free {
		t.free++
	}
}

// maxNamed is how many hosts with one problem a message names, and maxProblems how
// many problems it has.
const maxNamed, maxProblems = 3, 6

// message says how many hosts there are, how many are free, and what is wrong with
// each, the most frequent problem first.
func (t *tally) message() string {
	total, which := 0, "BareMetalHosts"
	if !t.selector.Empty() {
		which += " with labels " + t.selector.String()
	}
	problems := slices.SortedFunc(maps.Keys(t.hosts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(t.hosts[b]), len(t.hosts[a])), cmp.Compare(a, b))
	})
	var parts []string
	for i, problem := range problems {
		hosts := slices.Sorted(slices.Values(t.hosts[problem]))
		if total += len(hosts); i < maxProblems {
			parts = append(parts, fmt.Sprintf("%s %s", names.List(hosts, maxNamed), problem))
		}
	}
	if total == 0 {
		return fmt.Sprintf("There are no %s: register machines, or correct baremetalSetTemplate.bmhLabelSelector", which)
	}
	if more := len(problems) - maxProblems; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more problems", more))
	}
	return fmt.Sprintf("%d of %d %s are free, and none fits: %s", t.free, total, which, strings.Join(parts, "; "))
}
