package furtherfiles

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// wrong is what nova does not accept in a definition of providers: where, and why.
type wrong struct {
	at  []any
	why string
}

// A step of wrong.at is the index of an item, or a key: one of nova's, or one that people chose,
// which can be in a Secret.
type chosen string

// check returns what is wrong with a value of YAML, nil if nothing is.
type check func(value any) *wrong

// definition is what nova-compute takes for a definition of providers: SCHEMA_V1 and the rules
// after it in nova/compute/provider_config.py. nova-compute does not start with anything else.
var definition = mapping(map[string]check{
	"meta":          mapping(map[string]check{"schema_version": text(`^1\.(0|[1-9][0-9]*)$`, "'1.0', in quotes")}, anything, "schema_version"),
	"providers":     list(resourceProvider),
	"__source_file": refused("is reserved for nova: remove it"),
}, anything, "meta")

var (
	resourceProvider = mapping(map[string]check{
		"identification": identification,
		"inventories":    mapping(map[string]check{"additional": list(classes)}, anything),
		"traits":         mapping(map[string]check{"additional": list(text(custom, "CUSTOM_ with capital letters, digits and _"))}, anything),
	}, anything, "identification")
	identity = mapping(map[string]check{
		"uuid": text(`^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|\$COMPUTE_NODE)$`, "a UUID or $COMPUTE_NODE"),
		"name": text(`(?s)^.{1,200}$`, "a text of 1 to 200 characters, in quotes"),
	}, refused("has a key that is neither uuid nor name: remove it"))
	inventory = mapping(map[string]check{
		"total": integer, "reserved": integer, "min_unit": integer, "max_unit": integer, "step_size": integer, "allocation_ratio": number,
	}, refused("has a key that is none of total, reserved, min_unit, max_unit, step_size and allocation_ratio: remove it"), "total")
)

// custom is a resource class or a trait that is not one of nova's own.
const custom = `^CUSTOM_[A-Z0-9_]{1,248}$`

func identification(value any) *wrong {
	if w := identity(value); w != nil {
		return w
	}
	if len(value.(map[string]any)) != 1 {
		return &wrong{why: "must have one of uuid and name"}
	}
	return nil
}

// classes are resource classes, each with its inventory.
func classes(value any) *wrong {
	name := text(custom, "CUSTOM_ with capital letters, digits and _")
	names, _ := value.(map[string]any)
	for _, class := range slices.Sorted(maps.Keys(names)) {
		if w := name(class); w != nil {
			return w.in(chosen(class))
		}
	}
	return mapping(nil, inventory)(value)
}

// mapping has the keys that are required; others than the known ones are checked by others.
func mapping(known map[string]check, others check, required ...string) check {
	return func(value any) *wrong {
		m, ok := value.(map[string]any)
		if !ok {
			return &wrong{why: "must be a mapping"}
		}
		for _, key := range required {
			if _, found := m[key]; !found {
				return &wrong{why: "must have " + key}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			check, step := known[key], any(key)
			if check == nil {
				check, step = others, chosen(key)
			}
			if w := check(m[key]); w != nil {
				return w.in(step)
			}
		}
		return nil
	}
}

func list(item check) check {
	return func(value any) *wrong {
		items, ok := value.([]any)
		if !ok {
			return &wrong{why: "must be a list"}
		}
		for i := range items {
			if w := item(items[i]); w != nil {
				return w.in(i)
			}
		}
		return nil
	}
}

func text(pattern, what string) check {
	matches := regexp.MustCompile(pattern).MatchString
	return func(value any) *wrong {
		if s, ok := value.(string); !ok || !matches(s) {
			return &wrong{why: "must be " + what}
		}
		return nil
	}
}

func number(value any) *wrong {
	switch value.(type) {
	case int, int64, uint64, float64:
		return nil
	}
	return &wrong{why: "must be a number"}
}

// integer : for JSON Schema 4.0 is one, too.
func integer(value any) *wrong {
	if f, isFloat := value.(float64); number(value) != nil || isFloat && f != math.Trunc(f) {
		return &wrong{why: "must be an integer"}
	}
	return nil
}

func anything(any) *wrong { return nil }

func refused(why string) check { return func(any) *wrong { return &wrong{why: why} } }

func (w *wrong) in(step any) *wrong { return &wrong{append([]any{step}, w.at...), w.why} }

// field is the path of the value, without keys that people chose.
func (w *wrong) field() string {
	path := ""
	for _, step := range w.at {
		switch step := step.(type) {
		case int:
			path += fmt.Sprintf("[%d]", step)
		case string:
			path += "." + step
		}
	}
	if path == "" {
		return "the file"
	}
	return strings.TrimPrefix(path, ".")
}

// providersProblem returns why nova-compute does not start with a definition of providers, which is
// a mapping; empty if it does. No text of it is in that.
func providersProblem(content string) string {
	var document yaml.Node
	var values any
	if yaml.Unmarshal([]byte(content), &document) != nil || document.Decode(&values) != nil || values == nil {
		return "line 1: is not valid YAML"
	}
	w := definition(values)
	if w == nil {
		w = repeated(values)
	}
	if w == nil {
		return ""
	}
	return fmt.Sprintf("line %d: %s %s", lineOf(document.Content[0], w.at), w.field(), w.why)
}

// repeated finds a provider that is defined twice. Those without anything to add are ignored.
func repeated(values any) *wrong {
	providers, _ := values.(map[string]any)["providers"].([]any)
	first := map[string]int{}
	for i := range providers {
		p := providers[i].(map[string]any)
		if additions(p, "inventories")+additions(p, "traits") == 0 {
			continue
		}
		for _, id := range p["identification"].(map[string]any) {
			if at, found := first[id.(string)]; found {
				return &wrong{[]any{"providers", i, "identification"}, fmt.Sprintf("is that of providers[%d], too", at)}
			}
			first[id.(string)] = i
		}
	}
	return nil
}

func additions(provider map[string]any, of string) int {
	group, _ := provider[of].(map[string]any)
	items, _ := group["additional"].([]any)
	return len(items)
}

// lineOf is the line of a value: that of its key, if it has one. One that is merged has the line of
// the mapping that it is merged into.
func lineOf(n *yaml.Node, at []any) int {
	found := n.Line
	for _, step := range at {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		key, value := child(n, step)
		if value == nil {
			return found
		}
		n, found = value, key.Line
	}
	return found
}

// child returns what a step leads to, with its key, nil if that is not there.
func child(n *yaml.Node, step any) (key, value *yaml.Node) {
	if i, isIndex := step.(int); isIndex {
		if n.Kind != yaml.SequenceNode || i >= len(n.Content) {
			return nil, nil
		}
		return n.Content[i], n.Content[i]
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == fmt.Sprint(step) {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}
