package novacell

import (
	"cmp"
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/podified"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

const (
	conductorConfigDir = "/etc/nova/nova.conf.d"
	stateDir           = "/var/lib/nova"
	// user of nova in the images of the OpenStack operators.
	user = 42436
)

// ref is the Topology that the conductor follows.
func (s *scope) ref() *topologyv1.TopologyRef {
	return topology.Nearest(s.cell.Spec.ConductorServiceTemplate.TopologyRef, s.cell.Spec.TopologyRef)
}

// applied is the Topology that the conductor has followed.
func (s *scope) applied() *topologyv1.TopologyRef {
	if s.cell.Status.Conductor == nil {
		return nil
	}
	return s.cell.Status.Conductor.LastAppliedTopology
}

func (s *scope) image() string {
	return cmp.Or(s.cell.Spec.ConductorServiceTemplate.ContainerImage, s.Images.NovaConductor)
}

// withoutConductor says why the cell has no conductor, and how it gets one;
// empty when it has one. Computes on hosts can be configured either way: the
// conductor may run elsewhere.
func (s *scope) withoutConductor() string {
	switch {
	case s.cell.Spec.CellDatabaseHostname == "":
		return "spec.cellDatabaseHostname is empty; to run one, set it and the key " + novav1.CellDatabasePasswordKey + " of the Secret"
	case s.image() == "":
		return "no image is configured; to run one, set spec.conductorServiceTemplate.containerImage"
	}
	return ""
}

// conductor is the phase that runs the conductor, or ensures that there is none.
func (s *scope) conductor(ctx context.Context) error {
	if why := s.withoutConductor(); why != "" {
		if err := s.Pods.Remove(ctx, s.cell, novav1.ConductorName(s.cell.Name), s.applied()); err != nil {
			return err
		}
		s.cell.Status.Conductor = nil
		s.cell.Status.Conditions.MarkTrue(novav1.NovaConductorReadyCondition, "No conductor runs in this cell: %s", why)
		return nil
	}
	files, err := s.conductorConfig(ctx)
	if err != nil {
		return err
	}
	s.cell.Status.Conditions.MarkTrue(condition.ServiceConfigReadyCondition, condition.ServiceConfigReadyMessage)
	s.cell.Status.Conditions.MarkTrue(novav1.NovaConductorReadyCondition, "The inputs of the conductor are ready")
	if s.cell.Status.Conductor == nil {
		s.cell.Status.Conductor = &podifiedv1.Status{}
	}
	return s.Pods.Deploy(ctx, s.cell, s.cell.Status.Conductor, s.conductorService(files))
}

func (s *scope) conductorConfig(ctx context.Context) (map[string][]byte, error) {
	spec := s.cell.Spec
	var err error
	if s.config.Connection, err = s.database(ctx, spec.CellDatabaseHostname, spec.CellDatabaseUser, novav1.CellDatabasePasswordKey, "nova_"+s.cell.ShortName()); err != nil {
		return nil, err
	}
	if spec.APIDatabaseHostname != "" {
		if s.config.APIConnection, err = s.database(ctx, spec.APIDatabaseHostname, spec.APIDatabaseUser, novav1.APIDatabasePasswordKey, "nova_api"); err != nil {
			return nil, err
		}
	}
	snippets, err := podified.ReadSnippets(ctx, s.Inputs, s.cell.Namespace,
		"spec.conductorServiceTemplate.customServiceConfig", spec.ConductorServiceTemplate.CustomServiceConfig, nil)
	if err != nil {
		return nil, err
	}
	text, err := s.config.render(conductorTemplate)
	if err != nil {
		return nil, phase.Stalled(condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason, "%v: check the Secrets of the cell", err)
	}
	return snippets.Files("nova", text), nil
}

// database is the connection to a database whose password is in the Secret.
func (s *scope) database(ctx context.Context, host, user, key, name string) (string, error) {
	password, err := s.Inputs.SecretKey(ctx, s.cell.Namespace, s.cell.Spec.Secret, key)
	if err != nil {
		return "", inputs.Halt(novav1.NovaConductorReadyCondition, err)
	}
	return podified.MySQL(host, user, string(password), name), nil
}

// conductorService is what is special to nova-conductor.
func (s *scope) conductorService(files map[string][]byte) *podified.Service {
	t := s.cell.Spec.ConductorServiceTemplate
	return &podified.Service{
		Name:     novav1.ConductorName(s.cell.Name),
		Labels:   map[string]string{"cell": s.cell.ShortName()},
		Replicas: ptr.Deref(t.Replicas, 1), TopologyRef: s.ref(),
		NodeSelector:       podified.Selected(cmp.Or(t.NodeSelector, s.cell.Spec.NodeSelector)),
		NetworkAttachments: t.NetworkAttachments, User: user, Pod: s.conductorPod(),
		Config: files, ConfigDir: conductorConfigDir,
	}
}

func (s *scope) conductorPod() corev1.PodSpec {
	state := []corev1.VolumeMount{{Name: "state", MountPath: stateDir}}
	container := func(name string, command ...string) corev1.Container {
		return corev1.Container{
			Name: name, Image: s.image(), Command: command, VolumeMounts: state, Resources: s.cell.Spec.ConductorServiceTemplate.Resources,
		}
	}
	return corev1.PodSpec{
		InitContainers: []corev1.Container{container("db-sync", "nova-manage", "--config-dir", conductorConfigDir, "db", "sync", "--local_cell")},
		Containers:     []corev1.Container{container("nova-conductor", "nova-conductor", "--config-dir", conductorConfigDir)},
		Volumes:        []corev1.Volume{{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
}
