package controllers

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	"github.com/edpm-operators/edpm-operators/controllers/ansibleee/openstackansibleee"
	"github.com/edpm-operators/edpm-operators/controllers/ocs/storagecluster"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// CacheOptions returns what the chosen operators, all if there are none, hold in
// memory: of Jobs those of runs, and of Pods likewise, unless Topologies, podified
// services or OSDs are looked after. How pods are spread, and where more would go,
// depends on all the pods of the cluster. Of resource definitions the one is held
// that somebody waits for.
func CacheOptions(operators []string) cache.Options {
	runners := labels.SelectorFromSet(labels.Set{openstackansibleee.RunnerLabel: "true"})
	pods := cache.ByObject{Label: runners, Transform: withoutTemplate}
	if len(operators) == 0 || slices.ContainsFunc(operators, func(o string) bool { return slices.Contains(placing, o) }) {
		pods = cache.ByObject{Transform: forScheduling}
	}
	held := map[client.Object]cache.ByObject{
		&corev1.Pod{}:  pods,
		&batchv1.Job{}: {Label: runners, Transform: withoutTemplate},
	}
	if slices.Contains(operators, "ocs") {
		held[storagecluster.Definition()] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", cephv1.CephClusterCRD)}
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: held}
}

// placing are the operators that ask where pods are and would go.
var placing = []string{"glance", "nova", "ocs", "topology"}

// withoutTemplate drops what nobody reads of a cached Pod or Job of a run: with
// many runs it is most of the manager's memory. The controller of runs looks at
// metadata and status only, and neither object is ever written back.
func withoutTemplate(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		o.ManagedFields, o.Spec = nil, corev1.PodSpec{}
	case *batchv1.Job:
		o.ManagedFields, o.Spec.Template = nil, corev1.PodTemplateSpec{}
	}
	return obj, nil
}

// forScheduling keeps of a cached Pod what the scheduler looks at, and of one of
// a run the termination message too, which is its result.
func forScheduling(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	containers := pod.Status.ContainerStatuses
	if _, err := placement.Trim(pod); err != nil {
		return nil, err
	}
	if pod.Labels[openstackansibleee.RunnerLabel] == "true" {
		pod.Status.ContainerStatuses = containers
	}
	return pod, nil
}
