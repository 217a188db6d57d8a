package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	files "github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/standalone"
)

type bench struct {
	options
	dir string
}

// result of one size.
type result struct {
	load
	time              time.Duration
	floor, necessary  floor
	admission         []admission
	writes, conflicts int
	lists             map[string]int
	base, peak        int64
	started, runs     int // runs that were started, and that are left
	targets           int // hosts of all runs, once for each step
	jobMean           time.Duration
	oneJob, manyJobs  time.Duration
	cpu               map[string]time.Duration
	reconciles        map[string]int
	requests          standalone.Requests
	edits             []edit
	largest           []largest
}

// edit is something done to a quiet cluster.
type edit struct {
	what      string
	quiet     time.Duration
	writes    int
	runs      int
	reconcile int
}

// manyJobs is how many Jobs the probe creates at once.
const manyJobs = 100

// stand is one control plane with its clients.
type stand struct {
	*bench
	cluster *standalone.Cluster
	config  *rest.Config
	client  client.Client
	raw     kubernetes.Interface
	own     int // lists that the bench itself made
	// webhooks are those of the deployed configuration.
	webhooks envtest.WebhookInstallOptions
}

func (b *bench) measure(ctx context.Context, l load, last bool) (result, error) {
	log.Printf("%s nodes: starting a control plane", l)
	cluster := standalone.New(b.dir, filepath.Join(b.dir, "lab-"+l.String()), b.port)
	defer cluster.Down()
	s, err := b.newStand(ctx, cluster)
	if err != nil {
		return result{}, err
	}
	r := result{load: l}
	if err := prepare(ctx, s.client); err != nil {
		return r, err
	}
	if r.oneJob, r.manyJobs, err = probeJobs(ctx, s.client, manyJobs); err != nil {
		return r, err
	}
	if !b.withoutWebhooks {
		if err := s.installWebhooks(); err != nil {
			return r, err
		}
	}
	m, err := s.startManager(ctx, fmt.Sprintf("manager-%s.log", l))
	if err != nil {
		return r, err
	}
	defer func() { m.Stop() }()
	do := l.apply
	if l.later {
		if err := s.applyAndAwait(ctx, m, l); err != nil {
			return r, err
		}
		do = l.annotate
	}
	if err := s.converge(ctx, m, &r, do); err != nil || l.later {
		return r, err
	}
	if last {
		if m, err = s.disturb(ctx, m, &r); err != nil {
			return r, err
		}
	}
	if r.largest, err = largestObjects(ctx, s.config); err != nil {
		return r, err
	}
	if b.withoutWebhooks {
		m.Stop()
	} else if err := s.measureAdmission(ctx, m, &r); err != nil {
		return r, err
	}
	return r, s.measureFloors(ctx, &r)
}

// measureAdmission measures what the webhooks add to a write, and stops the manager.
func (s *stand) measureAdmission(ctx context.Context, m *standalone.Manager, r *result) error {
	if err := s.storeOptions(ctx); err != nil {
		return err
	}
	webhooks, err := s.admit(ctx, r.roles)
	if err != nil {
		return err
	}
	m.Stop()
	if err := errors.Join(s.removeWebhooks(ctx), s.awaitNoWebhooks(ctx, r.roles)); err != nil {
		return err
	}
	without, err := s.admit(ctx, r.roles)
	if err != nil {
		return err
	}
	r.admission = compare(webhooks, without)
	return nil
}

// measureFloors measures what a bare client takes. The manager must have been stopped.
func (s *stand) measureFloors(ctx context.Context, r *result) error {
	log.Printf("%s nodes: the floors", r.load)
	if err := s.measureFloor(ctx, r); err != nil {
		return err
	}
	return s.measureNecessary(ctx, r)
}

func (b *bench) newStand(ctx context.Context, cluster *standalone.Cluster) (*stand, error) {
	config, err := cluster.Up(ctx, "--kwok-nodes", strconv.Itoa(kwokNodes), "--stages", filepath.Join(b.dir, "stage.yaml"))
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // of which there is one for each write that is judged
	scheme, err := files.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	raw, err := kubernetes.NewForConfig(config)
	return &stand{bench: b, cluster: cluster, config: config, client: c, raw: raw}, err
}

// installWebhooks makes the API server call the manager for everything that it
// would be called for where it is deployed.
func (s *stand) installWebhooks() error {
	s.webhooks.Paths = []string{files.File("config", "webhook", "manifests.yaml")}
	return s.webhooks.Install(s.config)
}

// removeWebhooks is for the floor: no one serves them any more.
func (s *stand) removeWebhooks(ctx context.Context) error {
	for _, obj := range []client.Object{&admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}} {
		if err := s.client.DeleteAllOf(ctx, obj); err != nil {
			return fmt.Errorf("removing the webhooks: %w", err)
		}
	}
	return s.webhooks.Cleanup()
}

