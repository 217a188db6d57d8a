package dataplane

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// nodeSpec checks the spec of a node of the namespace, wherever it is written.
func nodeSpec(at *field.Path, namespace string, spec dataplanev1.OpenStackDataPlaneNodeSpec) field.ErrorList {
	errs := validate.ObjectName(at.Child("role"), spec.Role)
	errs = append(errs, validate.Hostname(at.Child("hostName"), spec.HostName)...)
	errs = append(errs, validate.Address(at.Child("ansibleHost"), spec.AnsibleHost)...)
	errs = append(errs, validate.ObjectName(at.Child("bareMetalHost"), spec.BareMetalHost)...)
	errs = append(errs, section(at.Child("node"), spec.Node)...)
	errs = append(errs, validate.Env(at.Child("env"), spec.Env)...)
	errs = append(errs, validate.ObjectNames(at.Child("networkAttachments"), spec.NetworkAttachments)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), spec.TopologyRef, namespace)...)
	return append(errs, deployStrategy(at.Child("deployStrategy"), spec.DeployStrategy)...)
}

// roleSpec checks the spec of a role of the namespace, wherever it is written.
func roleSpec(at *field.Path, namespace string, spec dataplanev1.OpenStackDataPlaneRoleSpec) field.ErrorList {
	errs := validate.ObjectName(at.Child("dataPlane"), spec.DataPlane)
	errs = append(errs, section(at.Child("nodeTemplate"), spec.NodeTemplate)...)
	errs = append(errs, validate.Env(at.Child("env"), spec.Env)...)
	errs = append(errs, validate.ObjectNames(at.Child("networkAttachments"), spec.NetworkAttachments)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), spec.TopologyRef, namespace)...)
	errs = append(errs, validate.ObjectNames(at.Child("services"), spec.Services)...)
	if t := spec.BaremetalSetTemplate; t != nil && !ptr.Deref(spec.PreProvisioned, false) {
		errs = append(errs, metal.TemplateErrors(at.Child("baremetalSetTemplate"), namespace, t, spec.NodeTemplate)...)
	}
	return append(errs, deployStrategy(at.Child("deployStrategy"), spec.DeployStrategy)...)
}

// section checks what a role says for its nodes and a node for itself.
func section(at *field.Path, s dataplanev1.NodeSection) field.ErrorList {
	errs := validate.User(at.Child("ansibleUser"), s.AnsibleUser)
	errs = append(errs, validate.AnsibleVars(at.Child("ansibleVars"), s.AnsibleVars)...)
	errs = append(errs, validate.ObjectName(at.Child("ansibleSSHPrivateKeySecret"), s.AnsibleSSHPrivateKeySecret)...)
	errs = append(errs, validate.JumpHost(at.Child("jumpHost"), s.JumpHost)...)
	errs = append(errs, validate.ExtraMounts(at.Child("extraMounts"), s.ExtraMounts)...)
	errs = append(errs, secretReference(at.Child("userData"), s.UserData)...)
	errs = append(errs, secretReference(at.Child("networkData"), s.NetworkData)...)
	for i, network := range s.Networks {
		errs = append(errs, validate.IP(at.Child("networks").Index(i).Child("fixedIP"), network.FixedIP)...)
	}
	return errs
}

func secretReference(at *field.Path, ref *corev1.SecretReference) field.ErrorList {
	if ref == nil {
		return nil
	}
	errs := validate.ObjectName(at.Child("name"), ref.Name)
	return append(errs, validate.Label(at.Child("namespace"), ref.Namespace)...)
}

func deployStrategy(at *field.Path, s dataplanev1.DeployStrategySection) field.ErrorList {
	errs := validate.Limit(at.Child("ansibleLimit"), s.AnsibleLimit)
	errs = append(errs, validate.Tags(at.Child("ansibleTags"), s.AnsibleTags)...)
	errs = append(errs, validate.Tags(at.Child("ansibleSkipTags"), s.AnsibleSkipTags)...)
	// Percentages are the schema's business, but its pattern says nothing of numbers.
	if most := s.MaxUnavailable; most != nil && most.Type == intstr.Int && most.IntVal < 1 {
		errs = append(errs, field.Invalid(at.Child("maxUnavailable"), most.String(), `does not allow any host: set a number from 1, or a percentage from "1%" to "100%"`))
	}
	return errs
}

// named applies a check to each entry of a map whose keys become names of
// objects of the namespace, in the order of the keys.
func named[S any](at *field.Path, namespace string, specs map[string]S, check func(*field.Path, string, S) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		errs = append(errs, validate.RequiredName(at.Key(name), name)...)
		errs = append(errs, check(at.Key(name), namespace, specs[name])...)
	}
	return errs
}
