package oslo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Config is what oslo.config reads from one or more files. It is immutable,
// safe for concurrent use, and prints without its contents.
type Config struct {
	text      string
	files     int
	sections  []Section
	sectionAt map[string]int
	optionAt  map[[2]string]int
}

// Section is a section under the name its header spells.
type Section struct {
	Name    string
	Options []Option
}

// Option is a key with the values given to it, in the order of reading.
type Option struct {
	Key    string
	Values []Value
}

// Value is one assignment. Text may be a secret: do not log it.
type Value struct {
	Text string // continuation lines joined by "\n"
	File int    // which of the merged files, from 0
	Line int    // line of the key in that file, from 1
}

func newConfig(text string) *Config {
	return &Config{text: text, files: 1, sectionAt: map[string]int{}, optionAt: map[[2]string]int{}}
}

// Text returns the text as given to [Parse], byte for byte. For a merged
// Config it is the texts joined by "\n", which parse to the same values.
func (c *Config) Text() string { return c.text }

// String returns a summary without any contents, for a Config that reaches a
// log by accident.
func (c *Config) String() string {
	return fmt.Sprintf("oslo.Config{%d sections, %d options}", len(c.sections), len(c.optionAt))
}

// GoString returns the same as String.
func (c *Config) GoString() string { return c.String() }

// Sections returns a copy of all sections in the order of their first header,
// with their options in the order of their first assignment. As in
// oslo.config's ConfigParser, a section opened twice is one section, and an
// empty section is kept. Names are as spelled; [Config.Get] folds their case.
func (c *Config) Sections() []Section {
	sections := slices.Clone(c.sections)
	for i, s := range sections {
		sections[i].Options = slices.Clone(s.Options)
		for j, o := range s.Options {
			sections[i].Options[j].Values = slices.Clone(o.Values)
		}
	}
	return sections
}

// Get returns the texts of [Config.Values], nil if the option is not set. A
// multi-valued option has them all, any other option has the last.
func (c *Config) Get(section, key string) []string {
	var texts []string
	for _, v := range c.Values(section, key) {
		texts = append(texts, v.Text)
	}
	return texts
}

// Values returns all values of an option in the order of reading.
//
// The section is found as oslo.config does: "Database" and "database" are one
// group, but "default" is not "DEFAULT". Keys are case-sensitive. Source:
// oslo_config/cfg.py, _normalize_group_name and _Namespace._get_file_value.
func (c *Config) Values(section, key string) []Value {
	var values []Value
	for _, s := range c.sections {
		if at, ok := c.optionAt[[2]string{s.Name, key}]; ok && Group(s.Name) == Group(section) {
			values = append(values, s.Options[at].Values...)
		}
	}
	// Two spellings of one section may alternate within a file.
	slices.SortStableFunc(values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return values
}

// Merge returns what oslo.config sees when a service reads the files in this
// order: [Config.Get] on the result has the values of all files, so the last
// one is that of a single-valued option, and all are those of a multi-valued
// one. [Value.File] tells which file a value comes from; a file that is itself
// merged counts as its parts. The files are not changed.
func Merge(files ...*Config) *Config {
	merged := newConfig("")
	merged.files = 0
	var texts []string
	for _, f := range files {
		for _, s := range f.sections {
			merged.section(s.Name)
			for _, o := range s.Options {
				for _, v := range o.Values {
					v.File += merged.files
					merged.add(s.Name, o.Key, v)
				}
			}
		}
		merged.files += f.files
		texts = append(texts, f.text)
	}
	merged.text = strings.Join(texts, "\n")
	return merged
}

// section returns the section of that name, which it adds if need be. The
// pointer is good until the next call.
func (c *Config) section(name string) *Section {
	at, ok := c.sectionAt[name]
	if !ok {
		at = len(c.sections)
		c.sectionAt[name] = at
		c.sections = append(c.sections, Section{Name: name})
	}
	return &c.sections[at]
}

func (c *Config) add(section, key string, v Value) {
	s := c.section(section)
	id := [2]string{section, key}
	at, ok := c.optionAt[id]
	if !ok {
		at = len(s.Options)
		c.optionAt[id] = at
		s.Options = append(s.Options, Option{Key: key})
	}
	s.Options[at].Values = append(s.Options[at].Values, v)
}

// Group returns the name by which oslo.config finds a section: _normalize_group_name.
func Group(section string) string {
	if section == "DEFAULT" {
		return section
	}
	return strings.ToLower(section)
}
