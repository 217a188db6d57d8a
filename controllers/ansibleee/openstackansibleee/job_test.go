package openstackansibleee

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

func TestTheTimeLimitOfATaskReachesAnsible(t *testing.T) {
	user := []corev1.EnvVar{{Name: "ANSIBLE_TASK_TIMEOUT", Value: "7"}, {Name: "OTHER", Value: "x"}}
	for name, c := range map[string]struct {
		field *int32
		env   []corev1.EnvVar
		want  []string
	}{
		"by default the runner has its own":     {nil, nil, nil},
		"the environment of the user":           {nil, user, []string{"7"}},
		"the field":                             {ptr.To[int32](30), nil, []string{"30"}},
		"the field is closer than what env has": {ptr.To[int32](30), user, []string{"30"}},
	} {
		t.Run(name, func(t *testing.T) {
			env, err := environment(&ansibleeev1.OpenStackAnsibleEE{Spec: ansibleeev1.OpenStackAnsibleEESpec{TaskTimeoutSeconds: c.field, Env: c.env}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range env {
				if e.Name == "ANSIBLE_TASK_TIMEOUT" {
					got = append(got, e.Value)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the limit differs (-want +got):\n%s", diff)
			}
		})
	}
}
