// Package ansibleee admits runs of Ansible.
package ansibleee

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var rules = hook.Rules[*ansibleeev1.OpenStackAnsibleEE]{
	Kind:   ansibleeev1.GroupVersion.WithKind("OpenStackAnsibleEE").GroupKind(),
	Errors: runErrors,
}

// SetupOpenStackAnsibleEEWithManager serves the defaults and rules of
// OpenStackAnsibleEE.
func SetupOpenStackAnsibleEEWithManager(mgr ctrl.Manager, defaults images.Defaults) error {
	return ctrl.NewWebhookManagedBy(mgr, &ansibleeev1.OpenStackAnsibleEE{}).
		WithDefaulter(image{defaults.AnsibleEE}).
		WithValidator(&validator{Rules: rules, reviews: mgr.GetClient()}).
		Complete()
}

// image is the execution environment of runs that name none.
type image struct{ name string }

// Default sets the image if the spec leaves it empty.
func (i image) Default(_ context.Context, run *ansibleeev1.OpenStackAnsibleEE) error {
	if run.Spec.Image == "" {
		run.Spec.Image = i.name
	}
	return nil
}

func runErrors(run *ansibleeev1.OpenStackAnsibleEE) field.ErrorList {
	spec, at := run.Spec, field.NewPath("spec")
	errs := validate.Playbook(at.Child("playbook"), spec.Playbook)
	for i, step := range spec.Steps {
		errs = append(errs, validate.Playbook(at.Child("steps").Index(i).Child("playbook"), step.Playbook)...)
	}
	errs = append(errs, validate.PlaybookText(at.Child("playbookContents"), spec.PlaybookContents)...)
	errs = append(errs, validate.Inventory(at.Child("inventory"), spec.Inventory)...)
	errs = append(errs, envTexts(at, spec)...)
	errs = append(errs, validate.Env(at.Child("env"), spec.Env)...)
	errs = append(errs, validate.ExtraVars(at.Child("extraVars"), spec.ExtraVars)...)
	errs = append(errs, validate.CmdLine(at.Child("cmdLine"), spec.CmdLine)...)
	errs = append(errs, validate.ExtraMounts(at.Child("extraMounts"), spec.ExtraMounts)...)
	errs = append(errs, validate.Limit(at.Child("ansibleLimit"), spec.AnsibleLimit)...)
	errs = append(errs, validate.Tags(at.Child("ansibleTags"), spec.AnsibleTags)...)
	errs = append(errs, validate.Tags(at.Child("ansibleSkipTags"), spec.AnsibleSkipTags)...)
	errs = append(errs, topology.ValidateRef(at.Child("topologyRef"), spec.TopologyRef, run.Namespace)...)
	return append(errs, nameErrors(at, spec)...)
}

func nameErrors(at *field.Path, spec ansibleeev1.OpenStackAnsibleEESpec) field.ErrorList {
	errs := validate.Label(at.Child("name"), spec.Name)
	errs = append(errs, validate.ObjectName(at.Child("envConfigMapName"), spec.EnvConfigMapName)...)
	errs = append(errs, validate.ObjectName(at.Child("sshKeySecretName"), spec.SSHKeySecretName)...)
	errs = append(errs, validate.JumpHost(at.Child("jumpHost"), spec.JumpHost)...)
	errs = append(errs, validate.ObjectName(at.Child("inputsSecretName"), spec.InputsSecretName)...)
	errs = append(errs, validate.ObjectName(at.Child("serviceAccountName"), spec.ServiceAccountName)...)
	return append(errs, validate.ObjectNames(at.Child("networkAttachments"), spec.NetworkAttachments)...)
}

// envTexts checks the texts that a runner gets in its environment.
func envTexts(at *field.Path, spec ansibleeev1.OpenStackAnsibleEESpec) field.ErrorList {
	errs := validate.EnvText(at.Child("playbookContents"), spec.PlaybookContents)
	errs = append(errs, validate.EnvText(at.Child("inventory"), spec.Inventory)...)
	errs = append(errs, validate.EnvText(at.Child("cmdLine"), spec.CmdLine)...)
	vars, _ := json.Marshal(spec.ExtraVars) // values come from JSON
	return append(errs, validate.EnvText(at.Child("extraVars"), string(vars))...)
}
