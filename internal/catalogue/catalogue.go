package catalogue

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// Option of an image.
type Option struct {
	// Type as the generator names it, for example "integer value".
	Type string `json:"t,omitempty"`
	// Min and Max of a number, and all the values that are allowed, if they are few.
	Min     *float64 `json:"min,omitempty"`
	Max     *float64 `json:"max,omitempty"`
	Choices []string `json:"c,omitempty"`
	// Secret is a value that is not to be shown.
	Secret bool `json:"s,omitempty"`
	// Multi options have all the values that they are given.
	Multi bool `json:"m,omitempty"`
	// Leaving options are to be removed, for the Reason that the image gives.
	Leaving bool   `json:"l,omitempty"`
	Reason  string `json:"r,omitempty"`
}

// Name of an option.
type Name struct {
	Section string `json:"g"`
	Key     string `json:"k"`
}

func (n Name) String() string { return fmt.Sprintf("[%s] %s", n.Section, n.Key) }

// Catalogue has the options of an image. It is immutable and safe for concurrent use.
type Catalogue struct {
	// Options by section, as oslo.Group names it, and key.
	Options map[string]map[string]*Option `json:"options"`
	// Former names of options, and what they are called now.
	Former map[string]map[string]Name `json:"former"`
}

// generated is what oslo-config-generator prints with --format json
// (oslo_config/generator.py, _generate_machine_readable_data).
type generated struct {
	Options map[string]struct {
		Opts []struct {
			Name, Dest, Type     string
			Min, Max             *float64
			Choices              [][]any
			Default              any
			Secret               bool
			Multi                *bool  // as Command adds it
			DeprecatedForRemoval bool   `json:"deprecated_for_removal"`
			DeprecatedReason     string `json:"deprecated_reason"`
		}
	}
	DeprecatedOptions map[string][]struct {
		Name             string
		ReplacementName  string `json:"replacement_name"`
		ReplacementGroup string `json:"replacement_group"`
	} `json:"deprecated_options"`
}

// Sizes of what an image may say, which is an opponent: more is refused, and longer
// texts are cut.
const (
	maxGenerated = 16 << 20
	maxOptions   = 20000
	maxReason    = 200
)

// Parse reads what oslo-config-generator prints with --format json.
func Parse(r io.Reader) (*Catalogue, error) {
	var g generated
	if err := json.NewDecoder(io.LimitReader(r, maxGenerated)).Decode(&g); err != nil {
		return nil, fmt.Errorf("reading what oslo-config-generator printed: %w", err)
	}
	c := &Catalogue{Options: map[string]map[string]*Option{}, Former: map[string]map[string]Name{}}
	n := 0
	for section, options := range g.Options {
		known := sectionOf(c.Options, section)
		for _, o := range options.Opts {
			if n++; n > maxOptions {
				return nil, fmt.Errorf("the image has more than %d options", maxOptions)
			}
			if _, found := known[o.Dest]; found || o.Dest == "" {
				continue // two libraries may list an option: the first counts
			}
			known[o.Dest] = &Option{
				Type: o.Type, Min: o.Min, Max: o.Max, Choices: choices(o.Choices), Secret: o.Secret, Multi: isMulti(o.Multi, o.Type, o.Default),
				Leaving: o.DeprecatedForRemoval, Reason: firstSentence(o.DeprecatedReason),
			}
		}
	}
	for section, options := range g.DeprecatedOptions {
		former := sectionOf(c.Former, section)
		for _, o := range options {
			former[o.Name] = Name{oslo.Group(o.ReplacementGroup), key(o.ReplacementName)}
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("oslo-config-generator printed no options")
	}
	return c, nil
}

// isMulti reports whether an option takes all the values that it is given: as the image says, or else by
// its type and default.
func isMulti(said *bool, kind string, fallback any) bool {
	_, list := fallback.([]any)
	if said != nil {
		return *said
	}
	return kind == "multi valued" || list && kind != "list value"
}

func sectionOf[T any](sections map[string]map[string]T, section string) map[string]T {
	name := oslo.Group(section)
	if sections[name] == nil {
		sections[name] = map[string]T{}
	}
	return sections[name]
}

// choices are those that a text can have: one may be None.
func choices(pairs [][]any) []string {
	var values []string
	for _, pair := range pairs {
		if len(pair) > 0 && pair[0] != nil {
			values = append(values, fmt.Sprint(pair[0]))
		}
	}
	return values
}

// find returns an option by its name or a former one, and what it is called now.
func (c *Catalogue) find(section, name string) (option *Option, now Name, former bool) {
	group := oslo.Group(section)
	if option := c.Options[group][name]; option != nil {
		return option, Name{group, name}, false
	}
	if now, found := c.Former[group][name]; found {
		return c.Options[now.Section][now.Key], now, true
	}
	return c.findShared(group, name), Name{group, name}, false
}

// Groups whose options the image registers only while it runs.
const (
	privsep = "privsep"
	// authType is in each group with which nova asks keystone. The plugin that it names has more
	// options, which the image lists for some of these groups.
	authType = "auth_type"
)

// privileged are the groups that have the options of privsep: nova/privsep/__init__.py,
// os_brick/privileged/__init__.py, vif_plug_ovs/privsep.py, vif_plug_linux_bridge/privsep.py.
var privileged = []string{"nova_sys_admin", "privsep_osbrick", "vif_plug_ovs_privileged", "vif_plug_linux_bridge_privileged"}

// findShared returns an option of a group that has those of others.
func (c *Catalogue) findShared(group, name string) *Option {
	switch {
	case slices.Contains(privileged, group):
		return c.Options[privsep][name]
	case c.Options[group][authType] != nil:
		for _, other := range slices.Sorted(maps.Keys(c.Options)) {
			if options := c.Options[other]; options[authType] != nil && options[name] != nil {
				return options[name]
			}
		}
	}
	return nil
}
