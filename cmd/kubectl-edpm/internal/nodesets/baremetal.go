package nodesets

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	kubejson "sigs.k8s.io/json"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// bareMetal takes the template for machines over. Nothing says of a NodeSet whether its machines
// run already, so that none is written: that is for the person who knows.
func (s *setPlan) bareMetal() {
	s.role.Spec.PreProvisioned = ptr.To(true)
	in, at := &s.set.Spec, spec.Child("preProvisioned")
	template := strings.TrimSpace(string(in.BaremetalSetTemplate))
	switch {
	case in.PreProvisioned:
		s.add(at, TakenOver, "")
		if template != "" && template != "null" {
			s.add(spec.Child("baremetalSetTemplate"), NotNeeded, "it has no effect on hosts that are provisioned")
		}
	case template == "" || template == "null":
		s.add(at, NoCounterpart, "the hosts are provisioned by defaults of openstack-operator: the role has preProvisioned: true, for hosts that run already; for others write baremetalSetTemplate")
	default:
		s.add(at, NoCounterpart, "the role has preProvisioned: true, so that no machine is written: for hosts that run already leave it, for others remove it once baremetalSetTemplate is complete")
		s.baremetalSetTemplate(spec.Child("baremetalSetTemplate"))
	}
}

func (s *setPlan) baremetalSetTemplate(at *field.Path) {
	content := map[string]json.RawMessage{}
	if err := json.Unmarshal(s.set.Spec.BaremetalSetTemplate, &content); err != nil {
		s.add(at, NoCounterpart, "is not a mapping: correct it, or write it in the new role")
		return
	}
	user := ""
	if json.Unmarshal(content["cloudUserName"], &user) == nil && user != "" && cmp.Or(s.role.Spec.NodeTemplate.AnsibleUser, user) == user {
		s.role.Spec.NodeTemplate.AnsibleUser = user
		s.add(at.Child("cloudUserName"), Renamed, "nodeTemplate.ansibleUser")
		delete(content, "cloudUserName")
	}
	template := s.admitted(at, content)
	if template == nil {
		return
	}
	s.role.Spec.BaremetalSetTemplate = template
	if template.Image == nil {
		s.add(at.Child("image"), NoCounterpart, "there is no default image: set image.url and image.checksum before a machine is provisioned")
	}
}

// admitted decodes the fields of a template that admission takes, and reports the others.
func (s *setPlan) admitted(at *field.Path, content map[string]json.RawMessage) *dataplanev1.BaremetalSetTemplate {
	for {
		text, _ := json.Marshal(content) // it comes from JSON
		template := &dataplanev1.BaremetalSetTemplate{}
		unknown, err := kubejson.UnmarshalStrict(text, template, kubejson.DisallowUnknownFields)
		if err != nil {
			s.add(at, NoCounterpart, "a field has another type here: write it in the new role")
			return nil
		}
		namespace := cmp.Or(s.set.Metadata.Namespace, template.BmhNamespace)
		errs := metal.TemplateErrors(at, namespace, template, s.role.Spec.NodeTemplate)
		if len(errs) == 0 {
			unknownFields(s.reporter, at, unknown)
			for _, err := range unknown {
				delete(content, pathOf(err))
			}
			for _, name := range slices.Sorted(maps.Keys(content)) {
				s.add(at.Child(name), TakenOver, "")
			}
			return template
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(errs[0].Field, at.String()+"."), ".")
		name, _, _ = strings.Cut(name, "[")
		s.add(field.NewPath(errs[0].Field), NoCounterpart, "%s", errs[0].Detail)
		if _, ok := content[name]; !ok {
			return nil
		}
		delete(content, name)
	}
}

// extraMounts takes over the volumes that runner Pods may have. Those of Ceph are kept in mind
// for the step that brings their files to the hosts.
func (s *setPlan) extraMounts(at *field.Path, mounts []json.RawMessage, out *dataplanev1.NodeSection) {
	for i, text := range mounts {
		mount, place := ansibleeev1.ExtraMount{}, at.Index(i)
		unknown, err := kubejson.UnmarshalStrict(text, &mount, kubejson.DisallowUnknownFields)
		switch {
		case err != nil || len(unknown) > 0:
			s.add(place, NoCounterpart, "extraMounts of a role can only be Secrets, ConfigMaps, claims, projections and empty directories, without propagation: use one of these")
		case mount.ExtraVolType == "Ceph" && len(cephSecrets(mount)) > 0:
			s.ceph = append(s.ceph, cephSecrets(mount)...)
			s.add(place, Renamed, "secrets of step configure-ceph: %s", strings.Join(cephSecrets(mount), ", "))
		case s.admits(place, validate.ExtraMounts(place, append(out.ExtraMounts[:len(out.ExtraMounts):len(out.ExtraMounts)], mount))):
			out.ExtraMounts = append(out.ExtraMounts, mount)
			s.add(place, TakenOver, "")
		}
	}
}

// cephSecrets are the Secrets of a mount.
func cephSecrets(mount ansibleeev1.ExtraMount) []string {
	var names []string
	for _, v := range mount.Volumes {
		if v.Secret != nil {
			names = append(names, v.Secret.SecretName)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				names = append(names, source.Secret.Name)
			}
		}
	}
	return names
}
