package edpmservice

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// reserved are the domains of annotations that mean something else on a node.
var reserved = []string{"edpm.openstack.org", "kubernetes.io", "k8s.io"}

// ClassErrors returns what is wrong with a class, next to what its definition refuses. The
// playbooks and variables of a class may do what those of a run may that a user of the
// namespace creates, and no more.
func ClassErrors(class *edpmv1.EDPMServiceClass) field.ErrorList {
	spec, at := class.Spec, field.NewPath("spec")
	errs := annotationErrors(at.Child("annotation"), spec.Annotation)
	errs = append(errs, playErrors(at, "playbook", spec.Playbook, "play", spec.Play)...)
	errs = append(errs, playErrors(at, "cleanupPlaybook", spec.CleanupPlaybook, "cleanupPlay", spec.CleanupPlay)...)
	errs = append(errs, fileErrors(at.Child("configFiles"), class)...)
	errs = append(errs, validate.ServiceConfig(at.Child("customServiceConfig"), identity.Class, spec.CustomServiceConfig)...)
	errs = append(errs, varErrors(at.Child("vars"), class)...)
	for i, name := range spec.After {
		errs = append(errs, validate.Label(at.Child("after").Index(i), name)...)
	}
	return errs
}

// annotationErrors refuses what is no key of an annotation, and keys that mean something
// else: a class must not select nodes by what others set on them for another reason.
func annotationErrors(at *field.Path, key string) field.ErrorList {
	if problems := apivalidation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
		return field.ErrorList{field.Invalid(at, key, fmt.Sprintf("is not the key of an annotation: write a domain of yours, a slash and a name, for example example.org/agent (%s)", problems[0]))}
	}
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return field.ErrorList{field.Invalid(at, key, "has no domain: write a domain of yours, a slash and a name, for example example.org/"+key)}
	}
	for _, r := range reserved {
		if domain == r || strings.HasSuffix(domain, "."+r) {
			return field.ErrorList{field.Forbidden(at, fmt.Sprintf("annotations of %s have a meaning of their own on nodes, and %s is one of them: choose a key with a domain of yours, for example example.org/agent", r, key))}
		}
	}
	return nil
}

func playErrors(at *field.Path, name, playbook, textName, text string) field.ErrorList {
	errs := validate.Playbook(at.Child(name), playbook)
	errs = append(errs, validate.PlaybookText(at.Child(textName), text)...)
	return append(errs, validate.EnvText(at.Child(textName), text)...)
}

func fileErrors(at *field.Path, class *edpmv1.EDPMServiceClass) field.ErrorList {
	var errs field.ErrorList
	for i, f := range class.Spec.ConfigFiles {
		at := at.Index(i)
		if f.Name == edpmv1.DefaultsFile(class.Name) || f.Name == edpmv1.OverrideFile(class.Name) {
			errs = append(errs, field.Forbidden(at.Child("name"), fmt.Sprintf("%s holds a customServiceConfig: choose another name, for example 00-%s", f.Name, f.Name[len("01-"):])))
		}
		errs = append(errs, validate.FileSource(at, f)...)
	}
	return errs
}

// whereVars are the variables that say where a host is and who logs in. Those of a class
// would be in force on all its nodes, where these say nothing of their own: the run of
// one host would configure another, and the key that the host is known by would not be asked for.
var whereVars = []string{
	"ansible_host", "ansible_ssh_host", "ansible_paramiko_host", "ansible_port", "ansible_ssh_port", "ansible_paramiko_port",
	"ansible_user", "ansible_ssh_user", "ansible_paramiko_user", "ansible_private_key_file", "ansible_ssh_private_key_file", "ansible_paramiko_private_key_file",
}

// varErrors refuses variables that say where hosts are or change how they are reached.
func varErrors(at *field.Path, class *edpmv1.EDPMServiceClass) field.ErrorList {
	errs := validate.AnsibleVars(at, class.Spec.Vars)
	vars, err := inherit.Vars(class.Spec.Vars)
	if err != nil {
		return errs // it says so
	}
	for _, name := range whereVars {
		if _, set := vars[name]; set {
			errs = append(errs, field.Forbidden(at.Key(name), "a class does not say where hosts are, nor who logs in: set "+name+" in ansibleVars of the node or its role"))
		}
	}
	for name, instead := range map[string]string{nameVar: "it is the name of the class", imageVar: "set spec.image instead"} {
		if _, set := vars[name]; set {
			errs = append(errs, field.Forbidden(at.Key(name), "the class sets this variable: "+instead))
		}
	}
	return errs
}

// NameErrors returns what is wrong with the name of a service.
func NameErrors(service *edpmv1.EDPMService) field.ErrorList {
	want := hosted.ObjectName(service.Spec.ClassName, service.Spec.DataplaneNodeName)
	if service.Name == want {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), service.Name,
		fmt.Sprintf("must be %s: a node has one EDPMService of each class, named by spec.className and spec.dataplaneNodeName", want))}
}
