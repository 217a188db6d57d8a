package topologymap

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed map.svg.tmpl
var svgText string

var svg = template.Must(template.New("map").Parse(svgText))

// Sizes of the drawing, in pixels.
const (
	columnWidth = 300
	lineHeight  = 18
	margin      = 12
)

// drawing is the picture with places.
type drawing struct {
	Width, Height int
	Columns       []column
	Notes         []label
}

type column struct {
	X, Width, Height int
	Title            label
	Labels           []label
}

type label struct {
	X, Y  int
	Text  string
	Class string
}

// SVG writes the picture as a drawing for a browser. The error is that of the
// writer.
func (m Map) SVG(w io.Writer) error { return svg.Execute(w, m.draw()) }

func (m Map) draw() drawing {
	columns := slicesOf(m)
	lines := 0
	for _, c := range columns {
		lines = max(lines, c.lines())
	}
	d := drawing{Width: margin + max(1, len(columns))*(columnWidth+margin)}
	height := (lines + 2) * lineHeight
	for i, c := range columns {
		d.Columns = append(d.Columns, c.draw(margin+i*(columnWidth+margin), height))
	}
	y := height + 2*margin
	for _, c := range m.Constraints {
		y += lineHeight
		d.Notes = append(d.Notes, label{margin, y, c.String(), noteClass(c)})
	}
	d.Height = y + 2*margin
	return d
}

// slicesOf are the domains, and what is in none.
func slicesOf(m Map) []Domain {
	columns := append([]Domain{}, m.Domains...)
	if len(m.Outside) > 0 {
		columns = append(columns, Domain{Name: "without " + m.TopologyKey, Nodes: m.Outside})
	}
	if len(m.Pending) > 0 {
		columns = append(columns, Domain{Name: "pending", Nodes: []Node{{Name: "no node", Pods: m.Pending}}})
	}
	return columns
}

func (d Domain) lines() int {
	n := 1
	for _, node := range d.Nodes {
		n += 1 + len(node.Pods)
	}
	return n
}

func (d Domain) draw(x, height int) column {
	y := margin + lineHeight
	c := column{X: x, Width: columnWidth, Height: height, Title: label{x + margin, y, d.Name, "domain"}}
	for _, n := range d.Nodes {
		y += lineHeight
		c.Labels = append(c.Labels, label{x + margin, y, n.title(), "node"})
		for _, p := range n.Pods {
			y += lineHeight
			c.Labels = append(c.Labels, label{x + 2*margin, y, p.title(), podClass(p)})
		}
	}
	return c
}

func podClass(p Pod) string {
	if p.State != "" {
		return "bad"
	}
	return "pod"
}

func noteClass(c Constraint) string {
	if !c.Holds || c.Inert {
		return "bad"
	}
	return "pod"
}
