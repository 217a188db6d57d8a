// Package configview shows what a service reads of its configuration, with the layer of each
// line and without secrets.
package configview

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// Source is a text of the configuration, in the order in which the service reads them.
type Source struct {
	// File is its name on the host, and Layer where a person writes it.
	File  string `json:"file"`
	Layer string `json:"layer"`
	// Problem is why nothing of it is shown; empty if all of it is.
	Problem string `json:"problem,omitempty"`
	// Bytes is the size of a file that the service reads next to its options. ReplacedBy is the
	// layer of which the service has the file of the name instead; empty if it has this one.
	Bytes      int    `json:"bytes,omitempty"`
	ReplacedBy string `json:"replacedBy,omitempty"`
	// Text, which nothing is shown of as it is, and whether all its values are secret.
	Text   string `json:"-"`
	Secret bool   `json:"-"`
	// Further reports whether the file has no options, but is read next to them.
	Further bool `json:"-"`
}

// Line sets an option.
type Line struct {
	Section string `json:"section"`
	Option  string `json:"option"`
	// Value without secrets; continuation lines are joined by line breaks.
	Value string `json:"value"`
	File  string `json:"file"`
	Layer string `json:"layer"`
	// Number of the line in the text of the layer, from 1.
	Number int `json:"line"`
}

// View is the configuration of the service of a node.
type View struct {
	Node string `json:"node"`
	// Files in the order in which they are read. A file can have the texts of several layers.
	Files []Source `json:"files"`
	// Lines by section and option, each in the order in which they are read: the last one
	// counts, or all of them for an option that may be given several times.
	Lines []Line `json:"lines"`
}

// New returns what a service reads of the sources.
func New(node string, sources []Source) View {
	v := View{Node: node, Files: sources}
	var configs []*oslo.Config
	v.settle()
	for i := range v.Files {
		config, err := v.Files[i].parse()
		if err != nil {
			v.Files[i].Problem = err.Error()
		}
		configs = append(configs, config)
	}
	merged, seen := oslo.Merge(configs...), map[[2]string]bool{}
	for _, section := range merged.Sections() {
		for _, option := range section.Options {
			if id := [2]string{oslo.Group(section.Name), option.Key}; !seen[id] {
				seen[id] = true
				v.add(section.Name, option.Key, merged.Values(section.Name, option.Key))
			}
		}
	}
	return v
}

// settle says of the files that are read next to the options how large they are, and which are
// replaced: the last one of a name counts.
func (v *View) settle() {
	last := map[string]string{}
	for i := len(v.Files) - 1; i >= 0; i-- {
		f := &v.Files[i]
		if !f.Further {
			continue
		}
		f.Bytes, f.ReplacedBy = len(f.Text), last[f.File]
		if last[f.File] == "" {
			last[f.File] = f.Layer
		}
	}
}

// notes is what there is to know of a source.
func (s Source) notes() string {
	switch {
	case s.Problem != "":
		return strings.ReplaceAll(s.Problem, "\n", "; ")
	case s.ReplacedBy != "":
		return "replaced by " + s.ReplacedBy
	case s.Further:
		return fmt.Sprintf("%d bytes", s.Bytes)
	}
	return ""
}

// parse returns the configuration of a source; an empty one with an error.
func (s Source) parse() (*oslo.Config, error) {
	empty, _ := oslo.Parse("")
	if s.Further {
		return empty, nil
	}
	if s.Problem != "" {
		return empty, errors.New(s.Problem)
	}
	parse := oslo.Parse
	if s.Secret {
		parse = oslo.ParseSecret
	}
	config, err := parse(s.Text)
	if err != nil {
		return empty, fmt.Errorf("oslo.config does not accept it: %w", err)
	}
	return config, nil
}

func (v *View) add(section, option string, values []oslo.Value) {
	for _, value := range values {
		source := v.Files[value.File]
		text := oslo.Mask
		if !source.Secret {
			text = oslo.Masked(option, value.Text)
		}
		v.Lines = append(v.Lines, Line{section, option, text, source.File, source.Layer, value.Line})
	}
}

// Text writes the view for people.
func (v View) Text(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "FILE\tLAYER")
	for _, s := range v.Files {
		fmt.Fprintf(t, "%s\t%s\n", s.File, strings.TrimSuffix(s.Layer+": "+s.notes(), ": "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	section := ""
	for _, l := range v.Lines {
		if l.Section != section {
			section = l.Section
			fmt.Fprintf(t, "\n[%s]\n", section)
		}
		fmt.Fprintf(t, "%s = %s\t# %s:%d\n", l.Option, strings.ReplaceAll(l.Value, "\n", `\n`), l.File, l.Number)
	}
	return t.Flush()
}
