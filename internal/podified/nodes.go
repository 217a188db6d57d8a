package podified

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// nodes says which pods are on nodes that are lost, since when, and what can be
// done. Nothing is done automatically: only a person can know that the pods do not
// run any more, and two pods of one name must never run.
func (p *deployment) nodes(ctx context.Context) error {
	lost, err := p.lost(ctx)
	if err != nil {
		return err
	}
	if len(lost) == 0 {
		p.mark().MarkTrue(podifiedv1.PodNodesReadyCondition, "All scheduled pods are on reachable nodes")
		return nil
	}
	reason, texts := podifiedv1.NodeNotReadyReason, []string{}
	for _, node := range slices.Sorted(maps.Keys(lost)) {
		l := lost[node]
		if stuck := filter(l.pods, terminating); len(stuck) > 0 {
			reason = podifiedv1.PodsTerminatingReason
			texts = append(texts, l.stuck(stuck))
		} else {
			texts = append(texts, l.waiting())
		}
	}
	p.mark().MarkFalse(podifiedv1.PodNodesReadyCondition, reason, condition.SeverityWarning, "%s", strings.Join(texts, " "))
	return nil
}

// lostNode is a node that does not answer, with pods of the set.
type lostNode struct {
	name, state string
	pods        []*corev1.Pod
}

// lost returns the nodes that pods are on and that are not ready, by name.
func (p *deployment) lost(ctx context.Context) (map[string]*lostNode, error) {
	found := map[string]*lostNode{}
	for _, pod := range p.pods {
		name := pod.Spec.NodeName
		if name == "" {
			continue
		}
		if found[name] == nil {
			state, err := p.stateOf(ctx, name)
			if err != nil {
				return nil, err
			}
			found[name] = &lostNode{name: name, state: state}
		}
		found[name].pods = append(found[name].pods, pod)
	}
	maps.DeleteFunc(found, func(_ string, l *lostNode) bool { return l.state == "" })
	return found, nil
}

// stateOf says what is the matter with a node; empty when it is ready.
func (p *deployment) stateOf(ctx context.Context, name string) (string, error) {
	node := &corev1.Node{}
	err := p.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return "no longer exists", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Node %s: %w", name, err)
	}
	ready := readiness(node)
	if ready.Status == corev1.ConditionTrue {
		return "", nil
	}
	return "is NotReady since " + formatTime(ready.LastTransitionTime.Time), nil
}

func readiness(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{Status: corev1.ConditionUnknown}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func terminating(pod *corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() }

// asked is when a pod was asked to end. Its deletionTimestamp is when it should have.
func asked(pod *corev1.Pod) time.Time {
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// waiting is said before pods are evicted.
func (l *lostNode) waiting() string {
	return fmt.Sprintf("Node %s, which %s, has %s. Kubernetes evicts pods when their tolerations of the node's taints end, by default after 5 minutes.",
		l.name, l.state, names.List(podNames(l.pods), names.Few))
}

// stuck is said when pods cannot end, with the three ways out (Kubernetes,
// "Force Delete StatefulSet Pods" and "Non-graceful node shutdown").
func (l *lostNode) stuck(pods []*corev1.Pod) string {
	all := podNames(pods)
	return fmt.Sprintf("Node %[1]s %[2]s, and %[3]s on it is Terminating since %[4]s. The StatefulSet creates no pod of the same name while it is unknown whether the old one is still running. "+
		"To resolve this, bring node %[1]s back; or, if it is permanently off, delete the Node or taint it (kubectl taint node %[1]s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute); "+
		"or, if you know that the pods are no longer running, kubectl delete pod --force --grace-period=0 %[5]s.",
		l.name, l.state, names.List(all, names.Few), formatTime(asked(pods[0])), strings.Join(all, " "))
}
