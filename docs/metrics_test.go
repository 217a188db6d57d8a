package docs_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// described is a metric as the page or the code describes it.
type described struct {
	Labels []string
	Help   string
}

// section returns the rows of the table below a heading of docs/metrics.md, and
// what they say of the type of each metric.
func section(t *testing.T, heading string) (map[string]described, map[string]string) {
	t.Helper()
	page, err := os.ReadFile(envtest.File("docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/metrics.md has no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	rows, types := map[string]described{}, map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (gauge|counter|histogram) \\|([^|]*)\\| (.*) \\|$").FindAllStringSubmatch(text, -1) {
		rows[m[1]], types[m[1]] = described{words(m[3], "`, "), m[4]}, m[2]
	}
	if len(rows) == 0 {
		t.Fatalf("there are no metrics below %q", heading)
	}
	return rows, types
}

// words of a list, sorted.
func words(list, separators string) []string {
	found := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(separators, r) })
	slices.Sort(found)
	return found
}

var description = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: "([^"]*)",.* variableLabels: \{([^}]*)\}\}$`)

// registered returns the metrics that a manager with all controllers has.
func registered(t *testing.T, env *envtest.Env) map[string]described {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	mgr, err := ctrl.NewManager(env.Config, env.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Setup(ctx, mgr, controllers.Options{Engine: edpm.DefaultOptions()}); err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		metrics.Registry.(prometheus.Collector).Describe(descs)
		close(descs)
	}()
	found := map[string]described{}
	for d := range descs {
		if m := description.FindStringSubmatch(d.String()); m != nil {
			found[m[1]] = described{words(m[3], ","), m[2]}
		}
	}
	return found
}

func TestMetricsAreThoseOfTheManager(t *testing.T) {
	env := shared.Env(t)
	all := registered(t, env)
	own := map[string]described{}
	for name, d := range all {
		if strings.HasPrefix(name, "edpm_") {
			own[name] = d
		}
	}
	rows, types := section(t, "Metrics of edpm-operators")
	if diff := cmp.Diff(own, rows); diff != "" {
		t.Errorf("docs/metrics.md differs from the code (-code +page):\n%s", diff)
	}
	for name, kind := range types {
		if strings.HasSuffix(name, "_total") != (kind == "counter") {
			t.Errorf("%s is called a %s", name, kind)
		}
	}
	others, _ := section(t, "Other metrics of the manager")
	for name, row := range others {
		if diff := cmp.Diff(all[name].Labels, row.Labels); diff != "" {
			t.Errorf("the labels of %s differ (-code +page):\n%s", name, diff)
		}
	}
}

// TestMetricsOfTheAPIServer : what the alert on webhooks asks for is counted by a
// real API server when webhooks do not answer.
func TestMetricsOfTheAPIServer(t *testing.T) {
	env := shared.Env(t) // no webhook server runs
	// The API server takes a while to know of webhooks.
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := env.Client.Create(ctx, builders.MakeTopology("t", "default").Spread("zone").Obj(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "failed calling webhook"), nil
	})
	if err != nil {
		t.Fatalf("a webhook that does not answer should keep a Topology from being made: %v", err)
	}
	if err := env.Client.Create(t.Context(), builders.MakeService("s", "default"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	text, err := kubernetes.NewForConfigOrDie(env.Config).CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := section(t, "Metrics of others")
	for name, row := range rows {
		if name == "up" {
			continue // Prometheus makes it
		}
		sample := regexp.MustCompile(`(?m)^` + name + `\{(.*)\} [1-9]`).FindStringSubmatch(string(text))
		if sample == nil {
			t.Errorf("the API server does not count %s", name)
			continue
		}
		var labels []string
		for _, m := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(sample[1], -1) {
			labels = append(labels, m[1])
		}
		slices.Sort(labels)
		if diff := cmp.Diff(labels, row.Labels); diff != "" {
			t.Errorf("the labels of %s differ (-API server +page):\n%s", name, diff)
		}
	}
	if !regexp.MustCompile(`apiserver_admission_webhook_rejection_count\{error_type="calling_webhook_error",name="vtopology.kb.io"`).Match(text) {
		t.Error("the API server does not count a Topology that was refused for want of a webhook")
	}
}
