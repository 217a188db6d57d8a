package rollout

import (
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// pods is a compute in pods that run an image and is Ready; change can alter it.
func pods(name, image string, change ...func(*novav1.NovaCompute)) novav1.NovaCompute {
	c := novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Images = map[string]string{novav1.ComputeComponent: image}
	for _, t := range []condition.Type{condition.DeploymentReadyCondition, novav1.ComputeServiceReadyCondition, condition.ReadyCondition} {
		c.Status.Conditions.MarkTrue(t, "yes")
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestComputesInPodsGetAnImageOneAfterTheOther(t *testing.T) {
	lacks := func(types ...condition.Type) func(*novav1.NovaCompute) {
		return func(c *novav1.NovaCompute) {
			for _, t := range append(types, condition.ReadyCondition) {
				c.Status.Conditions.MarkFalse(t, novav1.ServiceDownReason, condition.SeverityWarning, "no")
			}
		}
	}
	replacing, podsDown := lacks(condition.DeploymentReadyCondition), lacks(novav1.ComputeServiceReadyCondition)
	disabled := func(c *novav1.NovaCompute) {
		c.Status.Conditions.MarkFalse(novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, condition.SeverityInfo, "no")
	}
	keeps := func(up bool) func(*novav1.NovaCompute) {
		return func(c *novav1.NovaCompute) {
			c.Status.Hosts = []novav1.PodHostStatus{{Name: "b-0", ComputeService: &novav1.ComputeServiceStatus{Up: true}}, {Name: "b-1", ComputeService: &novav1.ComputeServiceStatus{Up: up}}}
			c.Status.Conditions.MarkFalse(novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason, condition.SeverityWarning, "no")
		}
	}
	own := func(c *novav1.NovaCompute) { c.Spec.ContainerImage = "mine" }
	going := func(c *novav1.NovaCompute) { c.DeletionTimestamp = ptr.To(metav1.Now()) }
	behind := func(c *novav1.NovaCompute) { c.Generation = 1 }
	for name, c := range map[string]struct {
		inPods []novav1.NovaCompute
		want   string
	}{
		"the first by name":                                           {[]novav1.NovaCompute{pods("b", "1"), pods("a", "1")}, "a"},
		"one that works":                                              {[]novav1.NovaCompute{pods("a", "1", podsDown), pods("b", "1")}, "b"},
		"one that does not at the end":                                {[]novav1.NovaCompute{pods("a", "1", podsDown), pods("b", "2")}, "a"},
		"it stays while pods are replaced":                            {[]novav1.NovaCompute{pods("a", "1"), pods("b", "2", replacing)}, "b"},
		"it stays while nova misses them":                             {[]novav1.NovaCompute{pods("a", "1"), pods("b", "2", podsDown)}, "b"},
		"it stays until its status is new":                            {[]novav1.NovaCompute{pods("a", "1"), pods("b", "2", behind)}, "b"},
		"the next when they are disabled":                             {[]novav1.NovaCompute{pods("a", "1"), pods("b", "2", disabled)}, "a"},
		"the next while it has instances on pods that are not wanted": {[]novav1.NovaCompute{pods("a", "1"), pods("b", "2", keeps(true))}, "a"},
		"it stays while one of those pods is down":                    {[]novav1.NovaCompute{pods("a", "1"), pods("b", "2", keeps(false))}, "b"},
		"none whose image was chosen":                                 {[]novav1.NovaCompute{pods("a", "1", own), pods("b", "2")}, ""},
		"none that is being deleted":                                  {[]novav1.NovaCompute{pods("a", "1", going)}, ""},
		"none if there are none":                                      {nil, ""},
	} {
		if got := nextPods("2", c.inPods); got != c.want {
			t.Errorf("%s: it is the turn of %q, want %q", name, got, c.want)
		}
	}
}

func TestComputesInPodsFollowThoseOnHosts(t *testing.T) {
	cell, inPods := &novav1.NovaCell{}, pods("a", "1")
	cell.Status.Images = map[string]string{novav1.ComputeComponent: "2"}
	for _, c := range []struct {
		update *novav1.ComputeUpdate
		want   string
	}{
		{nil, ""},
		{&novav1.ComputeUpdate{Image: "2", Pods: "a"}, ""},
		{&novav1.ComputeUpdate{Image: "2", Verified: true, Pods: "b"}, ""},
		{&novav1.ComputeUpdate{Image: "1", Verified: true, Pods: "a"}, ""},
		{&novav1.ComputeUpdate{Image: "2", Verified: true, Pods: "a"}, "2"},
	} {
		cell.Status.ComputeUpdate = c.update
		if got := PodImage(cell, &inPods); got != c.want {
			t.Errorf("with update %+v the pods get image %q, want %q", c.update, got, c.want)
		}
	}
	Sum(cell, nil, []novav1.NovaCompute{inPods})
	if cell.Status.ComputesRelease != "" || Lagging(cell, "2") == "" {
		t.Error("the update is complete before the pods have followed")
	}
	Sum(cell, nil, []novav1.NovaCompute{pods("a", "2")})
	if cell.Status.ComputesRelease != "2" || Lagging(cell, "2") != "" {
		t.Error("the update is not complete once the pods have followed")
	}
}
