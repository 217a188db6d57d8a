package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	toolscache "k8s.io/client-go/tools/cache"
	evaluator "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// policed reports whether a draw has policies in its namespace.
func (d *draw) policed() bool { return len(d.snapshot.LimitRanges)+len(d.snapshot.ResourceQuotas) > 0 }

// loadPolicies creates the LimitRanges and quotas once the pods of others are there,
// and waits until the API server applies them.
func (c *cluster) loadPolicies(d *draw) error {
	if !d.policed() {
		return nil
	}
	for _, r := range d.snapshot.LimitRanges {
		if err := c.createAsIs(r); err != nil {
			return err
		}
	}
	for _, q := range d.snapshot.ResourceQuotas {
		if err := c.createAsIs(q); err != nil {
			return err
		}
	}
	c.counted = slices.Clone(d.snapshot.Pods)
	if err := c.countQuotas(d); err != nil {
		return err
	}
	return c.gate()
}

// countQuotas writes the use of quotas into their status, as the controller of quotas
// does, with its code.
func (c *cluster) countQuotas(d *draw) error {
	pods := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	for _, pod := range c.counted {
		if err := pods.Add(pod); err != nil {
			return err
		}
	}
	list := func(of schema.GroupVersionResource) (toolscache.GenericLister, error) {
		return toolscache.NewGenericLister(pods, of.GroupResource()), nil
	}
	counter := evaluator.NewPodEvaluator(list, clock.RealClock{})
	for _, q := range d.snapshot.ResourceQuotas {
		used, err := counter.UsageStats(quota.UsageStatsOptions{Namespace: q.Namespace, Resources: quota.ResourceNames(q.Spec.Hard), Scopes: q.Spec.Scopes, ScopeSelector: q.Spec.ScopeSelector})
		if err != nil {
			return err
		}
		now := q.DeepCopy()
		if err := c.Get(c.ctx, client.ObjectKeyFromObject(q), now); err != nil {
			return err
		}
		now.Status.Hard, now.Status.Used = q.Spec.Hard, quota.Mask(used.Used, quota.ResourceNames(q.Spec.Hard))
		if err := c.Status().Update(c.ctx, now); err != nil {
			return err
		}
		q.Status = now.Status
	}
	return nil
}

// released is to be called when a pod was deleted.
func (c *cluster) released(d *draw, pod *corev1.Pod) error {
	if len(d.snapshot.ResourceQuotas) == 0 {
		return nil
	}
	c.counted = slices.DeleteFunc(c.counted, func(p *corev1.Pod) bool { return p.Namespace == pod.Namespace && p.Name == pod.Name })
	predicted := d.snapshot.ResourceQuotas
	d = &draw{}
	for _, q := range predicted {
		d.snapshot.ResourceQuotas = append(d.snapshot.ResourceQuotas, q.DeepCopy()) // the simulation counts in its own
	}
	if err := c.countQuotas(d); err != nil {
		return err
	}
	return c.gate()
}

// gateNS has a LimitRange and a quota with a number, which the gate raises.
const gateNS = "gate"

func gateLimits(number int64) *corev1.LimitRange {
	r := makeLimitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: count(corev1.ResourceCPU, number)})
	r.Namespace = gateNS
	return r
}

// gateQuota is used up.
func gateQuota(number int64) *corev1.ResourceQuota {
	claims := count(corev1.ResourcePersistentVolumeClaims, number)
	q := makeQuota("gate", claims, claims)
	q.Namespace = gateNS
	return q
}

func count(name corev1.ResourceName, number int64) corev1.ResourceList {
	return corev1.ResourceList{name: *resource.NewQuantity(number, resource.DecimalSI)}
}

// gate waits until the admission plugins of the API server have seen all LimitRanges
// and quotas that were written: they watch each kind in its order, so it changes one
// of each and asks, with dry runs, until both are in force. Nothing says when.
func (c *cluster) gate() error {
	c.gates++
	q := gateQuota(c.gates)
	if err := errors.Join(c.Update(c.ctx, gateLimits(c.gates)), c.Update(c.ctx, q.DeepCopy()), c.Status().Update(c.ctx, q)); err != nil {
		return err
	}
	pod, claim := makePod("probe", ""), makeClaim("probe", "", "1Gi")
	pod.Namespace, claim.Namespace = gateNS, gateNS
	pod.Spec.Containers[0].Resources.Limits = resources("cpu", "1000k")
	number := resource.NewQuantity(c.gates, resource.DecimalSI)
	if err := c.refusedWith(pod, fmt.Sprintf("maximum cpu usage per Container is %s,", number)); err != nil {
		return err
	}
	return c.refusedWith(claim, fmt.Sprintf("limited: persistentvolumeclaims=%s", number))
}

func (c *cluster) refusedWith(object client.Object, words string) error {
	var err error
	for start := time.Now(); time.Since(start) < time.Minute; {
		probe := object.DeepCopyObject().(client.Object)
		if err = c.Create(c.ctx, probe, client.DryRunAll); err != nil && strings.Contains(err.Error(), words) {
			return nil
		}
	}
	return fmt.Errorf("the API server does not refuse with %q within a minute, but says %w", words, err)
}
