package nova

import (
	"cmp"
	"context"
	"maps"
	"strconv"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles/content"
	"github.com/edpm-operators/edpm-operators/internal/nova/rotation"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

const (
	configDir = "/etc/nova/nova.conf.d"
	stateDir  = "/var/lib/nova"
	// user of nova in the images of the OpenStack operators.
	user = 42436
	// graceSeconds are those that a service has to end what it does, and to leave: [DEFAULT]
	// graceful_shutdown_timeout is 60 by default, and 180 from 2026.1 on.
	graceSeconds = 190
	// leaveSeconds are those for which an endpoint that is to end still answers: for
	// so long others may not know yet that it leaves.
	leaveSeconds = 5
)

// configArgs are the arguments of programs. Without a file nova reads that of the image first.
var configArgs = []string{"--config-file", "/dev/null", "--config-dir", configDir}

// Ports of the endpoints.
const (
	APIPort        = 8774
	MetadataPort   = 8775
	NoVNCProxyPort = 6080
)

// applications are what an image has as WSGI applications that has no such programs, as
// from nova 2026.1 on: module:object.
var applications = map[string]string{
	"nova-api-os-compute": "nova.wsgi.osapi_compute:application",
	"nova-api-metadata":   "nova.wsgi.metadata:application",
}

// Component is a service of nova in pods.
type Component struct {
	// Program that runs, and the label "service" of the pods.
	Program string
	// Name of the StatefulSet and of the Service.
	Name string
	// Field is the path of the template, for messages.
	Field    string
	Template novav1.NovaServiceTemplate
	// Files that it reads next to its options, and what it can read.
	Files novav1.FurtherFiles
	Reads furtherfiles.Service
	// Replicas if the template sets none.
	Replicas int32
	// Image if the template sets none.
	Image string
	// Cell is the short name of the cell; empty for a service of all cells.
	Cell        string
	TopologyRef *topologyv1.TopologyRef
	// NodeSelector if the template sets none.
	NodeSelector *map[string]string
	// Port on which the service listens, 0 for none, and path that it answers without
	// a token; without a path it is enough that it listens.
	Port int32
	Path string
	TLS  *novav1.NovaEndpointTLS
	// Consoles has the files by which a console proxy and hosts know one another, none where
	// consoles cross the network in clear.
	Consoles map[string][]byte
	// Status of the pods, to which a new one is added when there is none.
	Status **podifiedv1.Status
}

// Wanted reports whether the service is to run.
func (c *Component) Wanted() bool { return c.replicas() > 0 }

func (c *Component) replicas() int32 { return ptr.Deref(c.Template.Replicas, c.Replicas) }

// Bare is what is needed of a service to remove it.
func (c *Component) Bare() *podified.Service {
	return &podified.Service{Name: c.Name, Component: c.Program, Status: *c.Status, TopologyRef: c.TopologyRef, Services: c.services()}
}

// Service returns the service with its configuration, its files and, if it has TLS, its
// certificate, and what people say in it. The error is a *phase.Halt when something is missing or
// wrong.
func (c *Component) Service(ctx context.Context, r *inputs.Reader, namespace string, config Config, more map[string][]byte) (*podified.Service, podified.Texts, error) {
	snippets, err := podified.ReadSnippets(ctx, r, identity.PodNova, namespace, c.Field+".customServiceConfig", c.Template.CustomServiceConfig, c.Template.CustomServiceConfigSecrets)
	if err != nil {
		return nil, podified.Texts{}, err
	}
	certificate, err := c.certificate(ctx, r, namespace)
	if err != nil {
		return nil, podified.Texts{}, err
	}
	further, err := content.Read(ctx, r, c.Reads, namespace, c.Field, c.Files)
	if err != nil {
		return nil, podified.Texts{}, err
	}
	s, err := c.Assemble(snippets, config, certificate)
	if err != nil {
		return nil, podified.Texts{}, phase.Stalled(condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason, "%v: check the Secrets of %s", err, config.Owner)
	}
	maps.Copy(s.Config, more)
	content.AddTo(s, further)
	return s, podified.Texts{Image: c.RunsImage(), Parts: snippets.Parts}, nil
}

// Assemble returns the service with a configuration and, if it has TLS, a certificate.
func (c *Component) Assemble(snippets podified.Snippets, config Config, certificate map[string][]byte) (*podified.Service, error) {
	if c.TLS != nil {
		config.TLSDir = configDir
	}
	if len(c.Consoles) > 0 {
		config.ConsoleDir = configDir
	}
	if c.Port != MetadataPort {
		config.MetadataSecret = "" // a change of it concerns no other service
	}
	files, err := c.files(snippets, config)
	if err != nil {
		return nil, err
	}
	s := c.Bare()
	s.Config, s.Causes = files, c.causes()
	maps.Copy(s.Config, certificate)
	maps.Copy(s.Config, c.Consoles)
	if *c.Status == nil {
		*c.Status = &podifiedv1.Status{}
	}
	s.Status, s.Replicas, s.ConfigDir, s.User, s.Pod = *c.Status, c.replicas(), configDir, user, c.pod(snippets, config)
	s.NodeSelector = podified.Selected(cmp.Or(c.Template.NodeSelector, c.NodeSelector))
	s.NetworkAttachments = c.Template.NetworkAttachments
	if c.Cell != "" {
		s.Labels = map[string]string{"cell": c.Cell}
	}
	return s, nil
}

// files of the configuration, and what runs an endpoint.
func (c *Component) files(snippets podified.Snippets, config Config) (map[string][]byte, error) {
	files, err := config.files(snippets)
	if err != nil || c.Port == 0 {
		return files, err
	}
	if files[serveFile], err = scripts.ReadFile(serveFile); err != nil {
		return nil, err
	}
	if applications[c.Program] != "" {
		files[reportFile] = []byte(reportConf)
	}
	program, err := config.Program(c.Program)
	files[programFile] = []byte(program)
	return files, err
}

// reportConf has nova write a report of its state to its log when the file, which serve.sh
// makes, is touched: a WSGI server keeps the signal from it that other programs get for that.
const reportConf = `[oslo_reports]
file_event_handler = /tmp/report
`

// causes that serve.sh leaves.
func (c *Component) causes() []podified.Cause {
	if c.Port == 0 {
		return nil
	}
	lacks := "the image has no program " + c.Program
	if application := applications[c.Program]; application != "" {
		lacks += ", and not what its WSGI application takes: " + application + ", and uwsgi or httpd with mod_wsgi"
	}
	return []podified.Cause{{Reason: podifiedv1.ProgramMissingReason, Text: lacks + ". Set another image in " + c.Field + ".containerImage"}}
}

// RunsImage is the image of the service.
func (c *Component) RunsImage() string { return cmp.Or(c.Template.ContainerImage, c.Image) }

// command runs an endpoint: serve.sh finds its program.
func (c *Component) command() []string {
	command := []string{"/bin/bash", configDir + "/" + serveFile, c.Program}
	if application := applications[c.Program]; application != "" {
		command = append(command, application, strconv.Itoa(int(c.Port)))
	}
	return command
}

// certificate is read into the configuration, so that the pods are replaced when
// it changes.
func (c *Component) certificate(ctx context.Context, r *inputs.Reader, namespace string) (map[string][]byte, error) {
	if c.TLS == nil {
		return nil, nil
	}
	data, err := r.Secret(ctx, namespace, c.TLS.SecretName) // once: certificate and key are of one version
	if err != nil {
		return nil, inputs.Halt(condition.ServiceConfigReadyCondition, err)
	}
	found := map[string][]byte{}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		value, err := inputs.Value(c.TLS.SecretName, data, key)
		if err != nil {
			return nil, inputs.Halt(condition.ServiceConfigReadyCondition, err)
		}
		found[key] = value
	}
	return found, nil
}

