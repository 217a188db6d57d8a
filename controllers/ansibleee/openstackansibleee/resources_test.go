package openstackansibleee

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/podsecurity"
)

func TestRunnersHaveTheResourcesOfTheManager(t *testing.T) {
	for name, want := range map[string]corev1.ResourceRequirements{"the defaults": DefaultResources(), "none": {}} {
		run := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
		s := &scope{Reconciler: &Reconciler{Resources: want, DefaultImage: "runner:1"}, run: run}
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
