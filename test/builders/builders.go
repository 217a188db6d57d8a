// Package builders makes objects for tests in one line each.
package builders

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

func meta(name, ns string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

func annotate(m *metav1.ObjectMeta, key, value string) { metav1.SetMetaDataAnnotation(m, key, value) }

// JSON is a value of a field that holds any JSON.
func JSON(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// MakeSecret returns a Secret with one entry.
func MakeSecret(name, ns, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta(name, ns), Data: map[string][]byte{key: []byte(value)}}
}

// MakeConfigMap returns a ConfigMap with one entry.
func MakeConfigMap(name, ns, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(name, ns), Data: map[string]string{key: value}}
}

// NodeWrapper wraps an OpenStackDataPlaneNode.
type NodeWrapper struct {
	dataplanev1.OpenStackDataPlaneNode
}

// MakeNode returns a node without a role.
func MakeNode(name, ns string) *NodeWrapper {
	return &NodeWrapper{dataplanev1.OpenStackDataPlaneNode{ObjectMeta: meta(name, ns)}}
}

// Obj returns the node.
func (w *NodeWrapper) Obj() *dataplanev1.OpenStackDataPlaneNode { return &w.OpenStackDataPlaneNode }

// Role sets the role.
func (w *NodeWrapper) Role(role string) *NodeWrapper { w.Spec.Role = role; return w }

// Annotation adds an annotation.
func (w *NodeWrapper) Annotation(key, value string) *NodeWrapper {
	annotate(&w.ObjectMeta, key, value)
	return w
}

// Cell annotates the node with a cell.
func (w *NodeWrapper) Cell(cell string) *NodeWrapper {
	return w.Annotation(novav1.CellAnnotation, cell)
}

// Host sets the address.
func (w *NodeWrapper) Host(address string) *NodeWrapper { w.Spec.AnsibleHost = address; return w }

// Vars sets ansibleVars, as JSON.
func (w *NodeWrapper) Vars(text string) *NodeWrapper {
	w.Spec.Node.AnsibleVars = JSON(text)
	return w
}

// JumpHost sets the jump host of the node.
func (w *NodeWrapper) JumpHost(jump *common.JumpHost) *NodeWrapper {
	w.Spec.Node.JumpHost = jump
	return w
}

// Deploy says whether anything may be run.
func (w *NodeWrapper) Deploy(deploy bool) *NodeWrapper {
	w.Spec.DeployStrategy.Deploy = &deploy
	return w
}

// Topology refers to a Topology; an empty name opts out of that of the role.
func (w *NodeWrapper) Topology(name string) *NodeWrapper {
	w.Spec.TopologyRef = &topologyv1.TopologyRef{Name: name}
	return w
}

// RoleWrapper wraps an OpenStackDataPlaneRole.
type RoleWrapper struct {
	dataplanev1.OpenStackDataPlaneRole
}

// MakeRole returns a role with the default services.
func MakeRole(name, ns string) *RoleWrapper {
	return &RoleWrapper{dataplanev1.OpenStackDataPlaneRole{ObjectMeta: meta(name, ns)}}
}

// Obj returns the role.
func (w *RoleWrapper) Obj() *dataplanev1.OpenStackDataPlaneRole { return &w.OpenStackDataPlaneRole }

// Annotation adds an annotation.
func (w *RoleWrapper) Annotation(key, value string) *RoleWrapper {
	annotate(&w.ObjectMeta, key, value)
	return w
}

// Cell annotates the role with a cell.
func (w *RoleWrapper) Cell(cell string) *RoleWrapper {
	return w.Annotation(novav1.CellAnnotation, cell)
}

// SSHKey names the Secret with the key.
func (w *RoleWrapper) SSHKey(secret string) *RoleWrapper {
	w.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = secret
	return w
}

// JumpHost sets the jump host of the nodes.
func (w *RoleWrapper) JumpHost(jump *common.JumpHost) *RoleWrapper {
	w.Spec.NodeTemplate.JumpHost = jump
	return w
}

// MakeJumpHost returns a jump host with the Secret of its key.
func MakeJumpHost(address, secret string) *common.JumpHost {
	return &common.JumpHost{
		Address: address, Port: 22, User: "jump", SSHPrivateKeySecret: secret,
		HostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPiG1dsVVVsPIMPZ9JmPQVAwFbXzXjqMZUaxPSBEqRIN",
	}
}

// Services sets the services of phase 0.
func (w *RoleWrapper) Services(names ...string) *RoleWrapper { w.Spec.Services = names; return w }

// Vars sets ansibleVars, as JSON.
func (w *RoleWrapper) Vars(text string) *RoleWrapper {
	w.Spec.NodeTemplate.AnsibleVars = JSON(text)
	return w
}

