package openstackansibleee

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/podsecurity"
)

// limited are the defaults with a limit that a person has set.
func limited(memory string) corev1.ResourceRequirements {
	resources := DefaultResources()
	resources.Limits[corev1.ResourceMemory] = resource.MustParse(memory)
	return resources
}

func TestRunnersHaveTheResourcesOfTheManager(t *testing.T) {
	for name, c := range map[string]struct {
		resources corev1.ResourceRequirements
		hosts     int
		memory    string
	}{
		"the defaults, for all hosts that a run can have": {DefaultResources(), ansibleeev1.MaxTargets, "1Gi"},
		"the defaults, for ten hosts":                     {DefaultResources(), 10, "410Mi"},
		"the defaults, for one host":                      {DefaultResources(), 1, "272Mi"},
		"the defaults, for none":                          {DefaultResources(), 0, "256Mi"},
		"not more than the limit":                         {limited("768Mi"), ansibleeev1.MaxTargets, "768Mi"},
		"none":                                            {corev1.ResourceRequirements{}, 10, ""},
		"CPU only":                                        {corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}, 10, ""},
	} {
		run := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
		for i := range c.hosts {
			run.Spec.Targets = append(run.Spec.Targets, ansibleeev1.Target{Host: fmt.Sprintf("h%d", i)})
		}
		want := *c.resources.DeepCopy()
		if c.memory != "" {
			want.Requests[corev1.ResourceMemory] = resource.MustParse(c.memory)
		}
		s := &scope{Reconciler: &Reconciler{Resources: c.resources, DefaultImage: "runner:1"}, run: run}
		if err := s.inputs(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.want.Spec.Template.Spec.Containers[0].Resources); diff != "" {
			t.Errorf("%s: the resources differ (-want +got):\n%s", name, diff)
		}
		if level, forbidden := podsecurity.Level(s.want.Spec.Template); level != "restricted" {
			t.Errorf("%s: the Pod fits the level %s: %q", name, level, forbidden)
		}
	}
}
