package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

const (
	dashboardFile = "../../config/grafana/dashboard.json"
	// metricsPage lists the metrics with their labels. docs/metrics_test.go compares
	// it with what the manager and the API server have.
	metricsPage = "../../docs/metrics.md"
)

// metric is a row of the page.
type metric struct {
	kind   string
	labels []string
}

var (
	row  = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|([^|]*)\\|")
	code = regexp.MustCompile("`(\\w+)`")
)

// metrics that exist, by the names that queries use.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]metric{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		one := metric{kind: m[2]}
		for _, label := range code.FindAllStringSubmatch(m[3], -1) {
			one.labels = append(one.labels, label[1])
		}
		if m[2] != "histogram" {
			found[m[1]] = one
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			found[m[1]+suffix] = metric{"counter", append(one.labels, "le")}
		}
	}
	if len(found) < 10 {
		t.Fatalf("%s lists only %d metrics", metricsPage, len(found))
	}
	return found
}

// Labels that Prometheus gives to everything that it reads.
var targetLabels = []string{"job", "instance", "namespace", "pod", "service", "endpoint", "container", "__name__"}

// selectors of an expression, which must parse.
func selectors(t *testing.T, expr string) []*parser.VectorSelector {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return nil
	}
	var found []*parser.VectorSelector
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			found = append(found, s)
		}
		return nil
	})
	if len(found) == 0 {
		t.Errorf("%s asks for no metric", expr)
	}
	return found
}

// check expects an expression to ask for metrics that exist by labels that they
// have, and for counters by how they grow.
func check(t *testing.T, place, expr string) {
	t.Helper()
	all := metrics(t)
	for _, s := range selectors(t, expr) {
		m, ok := all[s.Name]
		if !ok {
			t.Errorf("%s: %s does not list metric %q", place, metricsPage, s.Name)
			continue
		}
		for _, matcher := range s.LabelMatchers {
			if !slices.Contains(targetLabels, matcher.Name) && !slices.Contains(m.labels, matcher.Name) {
				t.Errorf("%s: %s has no label %s", place, s.Name, matcher.Name)
			}
		}
		if grows := regexp.MustCompile(`(rate|increase)\(` + s.Name + `\b`); m.kind == "counter" && !grows.MatchString(expr) {
			t.Errorf("%s: %s is a counter: ask for its rate or increase", place, s.Name)
		}
	}
	for _, name := range grouping(t, expr) {
		known := slices.Contains(targetLabels, name)
		for _, s := range selectors(t, expr) {
			known = known || slices.Contains(all[s.Name].labels, name)
		}
		if !known {
			t.Errorf("%s: no metric of %s has label %s", place, expr, name)
		}
	}
}

// grouping are the labels by which an expression aggregates.
func grouping(t *testing.T, expr string) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil // selectors has complained
	}
	var names []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if a, ok := node.(*parser.AggregateExpr); ok && !a.Without {
			names = append(names, a.Grouping...)
		}
		return nil
	})
	return names
}

func TestRulesAskForMetricsThatExist(t *testing.T) {
	for _, r := range alerts(t) {
		check(t, r.Alert, r.Expr)
	}
}

// dashboard is what is checked of the JSON of Grafana.
type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct {
		Type, UID string
	}
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		RefID        string `json:"refId"`
	} `json:"targets"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	return d
}

// instead of the variables of Grafana what it would put there.
var instead = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$step", ".+")

func TestDashboardAsksForMetricsThatExist(t *testing.T) {
	d := readDashboard(t)
	asked := map[string]bool{}
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q needs a title, a description and a query", p.ID, p.Title)
		}
		if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q asks %+v; want the chosen data source", p.Title, p.Datasource)
		}
		for _, target := range p.Targets {
			expr := instead.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q: %s has a variable that no one sets", p.Title, target.Expr)
			}
			check(t, "panel "+p.Title, expr)
			for _, s := range selectors(t, expr) {
				asked[s.Name] = true
			}
		}
	}
	for name := range metrics(t) {
		if base := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count"); strings.HasPrefix(name, "edpm_") && !asked[name] && !asked[base+"_bucket"] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestVariablesOfTheDashboardAskForMetricsThatExist(t *testing.T) {
	query := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	for _, v := range readDashboard(t).Templating.List {
		if v.Type != "query" {
			continue
		}
		text, _ := v.Query.(string) // what is no text does not match
		m := query.FindStringSubmatch(text)
		if m == nil || !slices.Contains(metrics(t)[m[1]].labels, m[2]) {
			t.Errorf("variable %s: %v asks for no label of a metric that exists", v.Name, v.Query)
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] {
			t.Errorf("panel %q: there is another with id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("panel %q does not fit: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
