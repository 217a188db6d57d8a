package main

import (
	"context"
	"fmt"
	"log"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	corev1beta1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

type bench struct {
	options
	dir string
}

// result of one size.
type result struct {
	nodes             int
	time, floor       time.Duration
	floorCPU          time.Duration // of the API server and etcd
	floorWrites       int
	writes, conflicts int
	lists             map[string]int
	base, peak        int64
	started, runs     int // runs that were started, and that are left
	targets           int // hosts of all runs
	jobMean           time.Duration
	oneJob, manyJobs  time.Duration
	cpu               map[string]time.Duration
	reconciles        map[string]int
	requests          requests
	edits             []edit
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
	lab    *lab
	config *rest.Config
	client client.Client
	raw    kubernetes.Interface
	own    int // lists that the bench itself made
}

func (b *bench) measure(ctx context.Context, n int, last bool) (result, error) {
	log.Printf("%d nodes: starting a control plane", n)
	l := b.newLab(n)
	defer l.down()
	s, err := b.newStand(ctx, l)
	if err != nil {
		return result{}, err
	}
	r := result{nodes: n}
	if err := prepare(ctx, s.client); err != nil {
		return r, err
	}
	if r.oneJob, r.manyJobs, err = probeJobs(ctx, s.client, manyJobs); err != nil {
		return r, err
	}
	m, err := b.startManager(ctx, l, fmt.Sprintf("manager-%d.log", n))
	if err != nil {
		return r, err
	}
	defer func() { m.stop() }()
	if err := s.converge(ctx, m, &r); err != nil {
		return r, err
	}
	if last {
		if m, err = s.disturb(ctx, m, &r); err != nil {
			return r, err
		}
	}
	m.stop()
	log.Printf("%d nodes: the floor", n)
	before := s.server()
	r.floor, r.floorWrites, err = b.floor(ctx, s.config, r.requests, r.writes)
	r.floorCPU = s.server() - before
	return r, err
}

func (b *bench) newStand(ctx context.Context, l *lab) (*stand, error) {
	config, err := l.up(ctx, filepath.Join(b.dir, "stage.yaml"))
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, ansibleeev1.AddToScheme, dataplanev1.AddToScheme, novav1.AddToScheme, topologyv1.AddToScheme, glancev1.AddToScheme, corev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	raw, err := kubernetes.NewForConfig(config)
	return &stand{bench: b, lab: l, config: config, client: c, raw: raw}, err
}

// server is the processor time that the API server and etcd have used.
func (s *stand) server() time.Duration {
	used := s.lab.cpu()
	return used["kube-apiserver"] + used["etcd"]
}

func (s *stand) requests(ctx context.Context) (requests, error) {
	text, err := s.raw.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	return countRequests(text), nil
}

// converge applies the nodes and measures until every compute is Ready.
func (s *stand) converge(ctx context.Context, m *managerProcess, r *result) error {
	_, idle, err := m.quiet(ctx)
	if err != nil {
		return err
	}
	if r.base, err = memory(m.cmd.Process.Pid, "VmRSS"); err != nil {
		return err
	}
	before, err := s.requests(ctx)
	if err != nil {
		return err
	}
	cpu, own := s.lab.cpu(), cpuTime(m.cmd.Process.Pid)
	log.Printf("%d nodes: applying", r.nodes)
	start := time.Now()
	if s.profile != "" {
		go s.save(m, fmt.Sprintf("profile?seconds=%d", min(60, 10+r.nodes/50)), fmt.Sprintf("cpu-%d.pb", r.nodes))
	}
	if err := s.load(ctx, s.client, r.nodes); err != nil {
		return err
	}
	log.Printf("%d nodes: applied after %s", r.nodes, time.Since(start).Round(time.Millisecond))
	if err := s.awaitReady(ctx, m, r.nodes); err != nil {
		return err
	}
	r.time = time.Since(start)
	_, after, err := m.quiet(ctx)
	if err != nil {
		return err
	}
	if s.profile != "" {
		s.save(m, "heap", fmt.Sprintf("heap-%d.pb", r.nodes))
	}
	counts, err := s.requests(ctx)
	if err != nil {
		return err
	}
	r.requests = counts.since(before)
	r.writes, r.conflicts = after.writes-idle.writes, after.conflicts-idle.conflicts
	r.lists = s.lists(r.requests)
	r.reconciles = after.byController
	r.cpu = map[string]time.Duration{"manager": cpuTime(m.cmd.Process.Pid) - own}
	for name, used := range s.lab.cpu() {
		r.cpu[name] = used - cpu[name]
	}
	if r.peak, err = memory(m.cmd.Process.Pid, "VmHWM"); err != nil {
		return err
	}
	r.started = r.requests[request{"ansibleee.openstack.org", "openstackansibleees", "", "POST"}]
	r.runs, r.targets, r.jobMean, err = runs(ctx, s.client)
	log.Printf("%d nodes: Ready after %s; runs %v, reconciliations %v, errors %d; requests %v", r.nodes, r.time, after.runs, r.reconciles, after.errors, describe(r.requests))
	return err
}

func (s *stand) save(m *managerProcess, kind, file string) {
	if err := m.saveProfile(kind, filepath.Join(s.profile, file)); err != nil {
		log.Printf("Failed to save a profile: %v", err)
	}
}

// awaitReady asks the manager until all hosts have converged, which costs the
// API server nothing, and then the API server.
func (s *stand) awaitReady(ctx context.Context, m *managerProcess, n int) error {
	reported := time.Now()
	for {
		a := m.read()
		if a != nil && a.hosts["nova"] == n {
			break
		}
		if a != nil && time.Since(reported) > 15*time.Second {
			reported = time.Now()
			log.Printf("%d nodes: converged %v, runs %v", n, a.hosts, a.runs)
		}
		if err := m.sleep(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
	return until(ctx, 100*time.Millisecond, func() (bool, error) {
		s.own++
		return allReady(ctx, s.client, n)
	})
}

// watched are the resources that the manager reads. Of others it cannot make
// lists; of these nobody else does but the bench.
var watched = map[string]bool{
	"openstackdataplanes": true, "openstackdataplaneroles": true, "openstackdataplanenodes": true, "openstackdataplaneservices": true,
	"novas": true, "novacells": true, "novaexternalcomputes": true, "openstackansibleees": true,
	"configmaps": true, "secrets": true, "jobs": true, "pods": true,
}

// lists are the list requests of the manager, by resource.
func (s *stand) lists(counts requests) map[string]int {
	out := map[string]int{}
	for k, n := range counts {
		if k.verb == "LIST" && watched[k.resource] {
			out[k.resource] += n
		}
	}
	if out["novaexternalcomputes"] -= s.own; out["novaexternalcomputes"] == 0 {
		delete(out, "novaexternalcomputes")
	}
	return out
}

// disturb does what happens to a quiet cluster, and returns the manager, which
// is another one in the end.
func (s *stand) disturb(ctx context.Context, m *managerProcess, r *result) (*managerProcess, error) {
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
	m.stop()
	log.Printf("%d nodes: restarting the manager", r.nodes)
	next, err := s.startManager(ctx, s.lab, fmt.Sprintf("manager-%d-restarted.log", r.nodes))
	if err != nil {
		return m, err
	}
	last, a, err := next.quiet(ctx)
	if err != nil {
		return next, err
	}
	again := edit{what: "Manager restarted", quiet: last.Sub(next.started), writes: a.writes, reconcile: a.reconciles}
	again.runs, _, _, err = runs(ctx, s.client)
	again.runs -= r.runs
	r.edits = append(r.edits, again)
	return next, err
}

func (s *stand) editRole(ctx context.Context, m *managerProcess, change func(*dataplanev1.OpenStackDataPlaneRole)) (edit, error) {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: roleName(0)}, role); err != nil {
		return edit{}, err
	}
	before := m.read()
	if before == nil {
		return edit{}, fmt.Errorf("the manager does not answer")
	}
	change(role)
	start := time.Now()
	if err := s.client.Update(ctx, role); err != nil {
		return edit{}, fmt.Errorf("editing a role: %w", err)
	}
	last, a, err := m.quiet(ctx)
	if err != nil {
		return edit{}, err
	}
	count, _, _, err := runs(ctx, s.client)
	return edit{quiet: last.Sub(start), writes: a.writes - before.writes, reconcile: a.reconciles - before.reconciles, runs: count}, err
}

// describe lists writes, for the log.
func describe(counts requests) []string {
	var out []string
	for k, n := range counts {
		if slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "LIST", "GET"}, k.verb) && n > 2 {
			out = append(out, fmt.Sprintf("%s %s/%s=%d", k.verb, k.resource, k.subresource, n))
		}
	}
	slices.Sort(out)
	return out
}

func median(values []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