// Networks names network attachments.
func (w *RoleWrapper) Networks(names ...string) *RoleWrapper {
	w.Spec.NetworkAttachments = names
	return w
}

// Topology refers to a Topology.
func (w *RoleWrapper) Topology(name string) *RoleWrapper {
	w.Spec.TopologyRef = &topologyv1.TopologyRef{Name: name}
	return w
}

// Mount mounts a Secret into the runner Pods.
func (w *RoleWrapper) Mount(secret string) *RoleWrapper {
	w.Spec.NodeTemplate.ExtraMounts = append(w.Spec.NodeTemplate.ExtraMounts, ansibleeev1.ExtraMount{
		Volumes: []ansibleeev1.ExtraVolume{{Name: secret, Secret: &corev1.SecretVolumeSource{SecretName: secret}}},
		Mounts:  []corev1.VolumeMount{{Name: secret, MountPath: "/mnt/" + secret}},
	})
	return w
}

// Deploy says whether anything may be run.
func (w *RoleWrapper) Deploy(deploy bool) *RoleWrapper {
	w.Spec.DeployStrategy.Deploy = &deploy
	return w
}

// BatchSize bounds the hosts of a run.
func (w *RoleWrapper) BatchSize(n int32) *RoleWrapper {
	w.Spec.DeployStrategy.BatchSize = &n
	return w
}

// MaxUnavailable bounds the hosts that are in a run or failed.
func (w *RoleWrapper) MaxUnavailable(n int) *RoleWrapper {
	value := intstr.FromInt32(int32(n))
	w.Spec.DeployStrategy.MaxUnavailable = &value
	return w
}

// MaxFailures bounds the hosts that may have failed.
func (w *RoleWrapper) MaxFailures(n int32) *RoleWrapper {
	w.Spec.DeployStrategy.MaxFailures = &n
	return w
}

// MakeService returns a service with a playbook of the same name.
func MakeService(name, ns string) *dataplanev1.OpenStackDataPlaneService {
	return &dataplanev1.OpenStackDataPlaneService{
		ObjectMeta: meta(name, ns), Spec: dataplanev1.OpenStackDataPlaneServiceSpec{Playbook: "example.services." + name},
	}
}

// MakeDataPlane returns a data plane without roles and nodes.
func MakeDataPlane(name, ns string) *dataplanev1.OpenStackDataPlane {
	return &dataplanev1.OpenStackDataPlane{ObjectMeta: meta(name, ns), Spec: dataplanev1.OpenStackDataPlaneSpec{
		Roles: map[string]dataplanev1.OpenStackDataPlaneRoleSpec{}, Nodes: map[string]dataplanev1.OpenStackDataPlaneNodeSpec{},
	}}
}

// CellWrapper wraps a NovaCell.
type CellWrapper struct{ novav1.NovaCell }

// MakeCell returns a cell that finds its secrets in <name>-password and <name>-bus.
func MakeCell(name, ns string) *CellWrapper {
	return &CellWrapper{novav1.NovaCell{ObjectMeta: meta(name, ns), Spec: novav1.NovaCellSpec{
		Secret: name + "-password", CellMessageBusSecretName: name + "-bus", KeystoneAuthURL: "http://keystone.example:5000",
	}}}
}

// Obj returns the cell.
func (w *CellWrapper) Obj() *novav1.NovaCell { return &w.NovaCell }

// ShortName sets spec.cellName.
func (w *CellWrapper) ShortName(name string) *CellWrapper { w.Spec.CellName = name; return w }

// MakeNova returns a Nova with cell0 and the given cells.
func MakeNova(name, ns, secret string, cells ...string) *novav1.Nova {
	templates := map[string]novav1.NovaCellTemplate{novav1.Cell0Name: {}}
	for _, c := range cells {
		templates[c] = novav1.NovaCellTemplate{}
	}
	return &novav1.Nova{ObjectMeta: meta(name, ns), Spec: novav1.NovaSpec{
		Secret: secret, KeystoneAuthURL: "http://keystone.example:5000", CellTemplates: templates,
	}}
}

// MakeCompute returns a NovaExternalCompute as a person would make it beforehand.
func MakeCompute(node, ns, cell string) *novav1.NovaExternalCompute {
	return &novav1.NovaExternalCompute{ObjectMeta: meta(node, ns), Spec: novav1.NovaExternalComputeSpec{ServiceSpec: hostedv1.ServiceSpec{DataplaneNodeName: node}, CellName: cell}}
}

// MakeOVNController returns an OVNController that follows the OVN configuration.
func MakeOVNController(node, ns, secret string) *neutronv1.OVNController {
	return &neutronv1.OVNController{ObjectMeta: meta(node, ns), OVNService: ovnService(node, secret)}
}

