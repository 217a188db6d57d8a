package nodesets

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// templateVariable is the variable of edpm-ansible that has the network template.
const templateVariable = "edpm_network_config_template"

// variable is a value, and the field that it comes from.
type variable struct {
	value any
	at    *field.Path
	// from says which object has it, if it is not the NodeSet.
	from string
}

// variables are those of a template or node: from ConfigMaps in their order, then its own.
func (s *setPlan) variables(at *field.Path, opts *ansibleOpts, out *dataplanev1.NodeSection) {
	all := map[string]variable{}
	for i, source := range opts.AnsibleVarsFrom {
		s.variablesFrom(at.Child("ansibleVarsFrom").Index(i), source, all)
	}
	for name, value := range opts.AnsibleVars {
		place := at.Child("ansibleVars").Key(name)
		if other, ok := all[name]; ok {
			s.add(other.at, NotNeeded, "%s of %s: ansibleVars have another value", name, other.from)
		}
		all[name] = variable{value, place, ""}
	}
	translated := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v := all[name]; name == templateVariable {
			s.networkTemplate(v, out)
		} else {
			s.variable(name, v, translated)
		}
	}
	out.AnsibleVars = asJSON(translated)
	for name := range translated {
		s.defined[name] = true
	}
}

// asJSON returns nil for no variables.
func asJSON(vars map[string]any) *apiextensionsv1.JSON {
	if len(vars) == 0 {
		return nil
	}
	text, _ := json.Marshal(vars) // they come from JSON
	return &apiextensionsv1.JSON{Raw: text}
}

// variablesFrom adds the variables that a ConfigMap has. Those of a Secret stay there.
func (s *setPlan) variablesFrom(at *field.Path, source dataSource, all map[string]variable) {
	if ref := source.SecretRef; ref != nil {
		s.add(at, NoCounterpart,
			"Secret %s is not read: name it in secrets of the OpenStackDataPlaneService that needs it, whose play finds its keys in edpm_config_files", ref.Name)
	}
	ref := source.ConfigMapRef
	if ref == nil {
		return
	}
	found, ok := find(s.in.configMaps, "ConfigMap", s.set.Metadata.Namespace, ref.Name)
	if !ok {
		s.missing(at, ref)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(found.object.Data)) {
		text := found.object.Data[name]
		all[source.Prefix+name] = variable{parsed(text), at, "ConfigMap " + ref.Name}
	}
	if len(found.object.Data) == 0 {
		s.add(at, NotNeeded, "ConfigMap %s is empty", ref.Name)
	}
}

// missing reports a ConfigMap that is not there.
func (r reporter) missing(at *field.Path, ref *sourceRef) {
	if ref.Optional {
		r.add(at, NotNeeded, "ConfigMap %s is optional, and is not among the inputs", ref.Name)
		return
	}
	r.add(at, NoCounterpart, "ConfigMap %s is not among the inputs: give it, too", ref.Name)
}

// parsed is a value as openstack-operator reads it: JSON if it is that, and else text.
func parsed(text string) any {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return text
	}
	return value
}

// variable adds what a variable becomes.
func (s *setPlan) variable(name string, v variable, out map[string]any) {
	rule, known := ruleOf(name)
	switch {
	case !known:
		s.take(name, variableRule{Becomes: name}, v, TakenOver, "no role of edpm-ansible has it: it is for your own templates and plays", out)
	case rule.Same:
		rule.Becomes = name
		s.take(name, rule, v, TakenOver, "", out)
	case rule.Keep:
		s.take(name, variableRule{Becomes: name}, v, TakenOver, "no role reads it: it is for templates", out)
	case rule.NotNeeded != "":
		s.say(name, v, NotNeeded, rule.NotNeeded)
	case rule.NoCounterpart != "":
		s.say(name, v, NoCounterpart, rule.NoCounterpart)
	default:
		s.convert(name, rule, v, out)
	}
}

// convert writes a value as the variable takes it that the name becomes.
func (s *setPlan) convert(name string, rule variableRule, v variable, out map[string]any) {
	if to := conversions[rule.Convert]; to != nil {
		value, err := to(v.value)
		if err != nil {
			s.say(name, v, NoCounterpart, rule.Becomes+" has another form: "+err.Error())
			return
		}
		v.value = value
	}
	s.take(name, rule, v, Renamed, rule.Becomes, out)
}

