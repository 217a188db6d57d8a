package podified

import (
	"context"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// replace deletes a set that has to be made again, and leaves its pods and claims:
// one of which a field has to change that cannot, and one of another operator, of
// which containers would stay in the template. The set that is made next takes the
// pods over, which claim has made sure that it selects, and rolls them one at a
// time; claims are kept whether or not pods use them. If the owner goes in between,
// Release deletes the pods.
func (p *deployment) replace(ctx context.Context) error {
	if p.set == nil {
		return nil
	}
	if p.set.DeletionTimestamp.IsZero() {
		cause := p.obsolete()
		if cause == "" {
			return nil
		}
		if err := p.orphanPods(ctx, cause); err != nil {
			return err
		}
	}
	return phase.Waiting(condition.DeploymentReadyCondition, podifiedv1.ReplacingReason,
		"Waiting until the previous StatefulSet %s is deleted; its pods keep running", p.Name)
}

// obsolete says why the set has to be made again; empty when it has not.
func (p *deployment) obsolete() string {
	if !apply.Applied(p.set) {
		return "it was handed over by another operator"
	}
	if field := immutable(p.set, p.want); field != "" {
		return "its " + field + " cannot be changed in place"
	}
	return ""
}

// orphanPods deletes the set and leaves its pods.
func (p *deployment) orphanPods(ctx context.Context, cause string) error {
	err := p.Delete(ctx, p.set, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &p.set.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting StatefulSet %s to recreate it: %w", p.Name, err)
	}
	p.Events.Eventf(p.owner, p.set, corev1.EventTypeNormal, string(podifiedv1.ReplacingReason), "Reconciling",
		"StatefulSet %s is being recreated, because %s. Its pods are replaced one at a time; PersistentVolumeClaims are kept.", p.Name, cause)
	return nil
}

// immutable names the first field that differs and cannot be changed; empty
// when there is none.
func immutable(have, want *appsv1.StatefulSet) string {
	switch {
	case have.Spec.ServiceName != want.Spec.ServiceName:
		return "serviceName"
	case have.Spec.PodManagementPolicy != want.Spec.PodManagementPolicy:
		return "podManagementPolicy"
	case !equality.Semantic.DeepEqual(have.Spec.Selector, want.Spec.Selector):
		return "selector"
	case !slices.EqualFunc(have.Spec.VolumeClaimTemplates, want.Spec.VolumeClaimTemplates, sameClaim):
		return "volumeClaimTemplates"
	}
	return ""
}

// sameClaim compares what is wanted of a claim; the API server adds the rest.
func sameClaim(have, want corev1.PersistentVolumeClaim) bool {
	storage := corev1.ResourceStorage
	return have.Name == want.Name &&
		(want.Spec.StorageClassName == nil) == (have.Spec.StorageClassName == nil) &&
		(want.Spec.StorageClassName == nil || *want.Spec.StorageClassName == *have.Spec.StorageClassName) &&
		slices.Equal(have.Spec.AccessModes, want.Spec.AccessModes) &&
		have.Spec.Resources.Requests[storage].Equal(want.Spec.Resources.Requests[storage])
}

// remake deletes a pod that lacks a volume which the set now claims for it: one
// that is not up first, and one that is when all others are. The StatefulSet
// controller would roll pods, but wants to give them their volumes before, which
// the API server refuses for a pod that runs (UpdateStatefulPod in
// pkg/controller/statefulset).
func (p *deployment) remake(ctx context.Context) error {
	lacking := filter(p.pods, p.lacksVolume)
	if len(lacking) == 0 {
		return nil
	}
	next := lacking[0]
	if down := filter(lacking, func(pod *corev1.Pod) bool { return !up(pod) }); len(down) > 0 {
		next = down[0]
	} else if len(filter(p.pods, up)) < int(p.Replicas) {
		return nil // rollout says what the object waits for
	}
	if terminating(next) {
		return nil
	}
	if err := p.Delete(ctx, next.DeepCopy(), client.Preconditions{UID: &next.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting pod %s to add its volumes: %w", next.Name, err)
	}
	return nil
}

func (p *deployment) lacksVolume(pod *corev1.Pod) bool {
	return slices.ContainsFunc(p.Claims, func(claim corev1.PersistentVolumeClaim) bool {
		return !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == claim.Name && v.PersistentVolumeClaim != nil
		})
	})
}

// up reports whether a pod is ready and stays.
func up(pod *corev1.Pod) bool { return pod.DeletionTimestamp.IsZero() && Ready(pod) }

// Ready reports whether a pod has the condition Ready.
func Ready(pod *corev1.Pod) bool {
	return statusOf(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

// statusOf returns a condition of a pod, an empty one if it has none.
func statusOf(pod *corev1.Pod, t corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return corev1.PodCondition{}
}
