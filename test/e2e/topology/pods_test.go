package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// States of a pod that is not up.
const (
	pending     = "Pending"
	terminating = "Terminating"
)

func pods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := k8s.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"service": "glance"})
	return list.Items, err
}

// listing is "oc get pods -l service=glance -o wide": the node of each pod that
// is up, and the state of the others.
func listing(ctx context.Context) (map[string]string, error) {
	items, err := pods(ctx)
	states := map[string]string{}
	for i := range items {
		states[items[i].Name] = state(&items[i])
	}
	return states, err
}

func state(pod *corev1.Pod) string {
	switch {
	case !pod.DeletionTimestamp.IsZero():
		return terminating
	case pod.Spec.NodeName == "":
		return pending
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return pod.Spec.NodeName
		}
	}
	return string(pod.Status.Phase) + ", not ready"
}

// zones is the listing with the zones of the nodes in place of their names.
func zones(ctx context.Context) (map[string]string, error) {
	states, err := listing(ctx)
	if err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	err = k8s.List(ctx, nodes)
	for pod, state := range states {
		if i := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return n.Name == state }); i >= 0 {
			states[pod] = nodes.Items[i].Labels["zone"]
		}
	}
	return states, err
}

type lister func(context.Context) (map[string]string, error)

// listingOf and zonesOf have only the pods with a prefix.
func listingOf(prefix string) lister { return lister(listing).of(prefix) }
func zonesOf(prefix string) lister   { return lister(zones).of(prefix) }

func (l lister) of(prefix string) lister {
	return func(ctx context.Context) (map[string]string, error) {
		all, err := l(ctx)
		maps.DeleteFunc(all, func(pod, _ string) bool { return !strings.HasPrefix(pod, prefix) })
		return all, err
	}
}

// perZone counts the pods with a prefix by zone, or by state if they are not up.
func perZone(prefix string) func(context.Context) (map[string]int, error) {
	return func(ctx context.Context) (map[string]int, error) {
		all, err := zonesOf(prefix)(ctx)
		counts := map[string]int{}
		for _, zone := range all {
			counts[zone]++
		}
		return counts, err
	}
}

// allIn is a listing of the pods of some StatefulSets that are all in one place.
func allIn(place string, replicas int, sets ...string) map[string]string {
	states := map[string]string{}
	for _, set := range sets {
		for i := range replicas {
			states[fmt.Sprintf("%s-%d", set, i)] = place
		}
	}
	return states
}

// haveEntries succeeds for a listing that has all of these entries.
func haveEntries(entries map[string]string) types.GomegaMatcher {
	var all []types.GomegaMatcher
	for _, pod := range slices.Sorted(maps.Keys(entries)) {
		all = append(all, HaveKeyWithValue(pod, entries[pod]))
	}
	return And(all...)
}

// on returns the names of the pods that are on a node, whatever their state.
func on(ctx context.Context, node string) []string {
	GinkgoHelper()
	items, err := pods(ctx)
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for i := range items {
		if items[i].Spec.NodeName == node {
			names = append(names, items[i].Name)
		}
	}
	return names
}

// identities are the UIDs of the pods with a prefix: a pod that is recreated has
// another one.
func identities(prefix string) func(context.Context) (map[string]apitypes.UID, error) {
	return func(ctx context.Context) (map[string]apitypes.UID, error) {
		items, err := pods(ctx)
		uids := map[string]apitypes.UID{}
		for i := range items {
			if strings.HasPrefix(items[i].Name, prefix) {
				uids[items[i].Name] = items[i].UID
			}
		}
		return uids, err
	}
}

func mustIdentify(ctx context.Context, prefix string) map[string]apitypes.UID {
	GinkgoHelper()
	uids, err := identities(prefix)(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(uids).NotTo(BeEmpty(), "pods %s*", prefix)
	return uids
}

func getPod(ctx context.Context, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{ObjectMeta: named(name)}
	return p, k8s.Get(ctx, client.ObjectKeyFromObject(p), p)
}

func pod(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	p, err := getPod(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// defaultAntiAffinity is what the seeds find in every pod of glance.
func defaultAntiAffinity() *corev1.PodAntiAffinity {
	return &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight: 100,
		PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: "service", Operator: metav1.LabelSelectorOpIn, Values: []string{"glance"},
			}}},
			TopologyKey: "kubernetes.io/hostname",
		},
	}}}
}
