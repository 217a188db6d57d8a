package nodesets

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

const (
	// upstreamCollection is the collection of edpm-ansible.
	upstreamCollection = "osp.edpm."
	// ovnSecret is the name of the OVN configuration that roles refer to.
	ovnSecret = "ovn"
	// ovsStep is the step that configures Open vSwitch.
	ovsStep = "configure-ovs"
	// caSecret has the certificates of authorities of an OpenStackControlPlane.
	caSecret = "combined-ca-bundle"
)

// knownService returns the rule of a service of openstack-operator. One with a play of its own
// is not known, whatever its name is.
func knownService(name string, s *service) (serviceRule, bool) {
	kind := name
	if s != nil {
		playbook, isUpstream := strings.CutPrefix(s.Spec.Playbook, upstreamCollection)
		if !isUpstream {
			return serviceRule{}, false
		}
		kind = cmp.Or(s.Spec.EDPMServiceType, strings.ReplaceAll(playbook, "_", "-"))
	}
	rule, ok := serviceTable().Services[kind]
	return rule, ok
}

// describe says what becomes of a service.
func describe(rule serviceRule) string {
	switch {
	case rule.OVN:
		return "annotation " + neutronv1.OVNAnnotation + " of the role"
	case rule.Nova:
		return "annotation " + novav1.CellAnnotation + " of the role"
	case rule.Step != "":
		return "step " + rule.Step
	}
	return cmp.Or(rule.NotNeeded, rule.NoCounterpart)
}

// services makes steps and annotations of the list of a NodeSet.
func (s *setPlan) services() error {
	names, at := s.set.Spec.Services, spec.Child("services")
	if names == nil {
		names = serviceTable().Defaults
		s.add(at, TakenOver, "the list of openstack-operator's defaults")
	}
	s.role.Spec.Services = []string{}
	for i, name := range names {
		if err := s.service(at.Index(i), name); err != nil {
			return err
		}
	}
	if err := s.stepsOfVariables(); err != nil {
		return err
	}
	if len(s.role.Spec.Services) == 0 {
		s.role.Spec.Services = nil
		s.add(at, NoCounterpart, "no step is left, and a role without steps has the default ones: %s", strings.Join(dataplanev1.DefaultServices, ", "))
	}
	return nil
}

// service takes one service of the list over.
func (s *setPlan) service(at *field.Path, name string) error {
	given, ok := find(s.in.services, ServiceKind, s.set.Metadata.Namespace, name)
	object := (*service)(nil)
	if ok {
		object = &given.object
		s.used[key{ServiceKind, object.Metadata.Namespace, name}] = true
	}
	rule, known := knownService(name, object)
	switch {
	case known:
		if ok {
			s.reportKnown(&given)
		}
		return s.known(at, name, rule, object)
	case !ok:
		s.add(at, NoCounterpart, "%s: no OpenStackDataPlaneService of that name is among the inputs, and openstack-operator has none: give it, too", name)
		return nil
	}
	if len(name) > validation.LabelValueMaxLength {
		s.add(at, NoCounterpart, "%s: names of steps have at most %d characters: give it another name", name, validation.LabelValueMaxLength)
		return nil
	}
	taken, err := s.customService(&given)
	if err != nil {
		return err
	}
	if !taken {
		s.add(at, NoCounterpart, "%s: see that OpenStackDataPlaneService", name)
		return nil
	}
	text := "step " + name
	if s.compute.found {
		text += ", which is run in phase 0, before nova-compute: if it has to come after it, write an EDPMServiceClass with after: [nova], and a play that removes it"
	}
	s.addStep(at, name, TakenOver, text)
	return nil
}

// addStep adds a step to those of the role.
func (s *setPlan) addStep(at *field.Path, name string, verdict Verdict, text string) {
	if slices.Contains(s.role.Spec.Services, name) {
		s.add(at, NotNeeded, "step %s is in the list already", name)
		return
	}
	s.role.Spec.Services = append(s.role.Spec.Services, name)
	s.add(at, verdict, "%s", text)
}

