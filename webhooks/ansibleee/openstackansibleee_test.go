package ansibleee

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

func TestEveryCheckedFieldIsNamed(t *testing.T) {
	spec := ansibleeev1.OpenStackAnsibleEESpec{
		Playbook: "/a", PlaybookContents: "a", Inventory: "a: {", Env: []corev1.EnvVar{{Name: "a b"}},
		ExtraMounts:  []ansibleeev1.ExtraMount{{Volumes: []ansibleeev1.ExtraVolume{{Name: "V"}}}},
		AnsibleLimit: "@f", AnsibleTags: "a b", AnsibleSkipTags: "a b", TopologyRef: &topologyv1.TopologyRef{Namespace: "other"},
		Name: "N", EnvConfigMapName: "E", SSHKeySecretName: "S", InputsSecretName: "I", ServiceAccountName: "A", NetworkAttachments: []string{"N"},
	}
	want := []string{
		"spec.playbook", "spec.playbookContents", "spec.inventory", "spec.env[0].name", "spec.extraMounts[0].volumes[0].name",
		"spec.ansibleLimit", "spec.ansibleTags", "spec.ansibleSkipTags", "spec.topologyRef.namespace",
		"spec.name", "spec.envConfigMapName", "spec.sshKeySecretName", "spec.inputsSecretName", "spec.serviceAccountName", "spec.networkAttachments[0]",
	}
	var got []string
	for _, err := range runErrors(&ansibleeev1.OpenStackAnsibleEE{Spec: spec}) {
		got = append(got, err.Field)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields with errors (-want +got):\n%s", diff)
	}
	if errs := runErrors(&ansibleeev1.OpenStackAnsibleEE{}); len(errs) > 0 {
		t.Errorf("an empty run is in order, got %v", errs)
	}
}
