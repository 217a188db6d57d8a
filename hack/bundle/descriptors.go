package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Descriptors tell the console of OpenShift how to show a field.
// https://github.com/openshift/console/blob/main/frontend/packages/operator-lifecycle-manager/src/components/descriptors/reference/reference.md
const (
	ui   = "urn:alm:descriptor:com.tectonic.ui:"
	kube = "urn:alm:descriptor:io.kubernetes:"
)

// ownedKinds describes the kinds of the bundle.
func (in *input) ownedKinds() []v1alpha1.CRDDescription {
	var kinds []v1alpha1.CRDDescription
	for _, d := range in.owned {
		kinds = append(kinds, describe(d))
	}
	return kinds
}

// describe returns what a person reads of a kind, in the version that is stored.
func describe(d definition) v1alpha1.CRDDescription {
	version := d.stored()
	root := *version.Schema.OpenAPIV3Schema
	description := v1alpha1.CRDDescription{
		Name: d.Name, Version: version.Name, Kind: d.Spec.Names.Kind, DisplayName: words(d.Spec.Names.Kind), Description: oneLine(root.Description),
	}
	spec, status := root.Properties["spec"], root.Properties["status"]
	for _, name := range slices.Sorted(maps.Keys(spec.Properties)) {
		field := spec.Properties[name]
		description.SpecDescriptors = append(description.SpecDescriptors, v1alpha1.SpecDescriptor{
			Path: name, DisplayName: words(name), Description: oneLine(field.Description), XDescriptors: specControls(name, field),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(status.Properties)) {
		field := status.Properties[name]
		description.StatusDescriptors = append(description.StatusDescriptors, v1alpha1.StatusDescriptor{
			Path: name, DisplayName: words(name), Description: oneLine(field.Description), XDescriptors: statusControls(name, field),
		})
	}
	return description
}

func (d definition) stored() apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	return d.Spec.Versions[i]
}

// specControls returns the controls to edit a field with; none leaves it to the
// YAML view.
func specControls(name string, field apiextensionsv1.JSONSchemaProps) []string {
	switch field.Type {
	case "boolean":
		return []string{ui + "booleanSwitch"}
	case "integer":
		if name == "replicas" {
			return []string{ui + "podCount"}
		}
		return []string{ui + "number"}
	case "string":
		if len(field.Enum) > 0 {
			return choices(field.Enum)
		}
		return []string{reference(name, ui+"text")}
	}
	if name == "resources" {
		return []string{ui + "resourceRequirements"}
	}
	return nil
}

func choices(values []apiextensionsv1.JSON) []string {
	var controls []string
	for _, value := range values {
		controls = append(controls, ui+"select:"+strings.Trim(string(value.Raw), `"`))
	}
	return controls
}

// statusControls returns how to show a field of the status.
func statusControls(name string, field apiextensionsv1.JSONSchemaProps) []string {
	if name == "conditions" {
		return []string{"urn:alm:descriptor:io.kubernetes.conditions"}
	}
	if field.Type == "string" {
		return []string{reference(name, "urn:alm:descriptor:text")}
	}
	return nil
}

// reference returns a link to the object that a field names, else what is given.
func reference(name, otherwise string) string {
	lower := strings.ToLower(strings.TrimSuffix(name, "Name"))
	for _, kind := range []string{"Secret", "ConfigMap", "ServiceAccount", "StorageClass"} {
		if strings.HasSuffix(lower, strings.ToLower(kind)) {
			return kube + kind
		}
	}
	return otherwise
}

// border is where a word of a name in camel case begins.
var border = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// spelling of words that camel case does not tell: names and initialisms.
var spelling = strings.NewReplacer(" Open Stack ", " OpenStack ", " AP Is ", " APIs ", " Api ", " API ", " Apis ", " APIs ", " Ssh ", " SSH ", " Uid ", " UID ")

// words returns a name in camel case as words.
func words(name string) string {
	name = border.ReplaceAllString(name, "$1$3 $2$4")
	return strings.TrimSpace(spelling.Replace(" " + strings.ToUpper(name[:1]) + name[1:] + " "))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
