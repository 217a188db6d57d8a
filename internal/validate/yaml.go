package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxVars is the most bytes that the variables of a role or node can have. Both
// together fit into the inventory of a node, a ConfigMap of at most 1 MiB.
const maxVars = 256 << 10

// masked stands for text that may hold a secret.
const masked = "***"

// quoted is what YAML errors repeat of the text, for example the name of an
// anchor, which is the rest of a password that begins with "*".
var quoted = regexp.MustCompile("'[^']*'|`[^`]*`")

// yamlStart is how an inventory begins that is meant as YAML: a document
// marker, a flow mapping, or a key. An INI inventory begins with a section or
// a host, and a host may be followed by ":" and its port.
var yamlStart = regexp.MustCompile(`^(---|\{|[^\s:=\[]+:(\s|$))`)

// AnsibleVars checks variables given as a mapping, or as the text of a YAML
// mapping (both forms are in use: dataplane-operator had text until July 2023).
// Those with the prefix of the collection must be variables of its roles.
func AnsibleVars(path *field.Path, vars *apiextensionsv1.JSON) field.ErrorList {
	if vars == nil {
		return nil
	}
	if n := len(vars.Raw); n > maxVars {
		return field.ErrorList{field.Invalid(path, size(n), fmt.Sprintf(
			"is too long: write at most %s, and put large texts into a ConfigMap or Secret of an OpenStackDataPlaneService", size(maxVars)))}
	}
	var value any
	if err := json.Unmarshal(vars.Raw, &value); err != nil {
		return hidden(path, err.Error(), "write a mapping of variable names to values")
	}
	switch value := value.(type) {
	case nil:
		return nil
	case map[string]any:
		return append(HostVars(path, value), roleVars(path, value)...)
	case string:
		return variablesText(path, value)
	default:
		return hidden(path, fmt.Sprintf("is %s", kindOf(value)), "must be a mapping of variable names to values, or a string with a YAML mapping")
	}
}

// variablesText checks variables that are written as YAML. What they are comes to
// the runner, not how they were written: a tag would get lost.
func variablesText(path *field.Path, text string) field.ErrorList {
	if errs := mapping(path, text, "write one \"name: value\" per line"); len(errs) > 0 {
		return errs
	}
	vars := map[string]any{}
	root, _ := document(text) // it is a mapping
	if n := tagged(root); n != nil {
		return hidden(path, fmt.Sprintf("line %d: the tag %s would be lost", n.Line, n.Tag), "leave it out; put encrypted values into a Secret")
	}
	_ = root.Decode(&vars)
	return append(HostVars(path, vars), roleVars(path, vars)...)
}

// Inventory checks the text of an inventory that is meant as YAML. Of any other only
// the variables are looked at: the INI format of Ansible has no strict grammar.
func Inventory(path *field.Path, text string) field.ErrorList {
	if errs := reachText(path, text); len(errs) > 0 || !yamlStart.MatchString(firstLine(text)) {
		return errs
	}
	if errs := mapping(path, text, "write a YAML mapping of groups, for example \"all: {hosts: {edpm-compute-0: {ansible_host: 192.168.122.100}}}\""); len(errs) > 0 {
		return errs
	}
	root, _ := document(text) // it is a mapping
	return reachDocument(path, root)
}

// PlaybookText checks that the text of a playbook is a YAML list of plays.
func PlaybookText(path *field.Path, text string) field.ErrorList {
	if text == "" {
		return nil
	}
	const remedy = "write a YAML list of plays, each beginning with \"- hosts:\" or \"- import_playbook:\""
	root, err := document(text)
	switch {
	case err != nil:
		return hidden(path, problem(err), remedy)
	case root.Kind != yaml.SequenceNode || len(root.Content) == 0:
		return hidden(path, fmt.Sprintf("line %d: is %s, not a list of plays", max(root.Line, 1), nodeKind(root)), remedy)
	}
	var errs field.ErrorList
	for _, play := range root.Content {
		if play.Kind != yaml.MappingNode {
			errs = append(errs, hidden(path, fmt.Sprintf("line %d: is %s, not a play", play.Line, nodeKind(play)), remedy)...)
		}
	}
	return errs
}

// mapping checks that the text is a YAML mapping without repeated keys.
func mapping(path *field.Path, text, remedy string) field.ErrorList {
	root, err := document(text)
	switch {
	case err != nil:
		return hidden(path, problem(err), remedy)
	case root.Kind == 0 || root.Tag == "!!null":
		return nil
	case root.Kind != yaml.MappingNode:
		return hidden(path, fmt.Sprintf("line %d: is %s, not a mapping", root.Line, nodeKind(root)), remedy)
	}
	var values map[string]any
	if err := root.Decode(&values); err != nil {
		return hidden(path, problem(err), remedy)
	}
	return nil
}

// tagged returns the first node with a tag of Ansible's or another program's own,
// such as !vault or !!python/name. nil if there is none.
func tagged(n *yaml.Node) *yaml.Node {
	if n.Kind != 0 && !slices.Contains(coreTags, n.ShortTag()) {
		return n
	}
	for _, child := range n.Content {
		if found := tagged(child); found != nil {
			return found
		}
	}
	return nil
}

// coreTags are what a text can be made of (YAML 1.2, section 10; and what YAML 1.1
// has beyond it).
var coreTags = []string{"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!binary", "!!merge"}

// document parses a text that is one YAML document. Without any content the
// node is zero.
func document(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, fmt.Errorf("line %d: a second document begins, but only one is allowed", second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{}, nil
	}
	return doc.Content[0], nil
}

// problem returns the message of a YAML error without any of the text.
func problem(err error) string {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	message = strings.TrimPrefix(message, "unmarshal errors:\n")
	return quoted.ReplaceAllString(strings.ReplaceAll(strings.TrimSpace(message), "\n  ", "; "), masked)
}

func hidden(path *field.Path, problem, remedy string) field.ErrorList {
	return field.ErrorList{field.Invalid(path, masked, problem+": "+remedy)}
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" && line[0] != '#' && line[0] != ';' {
			return line
		}
	}
	return ""
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case 0:
		return "empty"
	default:
		return "a single value"
	}
}

func kindOf(value any) string {
	if _, ok := value.([]any); ok {
		return "a list"
	}
	return "a single value"
}
