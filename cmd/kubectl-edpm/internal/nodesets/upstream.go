package nodesets

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group and version of the kinds of openstack-operator, which are those of the data plane here.
const (
	Group   = "dataplane.openstack.org"
	Version = "v1beta1"

	// NodeSetKind and the others are those that are read.
	NodeSetKind    = "OpenStackDataPlaneNodeSet"
	ServiceKind    = "OpenStackDataPlaneService"
	DeploymentKind = "OpenStackDataPlaneDeployment"
)

// nodeSet and the types below have the fields of openstack-operator's API. Source:
// api/dataplane/v1beta1 at the commit of services.yaml.
type nodeSet struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            nodeSetSpec       `json:"spec"`
	Status          json.RawMessage   `json:"status"`
}

type nodeSetSpec struct {
	BaremetalSetTemplate json.RawMessage `json:"baremetalSetTemplate"`
	NodeTemplate         nodeTemplate    `json:"nodeTemplate"`
	Nodes                map[string]node `json:"nodes"`
	Env                  []corev1.EnvVar `json:"env"`
	NetworkAttachments   []string        `json:"networkAttachments"`
	Services             []string        `json:"services"`
	Tags                 []string        `json:"tags"`
	SecretMaxSize        *int            `json:"secretMaxSize"`
	PreProvisioned       bool            `json:"preProvisioned"`
	TLSEnabled           *bool           `json:"tlsEnabled"`
}

type nodeTemplate struct {
	section                    `json:",inline"`
	ExtraMounts                []json.RawMessage `json:"extraMounts"`
	AnsibleSSHPrivateKeySecret string            `json:"ansibleSSHPrivateKeySecret"`
}

type node struct {
	section           `json:",inline"`
	BmhLabelSelector  map[string]string `json:"bmhLabelSelector"`
	HostName          string            `json:"hostName"`
	CtlplaneInterface string            `json:"ctlplaneInterface"`
}

// section is what templates and nodes have in common.
type section struct {
	Networks          []network               `json:"networks"`
	UserData          *corev1.SecretReference `json:"userData"`
	NetworkData       *corev1.SecretReference `json:"networkData"`
	ManagementNetwork string                  `json:"managementNetwork"`
	Ansible           ansibleOpts             `json:"ansible"`
}

type network struct {
	Name         string `json:"name"`
	SubnetName   string `json:"subnetName"`
	FixedIP      string `json:"fixedIP"`
	DefaultRoute *bool  `json:"defaultRoute"`
}

type ansibleOpts struct {
	AnsibleUser     string         `json:"ansibleUser"`
	AnsibleHost     string         `json:"ansibleHost"`
	AnsiblePort     int            `json:"ansiblePort"`
	AnsibleVars     map[string]any `json:"ansibleVars"`
	AnsibleVarsFrom []dataSource   `json:"ansibleVarsFrom"`
}

type dataSource struct {
	Prefix       string     `json:"prefix"`
	ConfigMapRef *sourceRef `json:"configMapRef"`
	SecretRef    *sourceRef `json:"secretRef"`
}

type sourceRef struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional"`
}

// nodeSetStatus is what is read of a status, if there is one: addresses and names that IPAM
// gave to hosts, by host name and network.
type nodeSetStatus struct {
	AllIPs       map[string]map[string]string `json:"allIPs"`
	AllHostnames map[string]map[string]string `json:"allHostnames"`
}

type service struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            serviceSpec       `json:"spec"`
	Status          json.RawMessage   `json:"status"`
}

type serviceSpec struct {
	Label                         string                     `json:"label"`
	DataSources                   []dataSource               `json:"dataSources"`
	ConfigMaps                    []string                   `json:"configMaps"`
	Secrets                       []string                   `json:"secrets"`
	TLSCerts                      map[string]json.RawMessage `json:"tlsCerts"`
	PlaybookContents              string                     `json:"playbookContents"`
	Play                          string                     `json:"play"`
	Playbook                      string                     `json:"playbook"`
	Role                          string                     `json:"role"`
	CACerts                       string                     `json:"caCerts"`
	OpenStackAnsibleEERunnerImage string                     `json:"openStackAnsibleEERunnerImage"`
	CertsFrom                     string                     `json:"certsFrom"`
	AddCertMounts                 bool                       `json:"addCertMounts"`
	DeployOnAllNodeSets           bool                       `json:"deployOnAllNodeSets"`
	ContainerImageFields          []string                   `json:"containerImageFields"`
	EDPMServiceType               string                     `json:"edpmServiceType"`
}

type deployment struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            deploymentSpec    `json:"spec"`
	Status          json.RawMessage   `json:"status"`
}

type deploymentSpec struct {
	NodeSets                  []string                   `json:"nodeSets"`
	BackoffLimit              *int32                     `json:"backoffLimit"`
	PreserveJobs              *bool                      `json:"preserveJobs"`
	AnsibleTags               string                     `json:"ansibleTags"`
	AnsibleLimit              string                     `json:"ansibleLimit"`
	AnsibleSkipTags           string                     `json:"ansibleSkipTags"`
	AnsibleExtraVars          map[string]json.RawMessage `json:"ansibleExtraVars"`
	ServicesOverride          []string                   `json:"servicesOverride"`
	DeploymentRequeueTime     *int                       `json:"deploymentRequeueTime"`
	AnsibleJobNodeSelector    map[string]string          `json:"ansibleJobNodeSelector"`
	AnsibleEEEnvConfigMapName string                     `json:"ansibleEEEnvConfigMapName"`
}

// configMap has what is read of a ConfigMap.
type configMap struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Data     map[string]string `json:"data"`
}
