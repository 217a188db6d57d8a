package openstackansibleee

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/podsecurity"
)

// What a user of a namespace may try, see docs/security.md.

// allVolumes has a volume of every type that there is, each with all that it can say.
func allVolumes() ansibleeev1.ExtraMount {
	name := corev1.LocalObjectReference{Name: "a"}
	volumes := []ansibleeev1.ExtraVolume{
		{Name: "secret", Secret: &corev1.SecretVolumeSource{SecretName: "a"}},
		{Name: "config", ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: name}},
		{Name: "claim", PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}},
		{Name: "empty", EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		{Name: "projected", Projected: &ansibleeev1.ExtraProjection{DefaultMode: ptr.To[int32](0o777), Sources: []ansibleeev1.ExtraProjectionSource{
			{Secret: &corev1.SecretProjection{LocalObjectReference: name}}, {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: name}},
			{DownwardAPI: &corev1.DownwardAPIProjection{}},
		}}},
	}
	mount := ansibleeev1.ExtraMount{Volumes: volumes}
	for _, v := range volumes {
		mount.Mounts = append(mount.Mounts, corev1.VolumeMount{Name: v.Name, MountPath: "/mnt/" + v.Name})
	}
	return mount
}

// greedy is a run that asks for all that its fields can say.
func greedy() *ansibleeev1.OpenStackAnsibleEE {
	return &ansibleeev1.OpenStackAnsibleEE{
		ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "tenant", Labels: map[string]string{"app": "apiserver", ansibleeev1.RunnerLabel: "x"}},
		Spec: ansibleeev1.OpenStackAnsibleEESpec{
			UID: ptr.To[int64](1), ServiceAccountName: "privileged", Args: []string{"sh", "-c", "id"}, SSHKeySecretName: "key", InputsSecretName: "inputs",
			Env:                []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/mnt/a.so"}},
			DNSConfig:          &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1"}},
			NetworkAttachments: []string{`net", "namespace": "openstack`, "openstack/net"},
			ExtraMounts:        []ansibleeev1.ExtraMount{allVolumes()},
		},
	}
}

func rendered(t *testing.T, run *ansibleeev1.OpenStackAnsibleEE) corev1.PodTemplateSpec {
	t.Helper()
	job, err := newJob(run, "image")
	if err != nil {
		t.Fatal(err)
	}
	return job.Spec.Template
}

func TestRunnersFitThePodSecurityStandardRestricted(t *testing.T) {
	plain := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	for name, run := range map[string]*ansibleeev1.OpenStackAnsibleEE{"a plain run": plain, "a run with every kind of mount and more": greedy()} {
		if level, forbidden := podsecurity.Level(rendered(t, run)); level != "restricted" {
			t.Errorf("%s fits the level %s: %q", name, level, forbidden)
		}
	}
}

func TestARunnerGetsNoCredentialsOfTheCluster(t *testing.T) {
	pod := rendered(t, greedy()).Spec
	if ptr.Deref(pod.AutomountServiceAccountToken, true) {
		t.Error("the token of the service account is mounted")
	}
	text, err := json.Marshal(pod.Volumes)
	if err != nil {
		t.Fatal(err)
	}
	for _, credential := range []string{"serviceAccountToken", "podCertificate", "clusterTrustBundle", "hostPath", "csi", "nfs", "ephemeral"} {
		if strings.Contains(string(text), `"`+credential+`"`) {
			t.Errorf("a volume has %s", credential)
		}
	}
}

// TestARunIsGivenTheSecretsThatItNamesAndNoOthers : what the image of a run can read
// is what the run names, whoever made the image.
func TestARunIsGivenTheSecretsThatItNamesAndNoOthers(t *testing.T) {
	plain := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: ansibleeev1.OpenStackAnsibleEESpec{Image: "mine"}}
	for name, tt := range map[string]struct {
		run  *ansibleeev1.OpenStackAnsibleEE
		want []string
	}{"a plain run": {plain, nil}, "a run that names some": {greedy(), []string{"a", "inputs", "key"}}} {
		pod := rendered(t, tt.run).Spec
		var got []string
		for _, v := range pod.Volumes {
			if v.Secret != nil {
				got = append(got, v.Secret.SecretName)
			}
			if v.Projected == nil {
				continue
			}
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					got = append(got, source.Secret.Name)
				}
			}
		}
		for _, c := range pod.Containers {
			for _, from := range c.EnvFrom {
				if from.SecretRef != nil {
					got = append(got, from.SecretRef.Name)
				}
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, tt.want) || len(pod.ImagePullSecrets) > 0 {
			t.Errorf("%s is given the Secrets %q and %v to pull images; want %q", name, got, pod.ImagePullSecrets, tt.want)
		}
	}
}

func TestTheLabelsOfARunDoNotTakeThePlaceOfTheRunners(t *testing.T) {
	labels := rendered(t, greedy()).Labels
	if labels["app"] != "openstackansibleee" || labels[ansibleeev1.RunnerLabel] != "true" {
		t.Errorf("the Pod has the labels %v: policies for runners would not find it", labels)
	}
}

func TestNetworkAttachmentsAreOfTheOwnNamespace(t *testing.T) {
	var networks []struct{ Name, Namespace string }
	if err := json.Unmarshal([]byte(rendered(t, greedy()).Annotations["k8s.v1.cni.cncf.io/networks"]), &networks); err != nil {
		t.Fatal(err)
	}
	for _, n := range networks {
		if n.Namespace != "tenant" {
			t.Errorf("network %q is of namespace %q", n.Name, n.Namespace)
		}
	}
	if len(networks) != 2 {
		t.Errorf("want 2 networks, got %v", networks)
	}
}

// TestNoFieldBecomesAnotherArgument splits as ansible-runner does, with shell rules.
func TestNoFieldBecomesAnotherArgument(t *testing.T) {
	run := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: ansibleeev1.OpenStackAnsibleEESpec{
		Playbook: "-e @/etc/passwd", AnsibleTags: "a' --limit 'x", AnsibleSkipTags: "$(id)", AnsibleLimit: "`id`\n-e a=b",
	}}
	args := rendered(t, run).Spec.Containers[0].Args
	if !slices.Contains(args, "-e @/etc/passwd") {
		t.Errorf("the playbook is not one argument: %q", args)
	}
	const want = `--tags 'a'"'"' --limit '"'"'x' --skip-tags '$(id)' --limit '` + "`id`\n-e a=b'"
	if got := cmdLine(run); got != want {
		t.Errorf("cmdLine: %s; want %s", got, want)
	}
}
