package inherit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// Effective has the effective values of a node.
type Effective struct {
	HostName, AnsibleHost string
	AnsibleUser           string
	AnsiblePort           int32
	ManagementNetwork     string
	Networks              []dataplanev1.NetworkSection
	NetworkTemplate       string
	Vars                  map[string]any
	SSHKeySecret          string
	JumpHost              *common.JumpHost
	ExtraMounts           []ansibleeev1.ExtraMount
	Env                   []corev1.EnvVar
	NetworkAttachments    []string
	TopologyRef           *topologyv1.TopologyRef
	Services              []string
	Deploy                dataplanev1.DeployStrategySection
}

// TakeOverVar is the variable of the roles for common.TakeOverAnnotation.
const TakeOverVar = "edpm_take_over"

// EffectiveOf returns the effective values of a node of the role, which can be nil. The
// error says which ansibleVars cannot be read.
func EffectiveOf(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) (Effective, error) {
	if role == nil {
		role = &dataplanev1.OpenStackDataPlaneRole{}
	}
	own, base := &node.Spec.Node, &role.Spec.NodeTemplate
	vars, err := mergeVars(base.AnsibleVars, own.AnsibleVars)
	if tool := node.Annotations[common.TakeOverAnnotation]; tool != "" && err == nil {
		vars[TakeOverVar] = tool
	}
	return Effective{
		HostName:           cmp.Or(node.Spec.HostName, node.Name),
		AnsibleHost:        cmp.Or(node.Spec.AnsibleHost, claimedAddress(node), node.Spec.HostName, node.Name),
		AnsibleUser:        cmp.Or(own.AnsibleUser, base.AnsibleUser),
		AnsiblePort:        cmp.Or(own.AnsiblePort, base.AnsiblePort),
		ManagementNetwork:  cmp.Or(own.ManagementNetwork, base.ManagementNetwork),
		Networks:           firstList(own.Networks, base.Networks),
		NetworkTemplate:    cmp.Or(template(own), template(base)),
		Vars:               vars,
		SSHKeySecret:       SSHKeySecret(node, role),
		JumpHost:           JumpHost(node, role),
		ExtraMounts:        firstList(own.ExtraMounts, base.ExtraMounts),
		Env:                firstList(node.Spec.Env, role.Spec.Env),
		NetworkAttachments: NetworkAttachments(node, role),
		TopologyRef:        TopologyRef(node, role),
		Services:           firstList(role.Spec.Services, dataplanev1.DefaultServices),
		Deploy:             MergeStrategy(node.Spec.DeployStrategy, role.Spec.DeployStrategy),
	}, err
}

// SSHKeySecret of a node; empty when neither the node nor the role, which can
// be nil, names one.
func SSHKeySecret(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) string {
	if own := node.Spec.Node.AnsibleSSHPrivateKeySecret; own != "" || role == nil {
		return own
	}
	return role.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret
}

// JumpHost of a node; nil when neither the node nor the role, which can be nil, has one.
func JumpHost(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) *common.JumpHost {
	if own := node.Spec.Node.JumpHost; own != nil || role == nil {
		return own
	}
	return role.Spec.NodeTemplate.JumpHost
}

// NetworkAttachments of a node; the role can be nil.
func NetworkAttachments(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) []string {
	if own := node.Spec.NetworkAttachments; len(own) > 0 || role == nil {
		return own
	}
	return role.Spec.NetworkAttachments
}

// TopologyRef of the runner Pods of a node, nil for none; both can be nil.
func TopologyRef(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) *topologyv1.TopologyRef {
	var refs []*topologyv1.TopologyRef
	if node != nil {
		refs = append(refs, node.Spec.TopologyRef)
	}
	if role != nil {
		refs = append(refs, role.Spec.TopologyRef)
	}
	return topology.Nearest(refs...)
}

// Deploy reports whether anything may be run on a node; the role can be nil.
func Deploy(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) bool {
	return ptr.Deref(Strategy(node, role).Deploy, true)
}

// Strategy is the deploy strategy of a node; the role can be nil.
func Strategy(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) dataplanev1.DeployStrategySection {
	if role == nil {
		role = &dataplanev1.OpenStackDataPlaneRole{}
	}
	return MergeStrategy(node.Spec.DeployStrategy, role.Spec.DeployStrategy)
}

// MergeStrategy merges two deploy strategies field by field; the first wins.
func MergeStrategy(own, base dataplanev1.DeployStrategySection) dataplanev1.DeployStrategySection {
	return dataplanev1.DeployStrategySection{
		Deploy:          cmp.Or(own.Deploy, base.Deploy),
		AnsibleTags:     cmp.Or(own.AnsibleTags, base.AnsibleTags),
		AnsibleLimit:    cmp.Or(own.AnsibleLimit, base.AnsibleLimit),
		AnsibleSkipTags: cmp.Or(own.AnsibleSkipTags, base.AnsibleSkipTags),
		BatchSize:       cmp.Or(own.BatchSize, base.BatchSize),
		MaxUnavailable:  cmp.Or(own.MaxUnavailable, base.MaxUnavailable),
		MaxFailures:     cmp.Or(own.MaxFailures, base.MaxFailures),
		DriftCheck:      cmp.Or(own.DriftCheck, base.DriftCheck),
		Drain:           cmp.Or(own.Drain, base.Drain),
	}
}

// claimedAddress is that of the BareMetalHost of a node, empty if there is none, or
// it is not known yet.
func claimedAddress(node *dataplanev1.OpenStackDataPlaneNode) string {
	if node.Status.BareMetalHost == nil {
		return ""
	}
	return node.Status.BareMetalHost.Address
}

func template(s *dataplanev1.NodeSection) string {
	if s.NetworkConfig == nil {
		return ""
	}
	return s.NetworkConfig.Template
}

func firstList[T any](own, base []T) []T {
	if len(own) > 0 {
		return own
	}
	return base
}

func mergeVars(base, own *apiextensionsv1.JSON) (map[string]any, error) {
	merged, err := Vars(base)
	if err != nil {
		return nil, fmt.Errorf("ansibleVars of the role: %w", err)
	}
	more, err := Vars(own)
	if err != nil {
		return nil, fmt.Errorf("ansibleVars of the node: %w", err)
	}
	maps.Copy(merged, more)
	return merged, nil
}

// Vars returns ansibleVars as a mapping: they are a mapping already, or the
// text of a YAML mapping. The error says what they are instead.
func Vars(raw *apiextensionsv1.JSON) (map[string]any, error) {
	vars := map[string]any{}
	if raw == nil || len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return vars, nil
	}
	if raw.Raw[0] != '"' {
		if err := json.Unmarshal(raw.Raw, &vars); err != nil {
			return nil, fmt.Errorf("must be a mapping, or a string with a YAML mapping")
		}
		return vars, nil
	}
	var text string
	if err := json.Unmarshal(raw.Raw, &text); err != nil {
		return nil, fmt.Errorf("reading text: %w", err)
	}
	if err := yaml.Unmarshal([]byte(text), &vars); err != nil {
		return nil, fmt.Errorf("must be a string with a YAML mapping: %w", err)
	}
	if vars == nil {
		vars = map[string]any{}
	}
	return vars, nil
}