func (c *Component) pod(snippets podified.Snippets, config Config) corev1.PodSpec {
	if c.Port == 0 {
		return Pod(c.Program, c.RunsImage(), c.Template.Resources, transportURL(snippets, config))
	}
	pod := Pod(c.Program, c.RunsImage(), c.Template.Resources, "")
	container := &pod.Containers[0]
	container.Command = c.command()
	container.Ports = []corev1.ContainerPort{{Name: c.portName(), ContainerPort: c.Port, Protocol: corev1.ProtocolTCP}}
	// An endpoint whose threads all wait, for a database or for computes that do not answer, gets no
	// more requests, and is not restarted: all replicas would be, at once, with requests in progress.
	container.StartupProbe, container.ReadinessProbe, container.LivenessProbe = probe(c.answers(), 2, 150), probe(c.answers(), 5, 2), probe(c.listens(), 10, 6)
	container.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", strconv.Itoa(leaveSeconds)}}}}
	return pod
}

// Pod returns the pod of a program of nova that uses a message bus, and is ready while it is
// connected to it.
func Pod(program, image string, resources corev1.ResourceRequirements, busURL string) corev1.PodSpec {
	container := corev1.Container{
		Name: program, Image: image, Resources: resources, Command: append([]string{program}, configArgs...),
		VolumeMounts: []corev1.VolumeMount{{Name: "state", MountPath: stateDir}},
	}
	if ports := busPorts(busURL); len(ports) > 0 {
		container.ReadinessProbe = probe(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: connected(ports)}}, 5, 2)
	}
	return corev1.PodSpec{
		Containers: []corev1.Container{container}, TerminationGracePeriodSeconds: ptr.To[int64](graceSeconds),
		// As the first process of its namespace, one that still waits for a database
		// would ignore SIGTERM and be killed when its time is over.
		ShareProcessNamespace: ptr.To(true),
		Volumes:               []corev1.Volume{{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
}

// transportURL is that of the message bus which the service reads.
func transportURL(snippets podified.Snippets, config Config) string {
	if custom, set := snippets.Value("DEFAULT", "transport_url"); set {
		return custom
	}
	return config.TransportURL
}

// probe fails when the handler has failed so often, once in a period of seconds.
func probe(handler corev1.ProbeHandler, period, failures int32) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: handler, PeriodSeconds: period, FailureThreshold: failures, TimeoutSeconds: 5}
}