// take adds a variable, if admission has nothing against it, and the step that reads it.
func (s *setPlan) take(name string, rule variableRule, v variable, verdict Verdict, text string, out map[string]any) {
	becomes := rule.Becomes
	if _, ok := out[becomes]; ok {
		s.say(name, v, NoCounterpart, becomes+" has a value already: join both")
		return
	}
	if errs := validate.AnsibleVars(nil, asJSON(map[string]any{becomes: v.value})); len(errs) > 0 {
		s.say(name, v, NoCounterpart, becomes+" "+strings.TrimPrefix(errs[0].Detail, becomes+" "))
		return
	}
	out[becomes] = v.value
	if rule.Step != "" {
		s.steps[rule.Step] = true
		text = strings.TrimPrefix(text+", for step "+rule.Step, ", ")
	}
	s.say(name, v, verdict, text)
}

// say reports what became of a variable.
func (s *setPlan) say(name string, v variable, verdict Verdict, text string) {
	if v.from != "" {
		text = strings.TrimSuffix(name+" of "+v.from+": "+text, ": ")
	}
	s.add(v.at, verdict, "%s", text)
}

// networkTemplate takes the text of a template over; files of edpm-ansible do not exist here.
func (s *setPlan) networkTemplate(v variable, out *dataplanev1.NodeSection) {
	text, ok := v.value.(string)
	switch {
	case !ok:
		s.say(templateVariable, v, NoCounterpart, "is not text: write the template in networkConfig.template")
	case text != "" && !strings.Contains(text, "\n"):
		s.say(templateVariable, v, NoCounterpart, "is the name of a file of edpm-ansible: write its text in networkConfig.template")
	case text == "":
		s.say(templateVariable, v, NotNeeded, "is empty")
	default:
		out.NetworkConfig = &dataplanev1.NetworkConfigSection{Template: text}
		s.say(templateVariable, v, Renamed, "networkConfig.template")
	}
}

var (
	// jinja are the parts of a template that Ansible evaluates.
	jinja = regexp.MustCompile(`(?s)\{\{.*?\}\}|\{%.*?%\}`)
	// fromIPAM are names of variables that openstack-operator makes of NetConfigs.
	fromIPAM = regexp.MustCompile(`\b(?:dns_search_domains|nodeset_networks|role_networks|networks_lower|[a-z0-9]+_(?:mtu|cidr|vlan_id|gateway_ip|host_routes|dns_nameservers|ip))\b`)
	// suffixes are the ends of names that a template puts together.
	suffixes = regexp.MustCompile(`~\s*['"](_[a-z_]+)['"]`)
	// assigned are the variables of a template itself.
	assigned = regexp.MustCompile(`\{%-?\s*set\s+(\w+)`)
)

// needsOfTemplate reports variables of the template of the role that nothing gives here.
func (s *setPlan) needsOfTemplate() {
	config := s.role.Spec.NodeTemplate.NetworkConfig
	if config == nil {
		return
	}
	needed := map[string]bool{}
	for _, part := range jinja.FindAllString(config.Template, -1) {
		for _, name := range fromIPAM.FindAllString(part, -1) {
			needed[name] = true
		}
		for _, suffix := range suffixes.FindAllStringSubmatch(part, -1) {
			s.eachNetwork(func(network string) {
				if network != managementNetwork {
					needed[network+suffix[1]] = true
				}
			})
		}
	}
	for _, name := range assigned.FindAllStringSubmatch(config.Template, -1) {
		delete(needed, name[1])
	}
	s.eachNetwork(func(network string) { delete(needed, network+"_ip") })
	maps.DeleteFunc(needed, func(name string, _ bool) bool { return s.defined[name] })
	if len(needed) > 0 {
		s.add(spec.Child("nodeTemplate", "ansible", "ansibleVars").Key(templateVariable), NoCounterpart,
			"the template uses variables that openstack-operator makes of NetConfigs: set them in ansibleVars of the role: %s", strings.Join(slices.Sorted(maps.Keys(needed)), ", "))
	}
}

// eachNetwork calls a function with the name of each network of the nodes, in small letters.
func (s *setPlan) eachNetwork(do func(string)) {
	lists := [][]network{s.set.Spec.NodeTemplate.Networks}
	for _, n := range s.set.Spec.Nodes {
		lists = append(lists, n.Networks)
	}
	for _, list := range lists {
		for _, n := range list {
			do(strings.ToLower(n.Name))
		}
	}
}
