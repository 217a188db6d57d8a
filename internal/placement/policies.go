package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	evaluator "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/utils/clock"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// policies are the LimitRanges of the workload's namespace, and its ResourceQuotas
// as they are used so far. The code is that of the API server's admission plugins
// LimitRanger and ResourceQuota. Of several LimitRanges with defaults the API server
// takes any; here the first by name counts.
type policies struct {
	ranges []*corev1.LimitRange
	quotas []corev1.ResourceQuota
}

func newPolicies(w *Snapshot, namespace string) *policies {
	p := &policies{ranges: filter(w.LimitRanges, func(r *corev1.LimitRange) bool { return r.Namespace == namespace })}
	slices.SortFunc(p.ranges, func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	for _, q := range w.ResourceQuotas {
		if q.Namespace == namespace {
			p.quotas = append(p.quotas, *q)
		}
	}
	slices.SortFunc(p.quotas, func(a, b corev1.ResourceQuota) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// denial is the error of the API server that refuses a pod or a claim.
type denial struct{ error }

func denied(err error) bool { return errors.As(err, new(denial)) }

var (
	podQuotas   = evaluator.NewPodEvaluator(nil, clock.RealClock{})
	claimQuotas = evaluator.NewPersistentVolumeClaimEvaluator(nil)
)

// defaults fills in the requests and limits that LimitRanges give.
func (p *policies) defaults(pod *corev1.Pod) error {
	if len(p.ranges) == 0 {
		return nil
	}
	internal := &core.Pod{}
	if err := conversion.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), internal, nil); err != nil {
		return fmt.Errorf("reading pod %s: %w", pod.Name, err)
	}
	for _, r := range p.ranges {
		if err := limitranger.PodMutateLimitFunc(r, internal); err != nil {
			return err
		}
	}
	return conversion.Convert_core_Pod_To_v1_Pod(internal, pod, nil)
}

// admitPod counts a pod. The error is a denial if the API server refuses it.
func (p *policies) admitPod(pod *corev1.Pod) error {
	a := attributes(pod, "Pod", "pods")
	if len(p.ranges) > 0 {
		internal := &core.Pod{}
		if err := conversion.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), internal, nil); err != nil {
			return fmt.Errorf("reading pod %s: %w", pod.Name, err)
		}
		if err := p.inRange(a, func(r *corev1.LimitRange) error { return limitranger.PodValidateLimitFunc(r, internal) }); err != nil {
			return err
		}
	}
	return p.count(a, podQuotas)
}

// admitClaim counts a claim. The error is a denial if the API server refuses it.
func (p *policies) admitClaim(claim *corev1.PersistentVolumeClaim) error {
	a := attributes(claim, "PersistentVolumeClaim", "persistentvolumeclaims")
	if len(p.ranges) > 0 {
		internal := &core.PersistentVolumeClaim{}
		if err := conversion.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim(claim.DeepCopy(), internal, nil); err != nil {
			return fmt.Errorf("reading claim %s: %w", claim.Name, err)
		}
		check := func(r *corev1.LimitRange) error {
			return limitranger.PersistentVolumeClaimValidateLimitFunc(r, internal)
		}
		if err := p.inRange(a, check); err != nil {
			return err
		}
	}
	return p.count(a, claimQuotas)
}

func attributes(o interface {
	runtime.Object
	metav1.Object
}, kind, resource string) admission.Attributes {
	return admission.NewAttributesRecord(o, nil, corev1.SchemeGroupVersion.WithKind(kind), o.GetNamespace(), o.GetName(),
		corev1.SchemeGroupVersion.WithResource(resource), "", admission.Create, &metav1.CreateOptions{}, false, nil)
}

func (p *policies) inRange(a admission.Attributes, check func(*corev1.LimitRange) error) error {
	for _, r := range p.ranges {
		if err := check(r); err != nil {
			return denial{admission.NewForbidden(a, inOrder(err))}
		}
	}
	return nil
}

// inOrder sorts what is wrong: LimitRanger goes through maps.
func inOrder(err error) error {
	several, ok := err.(utilerrors.Aggregate) //nolint:errorlint // it is not wrapped
	if !ok {
		return err
	}
	return utilerrors.NewAggregate(slices.SortedFunc(slices.Values(several.Errors()), func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }))
}

func (p *policies) count(a admission.Attributes, usage quota.Evaluator) error {
	if len(p.quotas) == 0 {
		return nil
	}
	quotas, err := resourcequota.CheckRequest(p.quotas, a, usage, nil)
	if apierrors.IsForbidden(err) {
		return denial{err}
	}
	if err == nil {
		p.quotas = quotas
	}
	return err
}

// release takes a deleted pod off the quotas.
func (p *policies) release(pod *corev1.Pod) error {
	for i := range p.quotas {
		q := &p.quotas[i]
		matches, err := podQuotas.Matches(q, pod)
		if err != nil {
			return fmt.Errorf("matching pod %s with ResourceQuota %s: %w", pod.Name, q.Name, err)
		}
		if !matches {
			continue
		}
		used, err := podQuotas.Usage(pod)
		if err != nil {
			return fmt.Errorf("counting pod %s for ResourceQuota %s: %w", pod.Name, q.Name, err)
		}
		*q = *q.DeepCopy()
		q.Status.Used = quota.Subtract(q.Status.Used, quota.Mask(used, quota.ResourceNames(q.Status.Hard)))
	}
	return nil
}

// refused is the problem of a pod that the API server does not let be created.
func refused(o outcome) Problem {
	return Problem{Reason: topologyv1.PodRefusedReason, Pods: []string{o.pod.Name}, Message: "the API server would refuse it: " + o.denied.Error()}
}
