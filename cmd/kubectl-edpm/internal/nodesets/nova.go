package nodesets

import (
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

const (
	// configSuffix ends the name of the Secret with the generated configuration of a cell, here
	// and there.
	configSuffix = "-compute-config"
	// defaultCell is that of the service nova of openstack-operator.
	defaultCell = "nova-cell1"
	// migrationSecret has the key by which hosts of edpm-ansible reach each other.
	migrationSecret = "nova-migration-ssh-key"
	// extraConfig is the ConfigMap that the service nova of openstack-operator reads if it is there.
	extraConfig = "nova-extra-config"
	// read is which files nova-compute of edpm-ansible reads, and generated the first of them.
	read, generated = "*nova*.conf", "01-nova.conf"
	// hostVariable is the variable with the name of a host in nova.
	hostVariable = "edpm_nova_host"
)

// isCompute reports whether a service of the NodeSet is nova.
func (s *setPlan) isCompute() bool {
	names := s.set.Spec.Services
	if names == nil {
		names = serviceTable().Defaults
	}
	return slices.ContainsFunc(names, func(name string) bool {
		object := (*service)(nil)
		if given, ok := find(s.in.services, ServiceKind, s.set.Metadata.Namespace, name); ok {
			object = &given.object
		}
		rule, _ := knownService(name, object)
		return rule.Nova
	})
}

// computeConfig is what the computes of a NodeSet have in common.
type computeConfig struct {
	found   bool
	cell    string
	text    string
	secrets []string
}

// configFile is a text that nova-compute reads, and where it comes from.
type configFile struct {
	name, text string
	reporter
	at *field.Path
}

// nova gives the role the annotation of its cell, and keeps the configuration of its computes.
func (s *setPlan) nova(at *field.Path, name string, object *service) {
	if s.compute.found {
		s.add(at, NoCounterpart, "the list has another service for nova, and a node is a compute of one cell: keep one of both")
		return
	}
	s.compute.found = true
	r, sources := s.reporter, []dataSource{{ConfigMapRef: &sourceRef{Name: extraConfig, Optional: true}}}
	place := func(int) *field.Path { return at }
	if object == nil {
		s.compute.cell = defaultCell
	} else {
		given, _ := find(s.in.services, ServiceKind, s.set.Metadata.Namespace, name)
		r = s.planner.reporter(given.source, ServiceKind, name)
		sources, place = dataSourcesOf(&object.Spec)
	}
	s.novaSources(r, sources, place)
	if s.compute.cell == "" {
		s.add(at, NoCounterpart, "no dataSource is the Secret <cell>%s: annotate the role with %s", configSuffix, novav1.CellAnnotation)
		return
	}
	s.annotate(novav1.CellAnnotation, s.compute.cell)
	s.add(at, Renamed, "annotation %s: %s of the role; a NovaCell of that name has to exist", novav1.CellAnnotation, s.compute.cell)
}

// dataSourcesOf are the sources of a service in one list, with its fields of earlier versions.
func dataSourcesOf(sp *serviceSpec) ([]dataSource, func(int) *field.Path) {
	sources := slices.Clone(sp.DataSources)
	var places []*field.Path
	for i := range sources {
		places = append(places, spec.Child("dataSources").Index(i))
	}
	for i, name := range sp.Secrets {
		sources, places = append(sources, dataSource{SecretRef: &sourceRef{Name: name}}), append(places, spec.Child("secrets").Index(i))
	}
	for i, name := range sp.ConfigMaps {
		sources, places = append(sources, dataSource{ConfigMapRef: &sourceRef{Name: name}}), append(places, spec.Child("configMaps").Index(i))
	}
	return sources, func(i int) *field.Path { return places[i] }
}

// novaSources reads the sources of the service nova.
func (s *setPlan) novaSources(r reporter, sources []dataSource, at func(int) *field.Path) {
	files := map[string]configFile{}
	for i, source := range sources {
		if source.SecretRef != nil {
			s.novaSecret(r, at(i), source.SecretRef)
		}
		if source.ConfigMapRef != nil {
			s.novaConfigMap(r, at(i), source.ConfigMapRef, files)
		}
	}
	var parsed []*oslo.Config
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if config := files[name].admitted(); config != nil {
			parsed = append(parsed, config)
		}
	}
	if len(parsed) > 0 {
		s.compute.text = oslo.Merge(parsed...).Text()
	}
}

// novaSecret takes the name of a Secret over: that of the cell, or one with configuration.
func (s *setPlan) novaSecret(r reporter, at *field.Path, ref *sourceRef) {
	cell, isCell := strings.CutSuffix(ref.Name, configSuffix)
	switch {
	case ref.Name == migrationSecret:
		r.add(at, NotNeeded, "guests are moved over TLS, with certificates that the cell makes")
	case isCell && s.compute.cell != "" && s.compute.cell != cell:
		r.add(at, NoCounterpart, "the service is of cell %s as well, and a node is a compute of one cell: remove one of both", s.compute.cell)
	case isCell && r.admits(at, validate.RequiredName(nil, cell)):
		s.compute.cell = cell
		r.add(at, Renamed, "annotation %s: %s", novav1.CellAnnotation, cell)
	case !isCell && r.admits(at, validate.RequiredName(nil, ref.Name)):
		s.compute.secrets = append(s.compute.secrets, ref.Name)
		r.add(at, Renamed, "customServiceConfigSecrets of the computes: each value of the Secret has to be configuration of nova-compute%s", optional(ref))
	}
}