// awaitNoWebhooks waits until the API server has noticed that there are none.
func (s *stand) awaitNoWebhooks(ctx context.Context, roles int) error {
	for what, write := range s.admissions(ctx, roles) {
		if err := until(ctx, 50*time.Millisecond, func() (bool, error) {
			err := write(0)
			if apierrors.IsInternalError(err) { // failed calling webhook
				return false, nil
			}
			return true, err
		}); err != nil {
			return fmt.Errorf("%s without webhooks: %w", what, err)
		}
	}
	return nil
}

func (s *stand) startManager(ctx context.Context, logName string) (*standalone.Manager, error) {
	arguments := []string{fmt.Sprintf("--webhook-port=%d", s.webhooks.LocalServingPort), "--webhook-cert-dir=" + s.webhooks.LocalServingCertDir}
	if s.withoutWebhooks {
		arguments = []string{"--webhooks=false"}
	}
	return s.cluster.StartManager(ctx, filepath.Join(s.dir, logName), arguments...)
}

// cpu returns the CPU time of each process of the control plane.
func (s *stand) cpu() map[string]time.Duration {
	used := map[string]time.Duration{}
	for name, pid := range s.cluster.PIDs() {
		used[name] = cpuTime(pid)
	}
	return used
}

// server is the CPU time that the API server and etcd have used.
func (s *stand) server() time.Duration {
	used := s.cpu()
	return used["kube-apiserver"] + used["etcd"]
}

// applyAndAwait applies the nodes, and waits until all of them are Ready.
func (s *stand) applyAndAwait(ctx context.Context, m *standalone.Manager, l load) error {
	if err := l.apply(ctx, s.client); err != nil {
		return err
	}
	if err := s.awaitStep(ctx, m, "run-os", l.nodes); err != nil {
		return err
	}
	_, _, err := m.Quiet(ctx)
	return err
}

// converge does what makes the computes, and measures until every one is Ready.
func (s *stand) converge(ctx context.Context, m *standalone.Manager, r *result, do func(context.Context, client.Client) error) error {
	_, idle, err := m.Quiet(ctx)
	if err != nil {
		return err
	}
	if r.base, err = memory(m.PID(), "VmRSS"); err != nil {
		return err
	}
	before, err := standalone.CountRequests(ctx, s.raw)
	if err != nil {
		return err
	}
	cpu, own := s.cpu(), cpuTime(m.PID())
	log.Printf("%d nodes: applying", r.nodes)
	start := time.Now()
	if s.profile != "" {
		go s.save(m, fmt.Sprintf("profile?seconds=%d", min(60, 10+r.nodes/50)), fmt.Sprintf("cpu-%d.pb", r.nodes))
	}
	if err := do(ctx, s.client); err != nil {
		return err
	}
	log.Printf("%d nodes: applied after %s", r.nodes, time.Since(start).Round(time.Millisecond))
	if err := s.awaitReady(ctx, m, r.nodes); err != nil {
		return err
	}
	r.time = time.Since(start)
	_, after, err := m.Quiet(ctx)
	if err != nil {
		return err
	}
	if s.profile != "" {
		s.save(m, "heap", fmt.Sprintf("heap-%d.pb", r.nodes))
	}
	counts, err := standalone.CountRequests(ctx, s.raw)
	if err != nil {
		return err
	}
	r.requests = counts.Since(before)
	r.writes, r.conflicts = after.Writes-idle.Writes, after.Conflicts-idle.Conflicts
	r.lists = s.lists(r.requests)
	r.reconciles = after.ByController
	r.cpu = map[string]time.Duration{"manager": cpuTime(m.PID()) - own}
	for name, used := range s.cpu() {
		r.cpu[name] = used - cpu[name]
	}
	if r.peak, err = memory(m.PID(), "VmHWM"); err != nil {
		return err
	}
	r.started = r.requests[standalone.Request{Group: "ansibleee.openstack.org", Resource: "openstackansibleees", Verb: "POST"}]
	r.runs, r.targets, r.jobMean, err = runs(ctx, s.client)
	log.Printf("%d nodes: Ready after %s; runs %v, reconciliations %v, errors %d; requests %v", r.nodes, r.time, after.Runs, r.reconciles, after.Errors, describe(r.requests))
	return err
}

func (s *stand) save(m *standalone.Manager, kind, file string) {
	if err := m.SaveProfile(kind, filepath.Join(s.profile, file)); err != nil {
		log.Printf("Failed to save a profile: %v", err)
	}
}

