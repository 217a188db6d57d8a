package monitoring

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// The rules, as the repository has them.
const rulesFile = "../../config/prometheus/rules.yaml"

// unitTests is the part of the format of promtool that rules_test.yaml uses:
// https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/
type unitTests struct {
	RuleFiles          []string       `json:"rule_files"`
	EvaluationInterval model.Duration `json:"evaluation_interval"`
	Tests              []unitTest     `json:"tests"`
}

type unitTest struct {
	Name        string         `json:"name"`
	Interval    model.Duration `json:"interval"`
	InputSeries []struct {
		Series string `json:"series"`
		Values string `json:"values"`
	} `json:"input_series"`
	AlertRuleTest []alertTest `json:"alert_rule_test"`
}

type alertTest struct {
	Alertname string         `json:"alertname"`
	EvalTime  model.Duration `json:"eval_time"`
	ExpAlerts []struct {
		ExpLabels      map[string]string `json:"exp_labels"`
		ExpAnnotations map[string]string `json:"exp_annotations"`
	} `json:"exp_alerts"`
}

// read reads a YAML file strictly.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// prometheusRule is what matters of the kind.
type prometheusRule struct {
	APIVersion, Kind string
	Metadata         map[string]any
	Spec             struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// plain writes the spec of a PrometheusRule as a file that Prometheus reads.
func plain(t *testing.T, file string) string {
	t.Helper()
	var object prometheusRule
	read(t, file, &object)
	text, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var object prometheusRule
	read(t, rulesFile, &object)
	if len(object.Spec.Groups) != 1 || len(object.Spec.Groups[0].Rules) == 0 {
		t.Fatalf("%s has no rules", rulesFile)
	}
	return object.Spec.Groups[0].Rules
}

func TestRules(t *testing.T) {
	var tests unitTests
	read(t, "rules_test.yaml", &tests)
	tried := map[string]bool{}
	for _, test := range tests.Tests {
		t.Run(test.Name, func(t *testing.T) {
			test.run(t, plain(t, tests.RuleFiles[0]), time.Duration(tests.EvaluationInterval))
		})
		for _, c := range test.AlertRuleTest {
			tried[c.Alertname] = tried[c.Alertname] || len(c.ExpAlerts) > 0
		}
	}
	for _, r := range alerts(t) {
		if !tried[r.Alert] {
			t.Errorf("no test has alert %s fire", r.Alert)
		}
	}
}

// run evaluates the rules as time goes by, as promtool does, and compares what
// fires.
func (test *unitTest) run(t *testing.T, file string, every time.Duration) {
	suite, err := promqltest.NewLazyLoader(test.series(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer suite.Close()
	suite.SubqueryInterval = every
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), Appendable: suite.Storage(), Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(every, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for now := time.Duration(0); now <= test.end(); now += every {
		at := time.Unix(0, 0).UTC().Add(now)
		suite.WithSamplesTill(at, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				g.Eval(suite.Context(), at)
			}
		})
		for _, c := range test.AlertRuleTest {
			if time.Duration(c.EvalTime) == now {
				c.compare(t, groups)
			}
		}
	}
}

// series are the input in the language of promqltest.
func (test *unitTest) series() string {
	text := fmt.Sprintf("load %v\n", test.Interval)
	for _, s := range test.InputSeries {
		text += fmt.Sprintf("  %s %s\n", s.Series, s.Values)
	}
	return text
}

func (test *unitTest) end() time.Duration {
	var last model.Duration
	for _, c := range test.AlertRuleTest {
		last = max(last, c.EvalTime)
	}
	return time.Duration(last)
}

// compare expects that exactly these alerts fire.
func (c *alertTest) compare(t *testing.T, groups map[string]*rules.Group) {
	t.Helper()
	var got, want []string
	known := false
	for _, g := range groups {
		for _, r := range g.Rules() {
			if r.LastError() != nil {
				t.Fatalf("%s: %v", r.Name(), r.LastError())
			}
			alerting, ok := r.(*rules.AlertingRule)
			if !ok || alerting.Name() != c.Alertname {
				continue
			}
			known = true
			for _, a := range alerting.ActiveAlerts() {
				if a.State == rules.StateFiring {
					got = append(got, show(a.Labels.Map(), a.Annotations.Map()))
				}
			}
		}
	}
	for _, a := range c.ExpAlerts {
		expected := maps.Clone(a.ExpLabels)
		expected[labels.AlertName] = c.Alertname
		want = append(want, show(expected, a.ExpAnnotations))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || !known {
		t.Errorf("%s after %v (known: %v): what fires differs (-want +got):\n%s", c.Alertname, c.EvalTime, known, diff)
	}
}

func show(labels, annotations map[string]string) string {
	text := fmt.Sprint(labels)
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		text += "\n  " + name + ": " + annotations[name]
	}
	return text
}

func TestEveryAlertTellsWhatToDo(t *testing.T) {
	const pages = "https://github.com/edpm-operators/edpm-operators/blob/main/"
	for _, r := range alerts(t) {
		if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s needs a severity, a summary and a description", r.Alert)
		}
		path, ok := strings.CutPrefix(r.Annotations["runbook_url"], pages)
		if !ok || filepath.Base(path) != r.Alert+".md" {
			t.Errorf("%s: runbook_url is %q; want %sdocs/runbooks/%s.md", r.Alert, r.Annotations["runbook_url"], pages, r.Alert)
		}
		page, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		for _, heading := range []string{"# " + r.Alert + "\n", "\n## What it means\n", "\n## What to look at\n", "\n## What to do\n"} {
			if !strings.Contains(string(page), heading) {
				t.Errorf("%s has no heading %q", path, strings.TrimSpace(heading))
			}
		}
	}
}

func TestEveryRunbookHasItsAlert(t *testing.T) {
	files, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d runbooks: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if !slices.ContainsFunc(alerts(t), func(r rule) bool { return r.Alert == name }) {
			t.Errorf("%s is about no alert", file)
		}
	}
}

func TestTheAlertOnWebhooksNamesAllOfThem(t *testing.T) {
	var names []string
	for _, file := range []string{"../../config/webhook/manifests.yaml", "../../config/overlays/ocs/webhooks.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^  name: (\S+[.]kb[.]io)$`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	if len(names) < 10 {
		t.Fatalf("found only %d webhooks", len(names))
	}
	at := slices.IndexFunc(alerts(t), func(r rule) bool { return r.Alert == "EDPMWebhookDown" })
	matchers := 0
	for _, selector := range selectors(t, alerts(t)[at].Expr) {
		for _, m := range selector.LabelMatchers {
			if m.Name != "name" {
				continue
			}
			matchers++
			for _, name := range names {
				if !m.Matches(name) {
					t.Errorf("%s does not match webhook %s", m, name)
				}
			}
			if m.Matches("mutate.other.io") || m.Matches("") {
				t.Errorf("%s matches webhooks that are not of edpm-operators", m)
			}
		}
	}
	if matchers != 2 {
		t.Errorf("there are %d matchers of names; want one for each of two metrics", matchers)
	}
}