// novaConfigMap adds the files of a ConfigMap that nova-compute reads.
func (s *setPlan) novaConfigMap(r reporter, at *field.Path, ref *sourceRef, files map[string]configFile) {
	found, ok := find(s.in.configMaps, "ConfigMap", s.set.Metadata.Namespace, ref.Name)
	if !ok {
		r.missing(at, ref)
		return
	}
	r.add(at, Renamed, "customServiceConfig of the computes")
	own := s.planner.reporter(found.source, "ConfigMap", ref.Name)
	for _, name := range slices.Sorted(maps.Keys(found.object.Data)) {
		place := field.NewPath("data").Key(name)
		if isProvider, _ := path.Match("provider*.yaml", name); isProvider {
			own.add(place, NoCounterpart, "it is not taken over: name ConfigMap %s and this key in configFiles of the computes, or of computeTemplates of their cell", ref.Name)
			continue
		}
		if isRead, _ := path.Match(read, name); !isRead {
			own.add(place, NoCounterpart, "nova-compute of edpm-ansible reads %s and provider*.yaml: other files need an OpenStackDataPlaneService of your own", read)
			continue
		}
		if other, ok := files[name]; ok {
			other.add(other.at, NotNeeded, "ConfigMap %s has a file of this name, too, which comes later", ref.Name)
		}
		files[name] = configFile{name, found.object.Data[name], own, place}
	}
}

// admitted is a file without what would make another compute of the compute; nil if it is no
// configuration.
func (f configFile) admitted() *oslo.Config {
	config, err := oslo.ParseSecret(f.text)
	if err != nil {
		f.add(f.at, NoCounterpart, "it is left out, as nova-compute cannot read it: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	}
	drop := map[int]bool{}
	for _, found := range identity.Find(identity.HostCompute, config) {
		f.add(f.at, NoCounterpart, "%s", found.Message)
		for i := range 1 + strings.Count(found.Value, "\n") {
			drop[found.Line+i] = true
		}
	}
	for _, warning := range oslo.Owned(config) {
		if !drop[warning.Line] {
			f.add(f.at, TakenOver, "%s; passwords belong into a Secret of customServiceConfigSecrets", warning)
		}
	}
	text := "customServiceConfig"
	if f.name < generated {
		text += ", which is read after the generated configuration and not before"
	}
	f.add(f.at, Renamed, "%s", text)
	if config, err = oslo.Parse(without(f.text, drop)); err != nil {
		return nil
	}
	return config
}

// without is a text without some of its lines.
func without(text string, drop map[int]bool) string {
	var kept []string
	for i, line := range strings.SplitAfter(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n") {
		if !drop[i+1] {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// novaHost gives a compute the name that it has in nova, where that is known: edpm-ansible uses
// the full name of the host.
func (s *setPlan) novaHost(at *field.Path, hostName string, out *dataplanev1.OpenStackDataPlaneNode) {
	if !s.isCompute() {
		return
	}
	full := s.status.AllHostnames[hostName][managementNetwork]
	if strings.Contains(hostName, ".") {
		full = hostName
	}
	if full == "" {
		s.add(at.Child("hostName"), NoCounterpart, "nova knows the host as %s.<DNS domain of network ctlplane>: set %s in ansibleVars to that, if it is to stay the same compute", hostName, hostVariable)
		return
	}
	vars, err := inherit.Vars(out.Spec.Node.AnsibleVars)
	if _, given := vars[hostVariable]; err != nil || given || !s.admits(at.Child("hostName"), validate.Hostname(nil, full)) {
		return
	}
	vars[hostVariable] = full
	out.Spec.Node.AnsibleVars = asJSON(vars)
	s.add(at.Child("hostName"), Renamed, "%s: %s, the name of the host in nova", hostVariable, full)
}

// writeCompute adds the compute of a node that has a configuration of its own; others are
// created by the operators.
func (s *setPlan) writeCompute(n plannedNode) error {
	if s.compute.cell == "" || s.compute.text == "" && len(s.compute.secrets) == 0 {
		return nil
	}
	compute := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: n.node.Namespace, Name: n.node.Name}}
	compute.Spec.DataplaneNodeName, compute.Spec.CellName = n.node.Name, s.compute.cell
	compute.Spec.CustomServiceConfig, compute.Spec.CustomServiceConfigSecrets = s.compute.text, s.compute.secrets
	return s.put(s.reporter, n.at, novav1.GroupVersion.WithKind("NovaExternalCompute"), compute)
}