// awaitReady asks the manager until all hosts have converged, and then the API server.
func (s *stand) awaitReady(ctx context.Context, m *standalone.Manager, n int) error {
	if err := s.awaitStep(ctx, m, "nova", n); err != nil {
		return err
	}
	return until(ctx, 100*time.Millisecond, func() (bool, error) {
		s.own++
		return allReady(ctx, s.client, n)
	})
}

// awaitStep asks the manager, which costs the API server nothing, until all
// hosts have done the step.
func (s *stand) awaitStep(ctx context.Context, m *standalone.Manager, step string, n int) error {
	reported := time.Now()
	for {
		a := m.Read()
		if a != nil && a.Hosts[step] == n {
			return nil
		}
		if a != nil && time.Since(reported) > 15*time.Second {
			reported = time.Now()
			log.Printf("%d nodes: converged %v, runs %v", n, a.Hosts, a.Runs)
		}
		if err := m.Sleep(ctx, time.Second); err != nil { // an answer costs the manager some 15 ms
			return err
		}
	}
}

// watched are the resources that the manager reads. Of others it cannot make
// lists; of these no one else does but the bench.
var watched = map[string]bool{
	"openstackdataplanes": true, "openstackdataplaneroles": true, "openstackdataplanenodes": true, "openstackdataplaneservices": true,
	"novas": true, "novacells": true, "novaexternalcomputes": true, "openstackansibleees": true,
	"configmaps": true, "secrets": true, "jobs": true, "pods": true,
}

// lists are the list requests of the manager, by resource.
func (s *stand) lists(counts standalone.Requests) map[string]int {
	out := map[string]int{}
	for k, n := range counts {
		if k.Verb == "LIST" && watched[k.Resource] {
			out[k.Resource] += n
		}
	}
	if out["novaexternalcomputes"] -= s.own; out["novaexternalcomputes"] == 0 {
		delete(out, "novaexternalcomputes")
	}
	return out
}

// disturb does what happens to a quiet cluster, and returns the manager, which
// is another one in the end.
func (s *stand) disturb(ctx context.Context, m *standalone.Manager, r *result) (*standalone.Manager, error) {
	for _, e := range []struct {
		what string
		edit func(*dataplanev1.OpenStackDataPlaneRole)
	}{
		{"`dataPlane` of one role edited: nothing that a host depends on", func(role *dataplanev1.OpenStackDataPlaneRole) { role.Spec.DataPlane = "other" }},
		{"`ansiblePort` of one role edited: how to log in, not the outcome", func(role *dataplanev1.OpenStackDataPlaneRole) { role.Spec.NodeTemplate.AnsiblePort = 2222 }},
	} {
		done, err := s.editRole(ctx, m, e.edit)
		if err != nil {
			return m, err
		}
		done.what, done.runs = e.what, done.runs-r.runs
		r.edits = append(r.edits, done)
	}
	m.Stop()
	log.Printf("%d nodes: restarting the manager", r.nodes)
	next, err := s.startManager(ctx, fmt.Sprintf("manager-%d-restarted.log", r.nodes))
	if err != nil {
		return m, err
	}
	// It is quiet also while it fills its caches.
	if err := s.awaitStep(ctx, next, "nova", r.nodes); err != nil {
		return next, err
	}
	last, a, err := next.Quiet(ctx)
	if err != nil {
		return next, err
	}
	again := edit{what: "Manager restarted", quiet: last.Sub(next.Started), writes: a.Writes, reconcile: a.Reconciles}
	again.runs, _, _, err = runs(ctx, s.client)
	again.runs -= r.runs
	r.edits = append(r.edits, again)
	return next, err
}

func (s *stand) editRole(ctx context.Context, m *standalone.Manager, change func(*dataplanev1.OpenStackDataPlaneRole)) (edit, error) {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: roleName(0)}, role); err != nil {
		return edit{}, err
	}
	before := m.Read()
	if before == nil {
		return edit{}, fmt.Errorf("the manager does not answer")
	}
	change(role)
	start := time.Now()
	if err := s.client.Update(ctx, role); err != nil {
		return edit{}, fmt.Errorf("editing a role: %w", err)
	}
	last, a, err := m.Quiet(ctx)
	if err != nil {
		return edit{}, err
	}
	count, _, _, err := runs(ctx, s.client)
	return edit{quiet: last.Sub(start), writes: a.Writes - before.Writes, reconcile: a.Reconciles - before.Reconciles, runs: count}, err
}

// describe lists writes, for the log.
func describe(counts standalone.Requests) []string {
	var out []string
	for k, n := range counts {
		if slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "LIST", "GET"}, k.Verb) && n > 2 {
			out = append(out, fmt.Sprintf("%s %s/%s=%d", k.Verb, k.Resource, k.Subresource, n))
		}
	}
	slices.Sort(out)
	return out
}

func median(values []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
