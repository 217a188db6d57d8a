// Package cache says what the manager holds in memory: no more of an object than is read,
// and once what many objects have in common.
package cache

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeimage"
	"github.com/edpm-operators/edpm-operators/internal/placement"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Options returns what the chosen operators, all if there are none, hold in
// memory: of Jobs those of runs and of services in pods, and of Pods those of runs, unless Topologies, podified
// services or OSDs are looked after. How pods are spread, and where more would go,
// depends on all the pods of the cluster. Of resource definitions the one is held
// that a user waits for.
//
// Whoever may write objects in some namespace decides how many there are and how
// large: of what is none of ours no more is held than is looked at.
func Options(operators []string) ctrlcache.Options {
	runners := labels.SelectorFromSet(labels.Set{ansibleeev1.RunnerLabel: "true"})
	jobs, err := labels.NewRequirement(podified.AppLabel, selection.In, []string{ansibleeev1.RunnerApp, podified.JobApp})
	utilruntime.Must(err) // both are constants
	pods := ctrlcache.ByObject{Label: runners, Transform: withoutTemplate}
	if len(operators) == 0 || slices.ContainsFunc(operators, func(o string) bool { return slices.Contains(placing, o) }) {
		pods = ctrlcache.ByObject{Transform: podsForScheduling()}
	}
	held := map[client.Object]ctrlcache.ByObject{
		&corev1.Pod{}:                   pods,
		&corev1.Node{}:                  {Transform: trimmedSnapshot},
		&batchv1.Job{}:                  {Label: labels.NewSelector().Add(*jobs), Transform: withoutTemplate},
		&batchv1.CronJob{}:              {Label: labels.SelectorFromSet(labels.Set{podified.AppLabel: podified.JobApp})},
		&corev1.ConfigMap{}:             {Transform: identityOnly},
		&appsv1.StatefulSet{}:           {Transform: withoutForeign},
		&corev1.Service{}:               {Transform: withoutForeign},
		&policyv1.PodDisruptionBudget{}: {Transform: withoutForeign},
	}
	if slices.Contains(operators, "ocs") {
		held[watch.Definition()] = ctrlcache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", cephv1.CephClusterCRD)}
	}
	return ctrlcache.Options{DefaultTransform: trimmed, ByObject: held}
}

// ClientOptions returns what the client of the manager reads past the cache: the
// kinds that internal/inputs reads by name, so that nothing caches all of them by
// accident.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}}
}

// placing are the operators that ask where pods are and would go.
var placing = []string{"glance", "nova", "ocs", "topology"}

// longAnnotation is the longest annotation of others that is held, in bytes. They
// can have 256 KiB on each object; those that Kubernetes reads are short.
const longAnnotation = 1 << 10

// trimmed drops from an object what no one here reads: most managed fields, and long
// annotations that are not of edpm-operators, such as that of kubectl apply. Texts that
// many objects have are shared. Cached objects are never written back as a whole.
func trimmed(obj any) (any, error) {
	shareText(obj)
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(managers(o))
		maps.DeleteFunc(o.GetAnnotations(), func(key, value string) bool {
			return len(value) > longAnnotation && !ours(key)
		})
	}
	return obj, nil
}

// managers are those of an object's fields that are read: who chose the image of a compute.
func managers(o metav1.Object) []metav1.ManagedFieldsEntry {
	if _, ok := o.(*novav1.NovaExternalCompute); ok {
		return computeimage.Managers(o.GetManagedFields())
	}
	return nil
}

// maxOwners is how many owners of a ConfigMap are held: the options of an image (internal/nova/options)
// have as many as there are cells in a namespace that use it.
const maxOwners = 100

// ours reports whether an annotation is of edpm-operators.
func ours(key string) bool { return strings.Contains(key, ".openstack.org/") }

// identityOnly keeps of the metadata of a ConfigMap what says which it is, in
// which version, and whose: of those that do not control it the UID. Its content is read by name
// (internal/inputs).
func identityOnly(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("caching %T: ConfigMaps are cached as metadata only", obj)
	}
	kept := identity(&m.ObjectMeta)
	for _, owner := range m.OwnerReferences[:min(len(m.OwnerReferences), maxOwners)] {
		if !ptr.Deref(owner.Controller, false) {
			kept.OwnerReferences = append(kept.OwnerReferences, metav1.OwnerReference{UID: owner.UID})
		}
	}
	m.ObjectMeta = kept
	return m, nil
}

func identity(o *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, DeletionTimestamp: o.DeletionTimestamp,
	}
	if owner := metav1.GetControllerOf(o); owner != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if owner, found := o.Annotations[common.OwnerAnnotation]; found && len(owner) <= longAnnotation {
		kept.Annotations = map[string]string{common.OwnerAnnotation: owner}
	}
	return kept
}

// withoutForeign keeps of an object that no object of edpm-operators controls only
// which it is, and whose: it is not to be taken over.
func withoutForeign(obj any) (any, error) {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		if !controlled(o) {
			*o = appsv1.StatefulSet{TypeMeta: o.TypeMeta, ObjectMeta: identity(&o.ObjectMeta)}
		}
	case *policyv1.PodDisruptionBudget:
		if !controlled(o) {
			*o = policyv1.PodDisruptionBudget{TypeMeta: o.TypeMeta, ObjectMeta: identity(&o.ObjectMeta)}
		}
	case *corev1.Service:
		if !controlled(o) {
			*o = corev1.Service{TypeMeta: o.TypeMeta, ObjectMeta: identity(&o.ObjectMeta)}
		}
	}
	return trimmed(obj)
}

func controlled(o metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && strings.Contains(owner.APIVersion, ".openstack.org/")
}

// withoutTemplate drops what no one reads of a cached Pod or Job of a run: with
// many runs it is most of the manager's memory. The controller of runs looks at
// metadata and status only, and neither object is ever written back.
func withoutTemplate(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{}
	case *batchv1.Job:
		o.Spec.Template = corev1.PodTemplateSpec{}
	}
	return trimmed(obj)
}

// podsForScheduling returns what keeps of a Pod what the scheduler looks at, and
// shares it among those of a controller. Of a Pod of a run or of a Job of a service it
// keeps the termination message too, which is its result. Of one that another controller than a
// StatefulSet owns it drops what it says of itself: it is not of a service in pods. What
// fails in one that a StatefulSet owns matters only until it is ready.
func podsForScheduling() func(any) (any, error) {
	pods := newSharedPods()
	return func(obj any) (any, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return obj, nil
		}
		containers, inits := pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses
		if _, err := trimmedSnapshot(pod); err != nil {
			return nil, err
		}
		maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return !ours(key) })
		owner := metav1.GetControllerOfNoCopy(pod)
		switch {
		case pod.Labels[ansibleeev1.RunnerLabel] == "true", pod.Labels[podified.AppLabel] == podified.JobApp:
			pod.Status.ContainerStatuses = containers
		case owner == nil:
		case owner.Kind != "StatefulSet":
			pod.Status.Conditions = nil
		case !podified.Ready(pod):
			pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = containers, inits
		}
		pods.share(pod)
		return pod, nil
	}
}

func trimmedSnapshot(obj any) (any, error) {
	if _, err := placement.Trim(obj); err != nil {
		return nil, err
	}
	return trimmed(obj)
}
