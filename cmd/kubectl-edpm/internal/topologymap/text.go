package topologymap

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Text writes the picture for a terminal: domains side by side, each a box with
// its nodes and below it its pods. The error is that of the writer.
func (m Map) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString(sideBySide(m.columns()))
	if len(m.Domains) == 0 {
		fmt.Fprintf(&b, "No node has the label %s.\n", m.TopologyKey)
	}
	for _, n := range m.Outside {
		fmt.Fprintf(&b, "\nNode %s does not have the label %s, but has these pods:\n", n.title(), m.TopologyKey)
		for _, p := range n.Pods {
			fmt.Fprintf(&b, "|_ %s\n", p.title())
		}
	}
	for i, p := range m.Pending {
		if i == 0 {
			b.WriteString("\nPending:\n")
		}
		fmt.Fprintf(&b, "|_ %s\n", p.Name)
	}
	for i, c := range m.Constraints {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(c.String() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// columns are the lines of each domain.
func (m Map) columns() [][]string {
	var columns [][]string
	for _, d := range m.Domains {
		lines := []string{d.Name}
		var pods []string
		for _, n := range d.Nodes {
			lines = append(lines, "  "+n.title())
			for _, p := range n.Pods {
				pods = append(pods, fmt.Sprintf("|_ %s (%s)", p.title(), n.Name))
			}
		}
		columns = append(columns, append(boxed(lines), pods...))
	}
	return columns
}

// boxed draws a box around lines.
func boxed(lines []string) []string {
	width := widest(lines)
	edge := "+" + strings.Repeat("-", width+2) + "+"
	out := []string{edge}
	for _, l := range lines {
		out = append(out, "| "+padded(l, width)+" |")
	}
	return append(out, edge)
}

// sideBySide joins columns. Boxes are stretched to the same height, so that all
// pods start on one line.
func sideBySide(columns [][]string) string {
	columns = levelled(columns)
	height := 0
	for _, c := range columns {
		height = max(height, len(c))
	}
	var b strings.Builder
	for row := range height {
		var line strings.Builder
		for _, c := range columns {
			cell := ""
			if row < len(c) {
				cell = c[row]
			}
			line.WriteString(padded(cell, widest(c)+1))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// levelled adds empty lines to boxes that are lower than others.
func levelled(columns [][]string) [][]string {
	bottom := func(c []string) int { return 1 + slices.Index(c[1:], c[0]) }
	lowest := 0
	for _, c := range columns {
		lowest = max(lowest, bottom(c))
	}
	for i, c := range columns {
		empty := "|" + strings.Repeat(" ", utf8.RuneCountInString(c[0])-2) + "|"
		columns[i] = slices.Insert(c, bottom(c), slices.Repeat([]string{empty}, lowest-bottom(c))...)
	}
	return columns
}

func widest(lines []string) int {
	width := 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(l))
	}
	return width
}

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

func (n Node) title() string { return withState(n.Name, n.State) }
func (p Pod) title() string  { return withState(p.Name, p.State) }

func withState(name, state string) string {
	if state == "" {
		return name
	}
	return name + " [" + state + "]"
}

// String is one line: what is spread, over what, and how it holds.
func (c Constraint) String() string {
	var counts []string
	for _, domain := range slices.Sorted(maps.Keys(c.Pods)) {
		counts = append(counts, fmt.Sprintf("%s %d", domain, c.Pods[domain]))
	}
	prediction := "holds"
	if !c.Holds {
		prediction = "does not hold"
	}
	line := fmt.Sprintf("%s by %s (%s): %s; skew %d of %d, %s", c.Selector, c.TopologyKey, c.WhenUnsatisfiable, strings.Join(counts, ", "), c.Skew, c.MaxSkew, prediction)
	if c.Inert {
		line += "; it matches none of the pods of its own service"
	}
	if len(c.NodesLackingKey) > 0 {
		line += "; nodes without the label: " + strings.Join(c.NodesLackingKey, ", ")
	}
	return line
}