// stepsOfVariables adds the steps that read variables of the role or its nodes, and that roles
// do not have by default.
func (s *setPlan) stepsOfVariables() error {
	for _, step := range slices.Sorted(maps.Keys(s.steps)) {
		if slices.Contains(s.role.Spec.Services, step) {
			continue
		}
		s.role.Spec.Services = append(s.role.Spec.Services, step)
		object := &dataplanev1.OpenStackDataPlaneService{ObjectMeta: metav1.ObjectMeta{Namespace: s.set.Metadata.Namespace, Name: step}}
		object.Spec.Playbook = serviceTable().Steps[step]
		if err := s.put(s.reporter, spec.Child("services"), dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneService"), object); err != nil {
			return err
		}
	}
	return nil
}

// known takes over a service that openstack-operator has.
func (s *setPlan) known(at *field.Path, name string, rule serviceRule, object *service) error {
	switch {
	case rule.Nova:
		s.nova(at, name, object)
	case rule.OVN:
		s.ovn(at)
	case rule.Playbook != "":
		return s.optionalStep(at, rule)
	case rule.Step != "":
		s.addStep(at, rule.Step, TakenOver, "step "+rule.Step)
	case rule.NotNeeded != "":
		s.add(at, NotNeeded, "%s: %s", name, rule.NotNeeded)
	default:
		s.add(at, NoCounterpart, "%s: %s", name, rule.NoCounterpart)
	}
	return nil
}

