package openstackansibleee

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// DefaultResources are those of a run with 50 hosts. Ansible has a process for each, most of whose
// memory they share: docs/performance.md has what was measured.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("2Gi")},
	}
}

// resourcesOf a run with some hosts, given those of the largest: it requests a quarter of the memory,
// which Ansible needs for the first host, and for each host its share of the rest, but not more than
// the limit.
func resourcesOf(largest corev1.ResourceRequirements, hosts int) corev1.ResourceRequirements {
	resources := *largest.DeepCopy()
	if memory, ok := resources.Requests[corev1.ResourceMemory]; ok {
		const mebi = 1 << 20
		full := memory.Value()
		share := full/4 + (full-full/4)*int64(min(hosts, ansibleeev1.MaxTargets))/ansibleeev1.MaxTargets
		if limit, ok := resources.Limits[corev1.ResourceMemory]; ok && limit.Value() < share {
			resources.Requests[corev1.ResourceMemory] = limit // a Pod that requests more is not created
			return resources
		}
		resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity((share+mebi-1)/mebi*mebi, resource.BinarySI)
	}
	return resources
}