// answers asks the endpoint.
func (c *Component) answers() corev1.ProbeHandler {
	if c.Path == "" {
		return c.listens()
	}
	get := &corev1.HTTPGetAction{Path: c.Path, Port: intstr.FromInt32(c.Port)}
	if c.TLS != nil {
		get.Scheme = corev1.URISchemeHTTPS
	}
	return corev1.ProbeHandler{HTTPGet: get}
}

// listens connects to the endpoint, which succeeds also while it answers no one.
func (c *Component) listens() corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(c.Port)}}
}

// portName has at most 15 characters.
func (c *Component) portName() string {
	return map[int32]string{APIPort: "api", MetadataPort: "metadata", NoVNCProxyPort: "novncproxy"}[c.Port]
}

func (c *Component) services() []*corev1.Service {
	if c.Port == 0 {
		return nil
	}
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{podified.TCP(c.portName(), c.Port)}}}
	service.Name = c.Name
	return []*corev1.Service{service}
}

// Split returns the services that are to run and those that are not.
func Split(components []*Component) (wanted []*Component, unwanted []*podified.Service) {
	for _, c := range components {
		if c.Wanted() {
			wanted = append(wanted, c)
		} else {
			unwanted = append(unwanted, c.Bare())
		}
	}
	return wanted, unwanted
}

// Bare returns what is needed of services to remove them.
func Bare(components []*Component) []*podified.Service {
	var all []*podified.Service
	for _, c := range components {
		all = append(all, c.Bare())
	}
	return all
}

// Judge says in ServiceConfigReady of an object what images say of texts for them. It returns a
// *phase.Halt if one is refused.
type Judge func(ctx context.Context, owner phase.Object, texts []podified.Texts) error

// Deploy runs the services that are wanted, and removes the others. Nothing changes while an
// image refuses a text.
func Deploy(ctx context.Context, pods *podified.Deployer, owner phase.Object, components []*Component, config Config, more map[string][]byte, judge Judge) error {
	wanted, unwanted := Split(components)
	var services []*podified.Service
	var texts []podified.Texts
	for _, c := range wanted {
		service, text, err := c.Service(ctx, pods.Inputs, owner.GetNamespace(), config, more)
		if err != nil {
			return err
		}
		services, texts = append(services, service), append(texts, text)
	}
	owner.GetConditions().MarkTrue(condition.ServiceConfigReadyCondition, condition.ServiceConfigReadyMessage)
	if err := judge(ctx, owner, texts); err != nil {
		return err
	}
	if err := pods.Remove(ctx, owner, services, unwanted); err != nil {
		return err
	}
	for _, c := range components {
		if !c.Wanted() {
			*c.Status = nil
		}
	}
	if len(services) == 0 {
		for _, t := range podified.Conditions {
			owner.GetConditions().Remove(t) // they are about pods
		}
		return nil
	}
	return pods.Deploy(ctx, owner, services...)
}

// Parts are the services that are deployed, by who runs the present configuration.
func Parts(components []*Component) []rotation.Part {
	var parts []rotation.Part
	for _, c := range components {
		if c.Wanted() {
			parts = append(parts, rotation.Pods(c.Name, *c.Status, c.replicas()))
		}
	}
	return parts
}

// Snippets are the Secrets with parts of the configuration of components, and their files.
func Snippets(components []*Component) []string {
	var names []string
	for _, c := range components {
		names = append(append(names, c.Template.CustomServiceConfigSecrets...), content.Sources("Secret", c.Files)...)
	}
	return names
}

// ConfigMapNames are the ConfigMaps with files of components.
func ConfigMapNames(components []*Component) []string {
	var names []string
	for _, c := range components {
		names = append(names, content.Sources("ConfigMap", c.Files)...)
	}
	return names
}

// Generated are the entries of watch.Generated of what components are made of.
func Generated(components []*Component) []string {
	var entries []string
	for _, c := range components {
		entries = append(entries, podified.GeneratedSet(c.Name)...)
		for _, service := range c.services() {
			entries = append(entries, watch.Generated("Service", service.Name))
		}
	}
	return entries
}

// SecretNames are those of the Secrets that components and Jobs read or write.
func SecretNames(components []*Component, jobs ...string) []string {
	var names []string
	for _, c := range components {
		names = append(append(names, podified.ConfigName(c.Name)), c.Template.CustomServiceConfigSecrets...)
		names = append(names, content.Sources("Secret", c.Files)...)
		if c.TLS != nil {
			names = append(names, c.TLS.SecretName)
		}
	}
	for _, job := range jobs {
		names = append(names, podified.ConfigName(job))
	}
	return names
}