// optionalStep adds a step that roles do not have by default.
func (s *setPlan) optionalStep(at *field.Path, rule serviceRule) error {
	step := &dataplanev1.OpenStackDataPlaneService{ObjectMeta: metav1.ObjectMeta{Namespace: s.set.Metadata.Namespace, Name: rule.Step}}
	step.Spec.Playbook = rule.Playbook
	text := "step " + rule.Step
	switch {
	case rule.Needs == "certificates" && s.set.Spec.TLSEnabled != nil && !*s.set.Spec.TLSEnabled:
		s.add(at, NotNeeded, "install-certs: tlsEnabled is false")
		return nil
	case rule.Needs == "certificates":
		step.Spec.Secrets = []string{caSecret}
		text += ", by which hosts trust what is in Secret " + caSecret + "; services have their certificates from elsewhere"
	case rule.Needs == "ceph" && len(s.ceph) == 0:
		s.add(at, NoCounterpart, "ceph-client: extraMounts have no Secret of extraVolType Ceph: write step %s with playbook %s and the Secrets with ceph.conf and keyrings", rule.Step, rule.Playbook)
		return nil
	case rule.Needs == "ceph":
		step.Spec.Secrets = s.ceph
		text += ": set edpm_ceph_user in ansibleVars to the user whose key libvirt needs"
	}
	s.addStep(at, rule.Step, Renamed, text)
	return s.put(s.reporter, at, dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneService"), step)
}

// ovn gives the role the annotation, and the step that ovn-controller needs.
func (s *setPlan) ovn(at *field.Path) {
	if s.role.Annotations[neutronv1.OVNAnnotation] != "" {
		s.add(at, Renamed, "annotation %s of the role", neutronv1.OVNAnnotation)
		return
	}
	s.annotate(neutronv1.OVNAnnotation, ovnSecret)
	s.steps[ovsStep] = true
	s.add(at, Renamed, "annotation %s of the role, and step %s; the annotation names Secret %s: create it with southbound, and for the metadata agent metadata-shared-secret and nova-metadata-host", neutronv1.OVNAnnotation, ovsStep, ovnSecret)
}

func (s *setPlan) annotate(name, value string) {
	if s.role.Annotations == nil {
		s.role.Annotations = map[string]string{}
	}
	s.role.Annotations[name] = value
}

// reportKnown reports the fields of a service of openstack-operator whose counterpart is known.
func (s *setPlan) reportKnown(in *input[service]) {
	r, sp := s.planner.reporter(in.source, ServiceKind, in.object.Metadata.Name), in.object.Spec
	rule, _ := knownService(in.object.Metadata.Name, &in.object)
	r.add(spec.Child("playbook"), Renamed, "%s", describe(rule))
	for i := range sp.DataSources {
		if !rule.Nova { // which reports its own
			r.add(spec.Child("dataSources").Index(i), NotNeeded, "%s", describe(rule))
		}
	}
	r.common(&sp)
	if sp.OpenStackAnsibleEERunnerImage != "" {
		r.add(spec.Child("openStackAnsibleEERunnerImage"), NoCounterpart, "the image has other roles than those here: leave it out, or build one with the collection edpm.operators")
	}
	if len(sp.TLSCerts) > 0 {
		r.add(spec.Child("tlsCerts"), NotNeeded, "live migration has certificates of the cell, OVN those that its configuration names")
	}
	if sp.CACerts != "" {
		r.add(spec.Child("caCerts"), NotNeeded, "hosts trust authorities by step trust-certificates")
	}
}

// common are the fields of services that no service needs.
func (r reporter) common(sp *serviceSpec) {
	if len(sp.ContainerImageFields) > 0 {
		r.add(spec.Child("containerImageFields"), NotNeeded, "images are in the objects of services")
	}
	if sp.EDPMServiceType != "" {
		r.add(spec.Child("edpmServiceType"), NotNeeded, "the name of a step is its type")
	}
	if sp.AddCertMounts {
		r.add(spec.Child("addCertMounts"), NotNeeded, "certificates of hosts are not in Secrets")
	}
	if sp.CertsFrom != "" {
		r.add(spec.Child("certsFrom"), NotNeeded, "certificates of hosts are not in Secrets")
	}
	if sp.DeployOnAllNodeSets {
		r.add(spec.Child("deployOnAllNodeSets"), NoCounterpart, "a step is run on the hosts of its role only: add it to each role that needs it")
	}
}

// customService takes over a service with a play of its own; it reports whether it can.
func (p *planner) customService(in *input[service]) (bool, error) {
	k := key{ServiceKind, in.object.Metadata.Namespace, in.object.Metadata.Name}
	if _, ok := p.objects[k]; ok && p.used[k] {
		return true, nil
	}
	p.used[k] = true
	r, sp := p.reporter(in.source, ServiceKind, k.name), &in.object.Spec
	out := &dataplanev1.OpenStackDataPlaneService{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.name}}
	hasPlay := r.play(sp, &out.Spec)
	r.common(sp)
	if out.Spec.Label = sp.Label; sp.Label != "" {
		r.add(spec.Child("label"), TakenOver, "")
	}
	r.files(sp, &out.Spec)
	if image := sp.OpenStackAnsibleEERunnerImage; image != "" {
		out.Spec.OpenStackAnsibleEERunnerImage = image
		r.add(spec.Child("openStackAnsibleEERunnerImage"), TakenOver, "the image has to have the collection edpm.operators of this version, too")
	}
	if len(sp.TLSCerts) > 0 {
		r.add(spec.Child("tlsCerts"), NoCounterpart, "no certificates are made for services of your own: make them with cert-manager, and name their Secrets in secrets")
	}
	if sp.CACerts != "" {
		r.add(spec.Child("caCerts"), NotNeeded, "hosts trust authorities by step trust-certificates; a play that needs the file has it with secrets: [%s]", sp.CACerts)
	}
	if !hasPlay {
		return false, nil
	}
	return true, p.put(r, field.NewPath("metadata", "name"), dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneService"), out)
}

// play takes over the play of a service; it reports whether there is one that can be run.
func (r reporter) play(sp *serviceSpec, out *dataplanev1.OpenStackDataPlaneServiceSpec) bool {
	at, text := spec.Child("playbookContents"), sp.PlaybookContents
	if sp.Play != "" {
		at, text = spec.Child("play"), sp.Play
	}
	switch {
	case sp.Role != "":
		r.add(spec.Child("role"), NoCounterpart, "write a play with the role")
		return false
	case text != "" && sp.Playbook != "":
		r.add(spec.Child("playbook"), NoCounterpart, "the service has the text of a playbook, too: remove one of both")
		return false
	case text != "":
		out.Play = text
		return r.admits(at, append(validate.PlaybookText(at, text), validate.EnvText(at, text)...)) && r.playText(at, text)
	case strings.HasPrefix(sp.Playbook, upstreamCollection):
		r.add(spec.Child("playbook"), NoCounterpart, "no step here does what it does: write a play, or use openStackAnsibleEERunnerImage with both collections and the playbook under /runner/project")
		return false
	case sp.Playbook == "":
		r.add(spec, NoCounterpart, "it has neither playbook nor playbookContents")
		return false
	}
	out.Playbook = sp.Playbook
	if !r.admits(spec.Child("playbook"), validate.Playbook(nil, sp.Playbook)) {
		return false
	}
	r.add(spec.Child("playbook"), TakenOver, "it has to be in the image of the runner")
	return true
}

// notHere is what plays use that only openstack-operator gives them.
var notHere = regexp.MustCompile(`/var/lib/openstack/(?:configs|certs|cacerts)|osp\.edpm\b|edpm_override_hosts|edpm_services\b`)

// playText looks for what a play would miss; it reports whether the play can be run.
func (r reporter) playText(at *field.Path, text string) bool {
	verdict, remark := Renamed, "play"
	var plays []map[string]any
	if yaml.Unmarshal([]byte(text), &plays) == nil {
		for _, play := range plays {
			if hosts, _ := play["hosts"].(string); hosts != "" && hosts != "all" && !strings.Contains(hosts, "{{") {
				verdict, remark = NoCounterpart, "a play is for "+hosts+": a host has done a step when it reaches the end of the last play; write hosts: all, and delegate_to where a task is for another machine"
			}
		}
	}
	r.add(at, verdict, "%s", remark)
	if found := notHere.FindAllString(text, -1); len(found) > 0 {
		slices.Sort(found)
		r.add(at, NoCounterpart, "it uses %s: files of configMaps and secrets are in the variable edpm_config_files, and roles are those of edpm.operators", strings.Join(slices.Compact(found), ", "))
	}
	return verdict != NoCounterpart
}

// files are the ConfigMaps and Secrets of a service; only their names are taken over.
func (r reporter) files(sp *serviceSpec, out *dataplanev1.OpenStackDataPlaneServiceSpec) {
	take := func(at *field.Path, names *[]string, name, text string) {
		if r.admits(at, validate.RequiredName(nil, name)) {
			*names = append(*names, name)
			r.add(at, Renamed, "%s", text)
		}
	}
	for i, source := range sp.DataSources {
		at := spec.Child("dataSources").Index(i)
		if source.ConfigMapRef != nil {
			take(at, &out.ConfigMaps, source.ConfigMapRef.Name, "configMaps"+optional(source.ConfigMapRef))
		}
		if source.SecretRef != nil {
			take(at, &out.Secrets, source.SecretRef.Name, "secrets"+optional(source.SecretRef))
		}
	}
	for i, name := range sp.ConfigMaps {
		take(spec.Child("configMaps").Index(i), &out.ConfigMaps, name, "configMaps")
	}
	for i, name := range sp.Secrets {
		take(spec.Child("secrets").Index(i), &out.Secrets, name, "secrets")
	}
}

func optional(ref *sourceRef) string {
	if ref.Optional {
		return ", where it must exist"
	}
	return ""
}
