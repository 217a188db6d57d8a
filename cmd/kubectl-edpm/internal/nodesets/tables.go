package nodesets

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed variables.yaml
var variablesText []byte

//go:embed edpm-ansible.yaml
var upstreamText []byte

//go:embed services.yaml
var servicesText []byte

// variableRule says what becomes of a variable; see variables.yaml.
type variableRule struct {
	Same          bool   `json:"same"`
	Becomes       string `json:"becomes"`
	Convert       string `json:"convert"`
	Step          string `json:"step"`
	Keep          bool   `json:"keep"`
	NotNeeded     string `json:"notNeeded"`
	NoCounterpart string `json:"noCounterpart"`
}

// serviceRule says what becomes of a service; see services.yaml.
type serviceRule struct {
	Step          string `json:"step"`
	Playbook      string `json:"playbook"`
	Needs         string `json:"needs"`
	OVN           bool   `json:"ovn"`
	Nova          bool   `json:"nova"`
	NotNeeded     string `json:"notNeeded"`
	NoCounterpart string `json:"noCounterpart"`
}

// servicesTable is services.yaml.
type servicesTable struct {
	Commit   string                 `json:"commit"`
	Defaults []string               `json:"defaults"`
	Services map[string]serviceRule `json:"services"`
	// Steps are playbooks of steps that roles do not have by default.
	Steps map[string]string `json:"steps"`
}

// upstreamTable is edpm-ansible.yaml.
type upstreamTable struct {
	Commit string              `json:"commit"`
	Roles  map[string][]string `json:"roles"`
}

func load[T any](name string, text []byte) func() T {
	return sync.OnceValue(func() T {
		var table T
		if err := yaml.UnmarshalStrict(text, &table); err != nil {
			panic(fmt.Errorf("parsing %s: %w", name, err)) // The files are part of the program.
		}
		return table
	})
}

var (
	variableRules = load[map[string]variableRule]("variables.yaml", variablesText)
	serviceTable  = load[servicesTable]("services.yaml", servicesText)
	upstream      = load[upstreamTable]("edpm-ansible.yaml", upstreamText)
)

// upstreamRoles are the roles of edpm-ansible, by their variables.
var upstreamRoles = sync.OnceValue(func() map[string]string {
	roles := map[string]string{}
	for role, names := range upstream().Roles {
		for _, name := range names {
			roles[name] = role
		}
	}
	return roles
})

// patterns are the names in variables.yaml that are patterns, in their order.
var patterns = sync.OnceValue(func() []string {
	var found []string
	for name := range variableRules() {
		if strings.Contains(name, "*") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
})

// ruleOf returns the rule of a variable, and whether there is one.
func ruleOf(name string) (variableRule, bool) {
	if rule, ok := variableRules()[name]; ok {
		return rule, true
	}
	for _, pattern := range patterns() {
		if ok, _ := path.Match(pattern, name); ok {
			return variableRules()[pattern], true
		}
	}
	role, known := upstreamRoles()[name]
	return variableRule{NoCounterpart: fmt.Sprintf("it is a variable of role %s of edpm-ansible that no role has here", role)}, known
}
