package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// Verdict is what an image says of an assignment of a text.
type Verdict struct {
	Line int
	// Refused reports that the image cannot read the value; else it is a warning.
	Refused bool
	// Message is without the line, and fit to be shown.
	Message string
	// Value that is refused, which may be a secret: to tell verdicts apart.
	Value string
}

func (v Verdict) String() string { return fmt.Sprintf("line %d: %s", v.Line, v.Message) }

// Part is one of the texts that a program reads one after the other. One from a Secret has no value,
// and no name that the image does not know, in a verdict.
type Part struct {
	Config *oslo.Config
	Secret bool
}

// Check returns what the image says of a text, in the order of its lines. Of options of
// which the last value counts, only that is judged.
func (c *Catalogue) Check(config *oslo.Config) []Verdict {
	return c.CheckParts(Part{Config: config})[0]
}

// CheckSecret is Check for a text from a Secret.
func (c *Catalogue) CheckSecret(config *oslo.Config) []Verdict {
	return c.CheckParts(Part{Config: config, Secret: true})[0]
}

// CheckParts is Check for each of the texts that a program reads in this order. A value that a later text
// overrides is not refused: the image does not read it.
func (c *Catalogue) CheckParts(parts ...Part) [][]Verdict {
	read, verdicts := c.readAll(parts), make([][]Verdict, len(parts))
	for i, p := range parts {
		if isTooLarge(p.Config) {
			verdicts[i] = []Verdict{{Line: 1, Message: "the text has more options or sections than any configuration, and is not compared with those of the image"}}
			continue
		}
		t := &text{Catalogue: c, config: p.Config, hidden: p.Secret, reading: read, at: i}
		for _, s := range p.Config.Sections() {
			for _, o := range s.Options {
				verdicts[i] = append(verdicts[i], t.judge(s.Name, o)...)
			}
		}
		slices.SortStableFunc(verdicts[i], func(a, b Verdict) int { return cmp.Compare(a.Line, b.Line) })
	}
	return verdicts
}

// reading is what the texts of a program set together.
type reading struct {
	// named are the sections that the texts themselves make sections of the configuration.
	named map[string]bool
	// last is the text that sets an option last, by the present name of the option.
	last map[Name]int
}

// readAll returns what texts set. oslo.config reads an option from the last file that has it under
// any of its names: oslo_config/cfg.py, _Namespace._get_file_value.
func (c *Catalogue) readAll(parts []Part) reading {
	r := reading{named: map[string]bool{}, last: map[Name]int{}}
	for i, p := range parts {
		if isTooLarge(p.Config) {
			continue
		}
		for _, s := range p.Config.Sections() {
			for _, o := range s.Options {
				if o.Key == "auth_section" {
					r.named[oslo.Group(o.Values[len(o.Values)-1].Text)] = true
				}
				_, now, _ := c.find(s.Name, o.Key)
				r.last[now] = i
			}
		}
	}
	return r
}

func isTooLarge(config *oslo.Config) bool {
	sections, n := config.Sections(), 0
	for _, s := range sections {
		n += len(s.Options)
	}
	return n > maxAssigned || len(sections) > maxSections
}

// Sizes of a text that is judged, and how many hints it gets: more is the text of an opponent,
// and each costs time.
const (
	maxAssigned = 5000
	maxSections = 500
	maxHints    = 20
)

// text that is judged, one of those that are read.
type text struct {
	*Catalogue
	reading
	config *oslo.Config
	hidden bool
	at     int
	hints  int
}

// judge returns the verdicts on an option in a section.
func (t *text) judge(section string, o oslo.Option) []Verdict {
	line := o.Values[len(o.Values)-1].Line
	option, now, former := t.find(section, o.Key)
	if option == nil {
		return t.unknown(section, o.Key, line)
	}
	var verdicts []Verdict
	name := Name{section, o.Key}
	switch {
	case former:
		verdicts = append(verdicts, Verdict{Line: line, Message: fmt.Sprintf("%s is deprecated: write %s", name, now)})
	case option.Leaving:
		verdicts = append(verdicts, Verdict{Line: line, Message: name.String() + " is deprecated and will be removed" + because(option.Reason)})
	}
	if former && len(t.config.Values(now.Section, now.Key)) > 0 {
		return verdicts // which counts
	}
	for _, value := range t.effective(section, o, option) {
		verdicts = append(verdicts, t.value(name, option, value)...)
	}
	if !option.Multi && t.last[now] > t.at {
		return overridden(verdicts)
	}
	return verdicts
}

