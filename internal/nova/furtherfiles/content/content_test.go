package content

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/internal/podified"
)

func service() *podified.Service {
	return &podified.Service{
		Name: "api", ConfigDir: "/etc/nova/nova.conf.d", Config: map[string][]byte{"01-nova.conf": []byte("x")},
		Pod: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "state"}}}}},
	}
}

func TestAServiceWithoutFilesIsAsItWas(t *testing.T) {
	got := service()
	AddTo(got, map[string][]byte{})
	if diff := cmp.Diff(service(), got); diff != "" {
		t.Errorf("it differs, and its pods would be replaced (-want +got):\n%s", diff)
	}
}

func TestPodsHaveTheFilesWhereNovaLooksForThem(t *testing.T) {
	got, want := service(), service()
	AddTo(got, map[string][]byte{"policy.yaml": []byte("p"), "api-paste.ini": []byte("a"), "vendor_data.json": []byte("v"), "provider.yaml": []byte("1"), "provider2.yaml": []byte("2")})
	want.Config = map[string][]byte{
		"01-nova.conf": []byte("x"), "policy.yaml": []byte("p"), "api-paste.ini": []byte("a"), "vendor_data.json": []byte("v"), "provider.yaml": []byte("1"), "provider2.yaml": []byte("2"),
		"01-nova-files.conf": []byte("[api]\nvendordata_jsonfile_path = /etc/nova/nova.conf.d/vendor_data.json\n"),
	}
	container := &want.Pod.Containers[0]
	container.Env = []corev1.EnvVar{{Name: "OS_NOVA_CONFIG_DIR", Value: "/etc/nova/nova.conf.d"}}
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "provider-config", MountPath: "/etc/nova/provider_config", ReadOnly: true})
	want.Pod.Volumes = []corev1.Volume{{Name: "provider-config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: "api-config-data", DefaultMode: ptr.To[int32](0o440),
		Items: []corev1.KeyToPath{{Key: "provider.yaml", Path: "provider.yaml"}, {Key: "provider2.yaml", Path: "provider2.yaml"}},
	}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the service differs (-want +got):\n%s", diff)
	}
}
