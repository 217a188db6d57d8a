package glanceapi

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/glance"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

const (
	// dataDir has the staging area, and with the file backend the images.
	dataDir = "/var/lib/glance"
	// dataVolume is the name of the claim template and of the volume.
	dataVolume = "glance"
	configDir  = "/etc/glance/glance.conf.d"
	// user of glance in the images of the OpenStack operators.
	user = 42415
)

func setName(api *glancev1.GlanceAPI) string { return glance.SetName(api.Name, api.Spec.APIType) }

// service is what is special to glance-api.
func (s *scope) service() *podified.Service {
	api := s.api
	return &podified.Service{
		Name: setName(api), Status: &api.Status.Status, Replicas: ptr.Deref(api.Spec.Replicas, 1),
		// The value of glanceAPI is that which the selectors of seeds/002 have.
		Labels:      map[string]string{"component": "glance-api", "glanceAPI": api.ShortName()},
		TopologyRef: s.ref(), NodeSelector: podified.Selected(api.Spec.NodeSelector), NetworkAttachments: api.Spec.NetworkAttachments,
		User: user, Pod: s.pod(), Claims: s.claims(), Headless: true, Services: s.services(),
		Config: s.files, ConfigDir: configDir,
	}
}

// jobName is the name of the Job for the database of an API.
func jobName(api *glancev1.GlanceAPI) string { return setName(api) + "-db-sync" }

// manage updates the schema of the database.
var manage = []string{"glance-manage", "--config-dir", configDir, "db_sync"}

func (s *scope) image() string { return s.api.Status.Images[glancev1.APIComponent] }

func (s *scope) pod() corev1.PodSpec {
	image := s.image()
	data := []corev1.VolumeMount{{Name: dataVolume, MountPath: dataDir}}
	pod := corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "glance-api", Image: image, VolumeMounts: data, Resources: s.api.Spec.Resources,
			Command: []string{"glance-api", "--config-dir", configDir},
			Env:     s.environment(),
			Ports:   []corev1.ContainerPort{{Name: "glance-api", ContainerPort: glance.Port, Protocol: corev1.ProtocolTCP}},
			// Both answer without a token.
			ReadinessProbe: probe("/healthcheck", 5), LivenessProbe: probe("/healthcheck", 15),
		}},
	}
	if !s.sharesDatabase() {
		pod.InitContainers = []corev1.Container{{
			Name: "db-sync", Image: image, VolumeMounts: data, Resources: s.api.Spec.Resources, Command: manage,
		}}
	}
	if glance.External(s.api.Spec.Storage) {
		pod.Volumes = []corev1.Volume{{Name: dataVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	return pod
}

// environment tells each pod under which address the others find what is staged
// on it. Options in the environment win over files, so only this one is there.
func (s *scope) environment() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "OS_DEFAULT__WORKER_SELF_REFERENCE_URL", Value: fmt.Sprintf("http://$(POD_NAME).%s.%s.svc:%d", setName(s.api), s.api.Namespace, glance.Port)},
	}
}

func probe(path string, delay int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(glance.Port)}},
		InitialDelaySeconds: delay, PeriodSeconds: 10, TimeoutSeconds: 5,
	}
}

// claims are those of each pod: the staging area, unless it is elsewhere.
func (s *scope) claims() []corev1.PersistentVolumeClaim {
	storage := s.api.Spec.Storage
	if glance.External(storage) {
		return nil
	}
	claim := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: dataVolume},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *storage.StorageRequest}},
		},
	}
	if storage.StorageClass != "" {
		claim.Spec.StorageClassName = ptr.To(storage.StorageClass)
	}
	return []corev1.PersistentVolumeClaim{claim}
}

// services are those by which users and other services reach the API.
func (s *scope) services() []*corev1.Service {
	var all []*corev1.Service
	for _, endpoint := range s.api.Spec.APIType.Endpoints() {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: glance.ServiceName(s.api.ShortName(), endpoint), Labels: map[string]string{"endpoint": endpoint}},
			Spec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{podified.TCP("glance-"+endpoint, glance.Port)},
			},
		}
		override(service, s.api.Spec.Override.Service[endpoint])
		all = append(all, service)
	}
	return all
}

// override changes a Service as the spec says.
func override(service *corev1.Service, o glancev1.ServiceOverride) {
	if o.Metadata != nil {
		service.Annotations = o.Metadata.Annotations
		for k, v := range o.Metadata.Labels {
			service.Labels[k] = v
		}
	}
	if o.Spec != nil {
		service.Spec.Type, service.Spec.LoadBalancerClass = o.Spec.Type, o.Spec.LoadBalancerClass
		service.Spec.LoadBalancerSourceRanges, service.Spec.ExternalTrafficPolicy = o.Spec.LoadBalancerSourceRanges, o.Spec.ExternalTrafficPolicy
	}
}
