package main

import (
	"flag"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/controllers/ansibleee/openstackansibleee"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
)

// options are the flags of the manager.
type options struct {
	operators     string
	metrics       string
	metricsSecure bool
	probes        string
	leaderElect   bool
	lease         string
	webhooks      bool
	webhookPort   int
	certDir       string
	service       string
	webhookConfig string
	clientCA      string
	pprof         string
	qps           float64
	engine        edpm.Options
	runner        corev1.ResourceRequirements
	secrets       inputs.Limits
}

func (o *options) bind(fs *flag.FlagSet) {
	o.engine, o.secrets = edpm.DefaultOptions(), inputs.DefaultLimits
	o.runner = openstackansibleee.DefaultResources()
	fs.StringVar(&o.operators, "operators", "", "operators to run, separated by commas; empty means "+strings.Join(controllers.Operators, ",")+"; there is also "+strings.Join(controllers.OptionalOperators, ","))
	fs.StringVar(&o.metrics, "metrics-bind-address", "0", "address of the metrics endpoint; 0 turns it off")
	fs.BoolVar(&o.metricsSecure, "metrics-secure", true, "serve the metrics over HTTPS, only to clients that are allowed to get the URL /metrics")
	fs.StringVar(&o.probes, "health-probe-bind-address", ":8081", "address of the health and readiness endpoints")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "run the controllers in only one manager at a time")
	fs.StringVar(&o.lease, "leader-election-id", "edpm-operators", "name of the lease that the manager with running controllers holds; managers of other operators in the same namespace need other names")
	fs.BoolVar(&o.webhooks, "webhooks", true, "serve the admission webhooks")
	fs.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the admission webhooks")
	fs.StringVar(&o.certDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs", "directory of tls.crt and tls.key of the webhooks")
	fs.StringVar(&o.service, "webhook-service", "", "name of the Service of the webhooks: when set, the manager creates and rotates their certificates, in Secret <name>-cert")
	fs.StringVar(&o.webhookConfig, "webhook-configurations", "", "webhook configurations that get the manager's own certificate authority, as mutating/NAME or validating/NAME separated by commas")
	fs.StringVar(&o.clientCA, "webhook-client-ca", "", "file with the certificate authority of the API server's client certificate for admission: when set, the webhooks answer no other client")
	fs.StringVar(&o.pprof, "pprof-bind-address", "", "address of the profiling endpoint; empty turns it off")
	fs.Float64Var(&o.qps, "kube-api-qps", 0, "requests per second to the API server; 0 leaves the limit to the server's priority and fairness")
	fs.DurationVar(&o.engine.Debounce, "batch-debounce", o.engine.Debounce, "time without a new host after which a batch that is not full is started")
	fs.DurationVar(&o.engine.Patience, "batch-patience", o.engine.Patience, "longest time for which hosts can join a batch")
	fs.DurationVar(&o.engine.Backoff.Base, "retry-base", o.engine.Backoff.Base, "time until a failed host is retried; doubles with each failure")
	fs.DurationVar(&o.engine.Backoff.Max, "retry-max", o.engine.Backoff.Max, "longest time until a failed host is retried")
	fs.IntVar(&o.secrets.Secrets, "secrets-per-namespace", o.secrets.Secrets, "maximum number of Secrets of one namespace that are watched; each needs about 80 KiB of memory")
	fs.IntVar(&o.engine.MaxRuns, "max-concurrent-runs", o.engine.MaxRuns, "maximum number of runs of Ansible in progress in all namespaces; 0 means no limit")
	fs.IntVar(&o.engine.History, "run-history", o.engine.History, "number of finished runs that are kept for each role and kind of owner")
	fs.IntVar(&o.engine.HistoryTotal, "run-history-total", o.engine.HistoryTotal, "number of finished runs that are kept in total; the oldest are deleted first")
	fs.Var((*resourceList)(&o.runner.Requests), "runner-requests", "resource requests of the Pod of a run with 50 hosts, which with fewer requests less memory; empty means none")
	fs.Var((*resourceList)(&o.runner.Limits), "runner-limits", "resource limits of the Pod of a run; empty means no limits")
}

// operatorList are the operators that were chosen.
func (o *options) operatorList() []string {
	var names []string
	for _, n := range strings.Split(o.operators, ",") {
		if n = strings.TrimSpace(n); n != "" {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return controllers.Operators
	}
	return names
}

// resync is how often controllers look at every object again. Everything is
// watched: this is a safety net only.
const resync = 10 * time.Hour
