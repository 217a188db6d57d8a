package podified

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/attachments"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// securityContextConstraints tell OpenShift from other clusters.
var securityContextConstraints = schema.GroupKind{Group: "security.openshift.io", Kind: "SecurityContextConstraints"}

// configVolume holds the configuration.
const configVolume = "config-data"

// hashVariable makes pods again when what they read at their start has changed
// (glance-operator internal/glanceapi/statefulset.go).
const hashVariable = "CONFIG_HASH"

// AuthoritiesFile of a configuration has the certificates that a service trusts in place of
// those of its image.
const AuthoritiesFile = "tls-ca-bundle.pem"

// trustStores are where images of Debian and of Red Hat look for what they trust.
var trustStores = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"}

// ConfigMode is that of files of the configuration, which may be secret.
func ConfigMode() *int32 { return ptr.To[int32](0o440) }

// statefulSet is what is wanted.
func (p *deployment) statefulSet() *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		ObjectMeta: p.meta(p.Name),
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(p.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: p.identity(p.owner, p.Component)},
			Template: p.template(),
			// Pods do not wait for each other, and a pod that has no place must
			// not keep the others from theirs.
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			VolumeClaimTemplates: p.Claims,
		},
	}
	if p.Headless {
		set.Spec.ServiceName = p.Name
	}
	p.keep(set)
	return set
}

// keep leaves in force what cannot be changed in a set and need not be: a selector
// of other labels, as long as it selects the pods that run and those to come, and
// the labels of claims.
func (p *deployment) keep(want *appsv1.StatefulSet) {
	if p.set == nil || !apply.Applied(p.set) {
		return
	}
	if selector := p.set.Spec.Selector; p.selectedBy(selector) {
		want.Spec.Selector = selector.DeepCopy()
	}
	want.Spec.VolumeClaimTemplates = slices.Clone(want.Spec.VolumeClaimTemplates)
	for i := range want.Spec.VolumeClaimTemplates {
		claim := &want.Spec.VolumeClaimTemplates[i]
		for _, present := range p.set.Spec.VolumeClaimTemplates {
			if present.Name == claim.Name {
				claim.Labels = present.Labels
			}
		}
	}
}

// selectedBy reports whether a selector has all pods, those to come included.
func (p *deployment) selectedBy(selector *metav1.LabelSelector) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(p.Labels)) &&
		!slices.ContainsFunc(p.pods, func(pod *corev1.Pod) bool { return !s.Matches(labels.Set(pod.Labels)) })
}

func (p *deployment) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.owner.GetNamespace(), Name: name, Labels: p.Labels}
}

// template of the pods. They keep to the profile "restricted" of the Pod
// Security Standards.
func (p *deployment) template() corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: *p.Pod.DeepCopy()}
	if len(p.NetworkAttachments) > 0 {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, attachments.Annotation, attachments.Value(p.owner.GetNamespace(), p.NetworkAttachments))
	}
	t.Spec.NodeSelector = p.NodeSelector
	t.Spec.EnableServiceLinks, t.Spec.AutomountServiceAccountToken = ptr.To(false), ptr.To(false)
	t.Spec.SecurityContext = p.securityContext()
	t.Spec.Volumes = append(t.Spec.Volumes,
		corev1.Volume{Name: configVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: p.ConfigName(), DefaultMode: ConfigMode(),
		}}},
		corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	hash := p.hash()
	for i := range t.Spec.InitContainers {
		p.complete(&t.Spec.InitContainers[i], hash)
	}
	for i := range t.Spec.Containers {
		p.complete(&t.Spec.Containers[i], hash)
	}
	t.Spec.Affinity = topology.Default(p.Labels[ServiceLabel])
	topology.Apply(&t, p.topology, &metav1.LabelSelector{MatchLabels: p.Labels}, p.consumer())
	return t
}

// hash of what the processes read when they start.
func (p *deployment) hash() string { return inputs.Digest(p.Config)[:32] }

func (p *deployment) consumer() topology.Consumer {
	who, _ := topology.ConsumerOf(p.Scheme(), p.owner) // the client that read the owner knows its kind
	return who
}

func (p *deployment) securityContext() *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !p.choosesUsers {
		s.RunAsUser, s.RunAsGroup, s.FSGroup = ptr.To(p.User), ptr.To(p.User), ptr.To(p.User)
		s.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
	}
	return s
}

// complete adds to a container what all have.
func (p *deployment) complete(c *corev1.Container, hash string) {
	c.ImagePullPolicy = corev1.PullIfNotPresent
	// The user of the Pod need not be in the image's passwd. From Python 3.13 on a program that
	// asks for its name fails then, as PyMySQL does, unless the environment has it.
	c.Env = append(c.Env, corev1.EnvVar{Name: hashVariable, Value: hash}, corev1.EnvVar{Name: "USER", Value: p.Names.Service})
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: configVolume, MountPath: p.ConfigDir, ReadOnly: true}, corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"})
	if _, found := p.Config[AuthoritiesFile]; found {
		for _, path := range trustStores {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: configVolume, MountPath: path, SubPath: AuthoritiesFile, ReadOnly: true})
		}
	}
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// byOrdinal returns the pods whose names are those of the set, in order.
func byOrdinal(set string, items []corev1.Pod) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range items {
		if ordinal(set, &items[i]) >= 0 {
			pods = append(pods, &items[i])
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(ordinal(set, a), ordinal(set, b)) })
	return pods
}

// ordinal of a pod in a set; -1 if it has none.
func ordinal(set string, pod *corev1.Pod) int { return Ordinal(set, pod.Name) }

// Ordinal of the pod of a name in a set; -1 if it has none.
func Ordinal(set, pod string) int {
	suffix, ok := strings.CutPrefix(pod, set+"-")
	n, err := strconv.Atoi(suffix)
	if !ok || err != nil {
		return -1
	}
	return n
}

// PodName is the name of the pod of a set with an ordinal.
func PodName(set string, ordinal int) string { return set + "-" + strconv.Itoa(ordinal) }

func podNames(pods []*corev1.Pod) []string {
	out := make([]string, 0, len(pods))
	for _, pod := range pods {
		out = append(out, pod.Name)
	}
	return out
}