// overridden has verdicts on a value that the image does not read be warnings.
func overridden(verdicts []Verdict) []Verdict {
	for i, v := range verdicts {
		if v.Refused {
			verdicts[i] = Verdict{Line: v.Line, Message: v.Message + " (a later text overrides it)"}
		}
	}
	return verdicts
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// effective are the values of an option in a section that the image reads.
func (t *text) effective(section string, o oslo.Option, option *Option) []oslo.Value {
	if option.Multi {
		return o.Values
	}
	all := t.config.Values(section, o.Key) // in all spellings of the section
	if last := all[len(all)-1]; last == o.Values[len(o.Values)-1] {
		return []oslo.Value{last}
	}
	return nil
}

// value returns the verdicts on a value.
func (t *text) value(name Name, option *Option, value oslo.Value) []Verdict {
	shown := ""
	if !t.hidden && !option.Secret {
		shown = shorten(oslo.Masked(name.Key, value.Text))
	}
	references := references(value.Text)
	if len(references) > 0 {
		return t.unresolved(name, option, value, references)
	}
	text := unescape(value.Text)
	expected := option.expected(text)
	choice, _ := option.choice(text)
	switch {
	case expected != "" && shown != "":
		return []Verdict{{value.Line, true, fmt.Sprintf("%s is %q, but should be %s", name, shown, expected), value.Text}}
	case expected != "":
		return []Verdict{{value.Line, true, fmt.Sprintf("%s should be %s", name, expected), value.Text}}
	case choice != "" && choice != text:
		return []Verdict{{value.Line, false, fmt.Sprintf("the case of %s may count: write %q", name, choice), ""}}
	}
	return nil
}

// maxValue is how many characters of a value a message has.
const maxValue = 60

func shorten(value string) string {
	if runes := []rune(value); len(runes) > maxValue {
		return string(runes[:maxValue]) + "…"
	}
	return value
}

// reference to another option, and an escaped "$": oslo_config/cfg.py, Template.
var reference = regexp.MustCompile(`(?i)\$(?:(\$)|([_a-z][._a-z0-9]*)|\{([_a-z][._a-z0-9]*)\})`)

// references returns the options to which a value refers.
func references(value string) (names []string) {
	for _, match := range reference.FindAllStringSubmatch(strings.ReplaceAll(value, `\$`, "$$"), -1) {
		if match[1] == "" {
			names = append(names, match[2]+match[3])
		}
	}
	return names
}

// unescape returns what the image reads of a value without references.
func unescape(value string) string {
	return strings.ReplaceAll(strings.ReplaceAll(value, `\$`, "$$"), "$$", "$")
}

// unresolved refuses references to options that the image does not have. What the others
// have is not known, so neither is the type of the value.
func (t *text) unresolved(name Name, option *Option, value oslo.Value, references []string) []Verdict {
	for _, r := range references {
		if t.resolves(name.Section, r) {
			continue
		}
		what := "$" + r
		if t.hidden || option.Secret || oslo.Masked(name.Key, r) != r {
			what = "a name after a $" // which may be a part of a password
		}
		return []Verdict{{value.Line, true, fmt.Sprintf("%s refers to %s, which is not an option of the image: write $$ for a $", name, what), value.Text}}
	}
	return nil
}

// resolves reports whether there is an option of the name for a value in a section.
func (t *text) resolves(section, name string) bool {
	if group, key, found := strings.Cut(name, "."); found {
		return t.Options[oslo.Group(group)][key] != nil
	}
	for _, section := range []string{section, "DEFAULT"} {
		// Former names are found, too: oslo_config/cfg.py, _get_opt_info.
		if option, _, former := t.find(section, name); option != nil || former {
			return true
		}
	}
	return slices.Contains(builtin, name)
}

// builtin options are those of oslo.config itself.
var builtin = []string{"config_file", "config_dir", "config_source"}

// dynamic sections are made by the image from the values of options:
// nova/conf/devices.py, register_dynamic_opts.
var dynamic = []string{"mdev_", "vgpu_"}

// unknown returns the warning of an option that the image does not have.
func (t *text) unknown(section, name string, line int) []Verdict {
	group := oslo.Group(section)
	if t.named[group] || group == "DEFAULT" && slices.Contains(builtin, name) || slices.ContainsFunc(dynamic, func(prefix string) bool { return strings.HasPrefix(group, prefix) }) {
		return nil
	}
	if t.hidden {
		return []Verdict{{Line: line, Message: "the image does not know this option and ignores it"}}
	}
	message := fmt.Sprintf("the image does not know %s and ignores it", Name{section, name})
	if t.hints++; t.hints > maxHints {
		return []Verdict{{Line: line, Message: message}}
	}
	if hint := t.hint(group, name); hint != "" {
		message += ": do you mean " + hint + "?"
	}
	return []Verdict{{Line: line, Message: message}}
}

// hint is what a name that is not known may mean: one of its section, else the name in a
// section that is like it, else in the only one that has it.
func (t *text) hint(group, name string) string {
	if like := nearest(name, slices.Collect(maps.Keys(t.Options[group]))); like != "" {
		return Name{group, like}.String()
	}
	var homes []string
	for _, home := range slices.Sorted(maps.Keys(t.Options)) {
		if t.Options[home][name] != nil {
			homes = append(homes, home)
		}
	}
	home := nearest(group, homes)
	if home == "" && len(homes) == 1 {
		home = homes[0]
	}
	if home != "" {
		return Name{home, name}.String()
	}
	if t.Options[group] != nil {
		return ""
	}
	if like := nearest(group, slices.Collect(maps.Keys(t.Options))); like != "" {
		return "section [" + like + "]"
	}
	return ""
}