// MakeOVNMetadataAgent returns an OVNMetadataAgent that follows the OVN configuration.
func MakeOVNMetadataAgent(node, ns, secret string) *neutronv1.OVNMetadataAgent {
	return &neutronv1.OVNMetadataAgent{ObjectMeta: meta(node, ns), OVNService: ovnService(node, secret)}
}

func ovnService(node, secret string) neutronv1.OVNService {
	return neutronv1.OVNService{Spec: neutronv1.OVNServiceSpec{ServiceSpec: hostedv1.ServiceSpec{DataplaneNodeName: node}, OVNConfigSecretName: secret}}
}

// ServiceClassWrapper builds an EDPMServiceClass.
type ServiceClassWrapper struct{ edpmv1.EDPMServiceClass }

// MakeServiceClass returns a class that the annotation example.org/<name> selects.
func MakeServiceClass(name, ns string) *ServiceClassWrapper {
	return &ServiceClassWrapper{edpmv1.EDPMServiceClass{ObjectMeta: meta(name, ns), Spec: edpmv1.EDPMServiceClassSpec{
		Annotation: "example.org/" + name, Play: "- hosts: all\n", CleanupPlay: "- hosts: all\n  gather_facts: false\n", Image: name + ":1",
	}}}
}

// Obj returns the class.
func (w *ServiceClassWrapper) Obj() *edpmv1.EDPMServiceClass { return &w.EDPMServiceClass }

// After sets the services that come before.
func (w *ServiceClassWrapper) After(names ...string) *ServiceClassWrapper {
	w.Spec.After = names
	return w
}

// Config sets customServiceConfig.
func (w *ServiceClassWrapper) Config(text string) *ServiceClassWrapper {
	w.Spec.CustomServiceConfig = text
	return w
}

// Vars sets variables as JSON.
func (w *ServiceClassWrapper) Vars(text string) *ServiceClassWrapper {
	w.Spec.Vars = JSON(text)
	return w
}

// SecretFile adds a file of an entry of a Secret.
func (w *ServiceClassWrapper) SecretFile(name, secret, key string) *ServiceClassWrapper {
	w.Spec.ConfigFiles = append(w.Spec.ConfigFiles, common.ConfigFile{Name: name, Secret: &common.FileSource{Name: secret, Key: key}})
	return w
}

// ConfigMapFile adds a file of the entry of its name of a ConfigMap.
func (w *ServiceClassWrapper) ConfigMapFile(name, configMap string) *ServiceClassWrapper {
	w.Spec.ConfigFiles = append(w.Spec.ConfigFiles, common.ConfigFile{Name: name, ConfigMap: &common.FileSource{Name: configMap}})
	return w
}

// MakeEDPMService returns the service of a class on a node, as a person would make it
// beforehand.
func MakeEDPMService(class, node, ns string) *edpmv1.EDPMService {
	return &edpmv1.EDPMService{ObjectMeta: meta(class+"-"+node, ns), Spec: edpmv1.EDPMServiceSpec{
		ServiceSpec: hostedv1.ServiceSpec{DataplaneNodeName: node}, ClassName: class,
	}}
}

// MakeRun returns an OpenStackAnsibleEE with a playbook, as a person would make it.
func MakeRun(name, ns string) *ansibleeev1.OpenStackAnsibleEE {
	return &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: meta(name, ns), Spec: ansibleeev1.OpenStackAnsibleEESpec{Playbook: "example.collection.play"}}
}

// TopologyWrapper wraps a Topology.
type TopologyWrapper struct{ topologyv1.Topology }

// MakeTopology returns a Topology that says nothing yet.
func MakeTopology(name, ns string) *TopologyWrapper {
	return &TopologyWrapper{topologyv1.Topology{ObjectMeta: meta(name, ns)}}
}

// Obj returns the Topology.
func (w *TopologyWrapper) Obj() *topologyv1.Topology { return &w.Topology }

// Spread adds a constraint of maxSkew 1 and DoNotSchedule for the pods that have
// the label; without a label for those of each consumer.
func (w *TopologyWrapper) Spread(topologyKey string, label ...string) *TopologyWrapper {
	c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: topologyKey, WhenUnsatisfiable: corev1.DoNotSchedule}
	if len(label) == 2 {
		c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label[0]: label[1]}}
	}
	w.Spec.TopologySpreadConstraints = append(w.Spec.TopologySpreadConstraints, c)
	return w
}

// Pin adds a node affinity: the label of the nodes has one of the values.
func (w *TopologyWrapper) Pin(key string, values ...string) *TopologyWrapper {
	w.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}},
	}}}
	return w
}
