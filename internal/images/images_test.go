package images_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/internal/images"
)

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

func TestFrom(t *testing.T) {
	tests := map[string]struct {
		vars map[string]string
		want images.Defaults
	}{
		"no variable gives no image":       {nil, images.Defaults{}},
		"an empty variable gives no image": {map[string]string{"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT": ""}, images.Defaults{}},
		"each variable sets its own image": {
			map[string]string{
				"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT":    "r/compute@sha256:1",
				"RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT":    "r/libvirt@sha256:2",
				"RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT": "r/nova-ee@sha256:3",
				"RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT":       "r/ee@sha256:4",
				"RELATED_IMAGE_NOVA_CONDUCTOR_IMAGE_URL_DEFAULT":  "r/conductor@sha256:5",
				"RELATED_IMAGE_GLANCE_API_IMAGE_URL_DEFAULT":      "r/glance@sha256:6",
				"RELATED_IMAGE_NOVA_API_IMAGE_URL_DEFAULT":        "r/api@sha256:7",
				"RELATED_IMAGE_NOVA_SCHEDULER_IMAGE_URL_DEFAULT":  "r/scheduler@sha256:8",
				"RELATED_IMAGE_NOVA_NOVNC_IMAGE_URL_DEFAULT":      "r/novnc@sha256:9",

				"RELATED_IMAGE_OVN_CONTROLLER_AGENT_IMAGE_URL_DEFAULT":        "r/ovn@sha256:10",
				"RELATED_IMAGE_EDPM_NEUTRON_METADATA_AGENT_IMAGE_URL_DEFAULT": "r/metadata@sha256:11",
			},
			images.Defaults{
				NovaCompute: "r/compute@sha256:1", NovaLibvirt: "r/libvirt@sha256:2",
				NovaAnsibleEE: "r/nova-ee@sha256:3", AnsibleEE: "r/ee@sha256:4",
				NovaAPI: "r/api@sha256:7", NovaScheduler: "r/scheduler@sha256:8", NovaNoVNC: "r/novnc@sha256:9",
				NovaConductor: "r/conductor@sha256:5", GlanceAPI: "r/glance@sha256:6",
				OVNController: "r/ovn@sha256:10", OVNMetadataAgent: "r/metadata@sha256:11",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, images.From(env(tt.vars))); diff != "" {
				t.Errorf("From (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhereTheRunnerCanBeNamed(t *testing.T) {
	for _, want := range []string{"RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT", "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT", "RUNNER_IMG", "spec.image"} {
		if got := images.MissingRunner("spec.image"); !strings.Contains(got, want) {
			t.Errorf("%q does not name %s", got, want)
		}
	}
}

func TestWhereAnImageCanBeNamed(t *testing.T) {
	for program, want := range map[string]string{
		"nova-scheduler": "No image of nova-scheduler is set, so it is not deployed: set RELATED_IMAGE_NOVA_SCHEDULER_IMAGE_URL_DEFAULT in the environment of the manager, or an image in the spec",
		"another":        "No image of another is set, so it is not deployed: set the variable RELATED_IMAGE_... for it in the environment of the manager, or an image in the spec",
	} {
		if got := images.Missing(program); got != want {
			t.Errorf("it says %q; want %q", got, want)
		}
	}
}

// The bundle lists the images that a cluster needs. The execution environment is named by
// who makes the bundle.
func TestTheBundleNamesEveryImage(t *testing.T) {
	text, err := os.ReadFile("../../config/olm/manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	patch := &appsv1.Deployment{}
	if err := yaml.Unmarshal(text, patch); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for _, v := range patch.Spec.Template.Spec.Containers[0].Env {
		vars[v.Name] = v.Value
	}
	images.From(func(name string) (string, bool) {
		if runner := strings.Contains(name, "ANSIBLE"); (vars[name] == "") != runner {
			t.Errorf("config/olm/manager.yaml gives %s the image %q", name, vars[name])
		}
		return vars[name], true
	})
}
