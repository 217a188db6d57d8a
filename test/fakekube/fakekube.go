// Package fakekube stands in for the parts of Kubernetes that envtest lacks, as
// far as the suite needs them: Jobs get Pods that "run Ansible" on pretend hosts
// and leave a recap, and the children of what was deleted are collected.
//
// It keeps a book of every execution: which host was configured for which step
// and hash, and by which run. The book is what the promise "exactly once" is
// held against.
package fakekube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// Outcome is how a run ends on a host.
type Outcome string

// Outcomes.
const (
	OK          Outcome = "ok"
	Failed      Outcome = "failed"
	Unreachable Outcome = "unreachable"
	// Refused : it fails, as it does each time with the same inputs.
	Refused Outcome = "refused"
	// Occupied : it fails because it needs a host without guests.
	Occupied Outcome = "occupied"
	// Missing : the recap does not have the host.
	Missing Outcome = "missing"
	// Killed : the Pod ends without a recap; so it does for all hosts of the run.
	Killed Outcome = "killed"
	// Cancelled : the Job was deleted before it ended.
	Cancelled Outcome = "cancelled"
)

// Execution is one run on one host.
type Execution struct {
	Host, Step, Hash, Job string
	Outcome               Outcome
	// Check reports whether it changed nothing.
	Check bool
	// Vars of the host in the inventory that the run was given.
	Vars map[string]any
	// Files that it was given, by name.
	Files      map[string]string
	Start, End time.Time
}

// Rule decides how a run ends on a host.
type Rule func(host, step string) Outcome

// Space is the stand-ins of one namespace.
type Space struct {
	jobs client.Reader
	live client.Client

	mu     sync.Mutex
	active map[types.UID]bool
	rule   Rule
	delay  time.Duration
	lag    time.Duration
	gate   chan struct{} // closed when Jobs may end
	book   []Execution
	busy   map[string]string // host -> Job
	pods   int
	// keys that hosts show.
	keys map[string]string
	// notes are what modules note of hosts that are well, by host.
	notes map[string]string
	// drifted are the tasks that checks find on hosts, by host and step.
	drifted map[string][]string
	// overlaps are hosts on which two Jobs were at work at the same time.
	overlaps []string
}

// Start starts the stand-ins of a namespace. They stop with the context. live reads and
// writes without a cache, as whoever the config authenticates.
func Start(ctx context.Context, config *rest.Config, live client.Client, namespace string) (*Space, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	mgr, err := manager.New(config, ctrl.Options{
		Scheme: live.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return live.RESTMapper(), nil },
		Cache:          cache.Options{DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return nil, err
	}
	s := &Space{
		jobs: mgr.GetCache(), live: live, active: map[types.UID]bool{},
		rule: func(string, string) Outcome { return OK }, busy: map[string]string{}, keys: map[string]string{}, notes: map[string]string{}, drifted: map[string][]string{}, gate: make(chan struct{}),
	}
	close(s.gate)
	err = ctrl.NewControllerManagedBy(mgr).Named("fake-jobs").For(&batchv1.Job{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(s)
	if err != nil {
		return nil, err
	}
	go func() { _ = mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, ctx.Err()
	}
	return s, nil
}

// Decide makes the rule decide how runs end from now on.
func (s *Space) Decide(rule Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = rule
}

// Show makes a host show a public key. It is talked to only with the right one,
// as ssh does it.
func (s *Space) Show(host, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[host] = key
}

// Note has modules note something of a host in each run from now on; nothing if it is empty.
func (s *Space) Note(host, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes[host] = text
}

// Drift has checks find from now on what the tasks of a step would change on a host; a run of
// the step ends that.
func (s *Space) Drift(host, step string, tasks ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drifted[host+"/"+step] = tasks
}

// differences of a host that a check of the steps finds. A run ends those of its steps. The
// caller holds the lock.
func (s *Space) differences(host string, steps []string, check bool) (found [][]any) {
	for i, step := range steps {
		if !check {
			delete(s.drifted, host+"/"+step)
		}
		for _, task := range s.drifted[host+"/"+step] {
			found = append(found, []any{i + 1, task})
		}
	}
	return found
}

// isCheck reports whether the run of a Pod changes nothing.
func isCheck(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers[0].Env, func(e corev1.EnvVar) bool {
		return e.Name == "RUNNER_CMDLINE" && strings.HasPrefix(e.Value, "--check")
	})
}

// meet returns how a run ends on a host, and the key of the host if it is met for the first
// time, given which hosts are known. The caller holds the lock.
func (s *Space) meet(e Execution, known string) (Outcome, string) {
	key := s.keys[e.Host]
	switch {
	case key == "" || strings.Contains(known, key):
		return s.rule(e.Host, e.Step), ""
	case strings.Contains(known, fmt.Sprint(e.Vars["ansible_host"])+" "):
		return Unreachable, ""
	}
	return s.rule(e.Host, e.Step), key
}

// Delay makes runs take some time.
func (s *Space) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Lag makes Jobs end some time after their Pods.
func (s *Space) Lag(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = d
}

// Hold keeps runs from ending until the returned function is called.
func (s *Space) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

// Book returns all executions so far, in order of their start.
func (s *Space) Book() []Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.book)
}

// Pods returns how many Pods were made.
func (s *Space) Pods() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods
}

// Overlaps returns the hosts on which two Jobs were at work at the same time.
func (s *Space) Overlaps() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.overlaps)
}

// Reconcile runs a Job, or cleans up behind one that is being deleted.
func (s *Space) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	job := &batchv1.Job{}
	if err := s.jobs.Get(ctx, req.NamespacedName, job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !job.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, s.finalize(ctx, job)
	}
	if finished(job) || job.Labels[podified.AppLabel] == podified.JobApp {
		return ctrl.Result{}, nil // it has no hosts
	}
	s.mu.Lock()
	started := s.active[job.UID]
	s.active[job.UID] = true
	s.mu.Unlock()
	if !started {
		go s.run(ctx, job.DeepCopy())
	}
	return ctrl.Result{}, nil
}

func finished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// run plays the Job through, with as many Pods as its backoffLimit allows.
func (s *Space) run(ctx context.Context, job *batchv1.Job) {
	start := metav1.NewTime(time.Now().Truncate(time.Second))
	good := false
	var failures int32
	for !good && failures <= ptr.Deref(job.Spec.BackoffLimit, 6) {
		pod, err := s.createPod(ctx, job)
		if err != nil {
			return // the Job has gone
		}
		hosts, message, ok := s.play(ctx, job, pod)
		if !alive(ctx, s.live, job) {
			s.close(job.Name, hosts, Cancelled)
			return
		}
		s.close(job.Name, hosts, "")
		if err := s.endPod(ctx, pod, message, ok); err != nil {
			return
		}
		if good = ok; !ok {
			failures++
		}
	}
	s.mu.Lock()
	lag := s.lag
	s.mu.Unlock()
	time.Sleep(lag)
	s.endJob(ctx, job, start, good, failures)
}

func alive(ctx context.Context, reader client.Reader, job *batchv1.Job) bool {
	now := &batchv1.Job{}
	err := reader.Get(ctx, client.ObjectKeyFromObject(job), now)
	return err == nil && now.UID == job.UID && now.DeletionTimestamp.IsZero()
}

func (s *Space) createPod(ctx context.Context, job *batchv1.Job) (*corev1.Pod, error) {
	s.mu.Lock()
	s.pods++
	n := s.pods
	s.mu.Unlock()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: fmt.Sprintf("%s-%d", job.Name, n), Annotations: maps.Clone(job.Spec.Template.Annotations),
		Labels:          map[string]string{batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
	}, Spec: *job.Spec.Template.Spec.DeepCopy()}
	maps.Copy(pod.Labels, job.Spec.Template.Labels)
	return pod, s.live.Create(ctx, pod)
}

// play waits for the inputs as a kubelet would, does the work on the hosts, and
// returns the executions, the termination message, and whether all went well.
func (s *Space) play(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) (indexes []int, message string, good bool) {
	inputs, err := s.inputs(ctx, job, pod)
	if err != nil {
		return nil, "", false
	}
	hosts := []string{"localhost"}
	if list := pod.Annotations[common.HostsAnnotation]; list != "" {
		hosts = strings.Split(list, ",")
	}
	s.mu.Lock()
	recap, good, killed := map[string][]any{}, true, false
	steps := stepsOf(pod)
	for _, host := range hosts {
		if other, ok := s.busy[host]; ok && other != job.Name {
			s.overlaps = append(s.overlaps, fmt.Sprintf("%s: %s and %s", host, other, job.Name))
		}
		s.busy[host] = job.Name
		var met string
		var ran []string
		outcome, done := OK, 0
		for ; done < len(steps) && outcome == OK; done++ {
			e := execution(host, steps[done], job, inputs)
			e.Check = isCheck(pod)
			ran = append(ran, e.Step)
			e.Outcome, met = s.meet(e, string(inputs["known_hosts"]))
			indexes = append(indexes, len(s.book))
			s.book = append(s.book, e)
			outcome = e.Outcome
		}
		switch outcome {
		case OK:
			recap[host] = []any{3 * done, 1, 0, 0, 0, s.notes[host], met}
			if found := s.differences(host, ran, isCheck(pod)); len(found) > 0 {
				recap[host] = []any{3 * done, len(found), 0, 0, 0, "", met, done, 1, nil, 0, found}
			} else if isCheck(pod) {
				recap[host][1] = 0
			}
		case Failed:
			recap[host], good = []any{1, 0, 1, 0, 0, "task Configure: boom on " + host, met, done - 1}, false
		case Refused:
			recap[host], good = []any{1, 0, 1, 0, 0, "task Configure: no such option", met, done - 1, 1, done, 1}, false
		case Occupied:
			recap[host], good = []any{1, 0, 1, 0, 0, "task Check: 1 guests run", met, done - 1, 1, nil, 0, []any{}, 1}, false
		case Unreachable:
			recap[host], good = []any{done - 1, 0, 0, 1, 0, "connect to " + host + ": no route to host", "", done - 1, min(done-1, 1)}, false
		case Missing:
			good = false
		default:
			good, killed = false, true
		}
	}
	delay, gate := s.delay, s.gate
	s.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	select {
	case <-gate:
	default:
		select {
		case <-gate:
		case <-s.gone(ctx, job):
		}
	}
	if killed {
		return indexes, "", false
	}
	text, _ := json.Marshal(map[string]any{"v": 1, "steps": len(steps), "hosts": recap})
	return indexes, string(text), good
}

// gone is closed when the Job is deleted.
func (s *Space) gone(ctx context.Context, job *batchv1.Job) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		for alive(ctx, s.jobs, job) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
			if s.open() {
				return
			}
		}
	}()
	return out
}

func (s *Space) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gate:
		return true
	default:
		return false
	}
}

// close notes the end of executions; an outcome takes the place of theirs.
func (s *Space) close(job string, indexes []int, outcome Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range indexes {
		s.book[i].End = time.Now()
		if outcome != "" {
			s.book[i].Outcome = outcome
		}
		if s.busy[s.book[i].Host] == job {
			delete(s.busy, s.book[i].Host)
		}
	}
}

// inputs waits for the Secret with the inputs of the run, as a kubelet does.
func (s *Space) inputs(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) (map[string][]byte, error) {
	name := ""
	for _, v := range pod.Spec.Volumes {
		if v.Name == "inputs" && v.Secret != nil {
			name = v.Secret.SecretName
		}
	}
	if name == "" {
		return nil, nil
	}
	for {
		secret := &corev1.Secret{}
		err := s.live.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, secret)
		if err == nil {
			return secret.Data, nil
		}
		if !apierrors.IsNotFound(err) || !alive(ctx, s.live, job) {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// stepsOf the run of a Pod, in order; one without a name for a run of one step.
func stepsOf(pod *corev1.Pod) []string {
	for _, e := range pod.Spec.Containers[0].Env {
		var plays []struct {
			Vars struct {
				Step string `json:"edpm_step"`
			} `json:"vars"`
		}
		if e.Name != "RUNNER_PLAYBOOK" || yaml.Unmarshal([]byte(e.Value), &plays) != nil {
			continue
		}
		var steps []string
		for _, p := range plays {
			if p.Vars.Step != "" {
				steps = append(steps, p.Vars.Step)
			}
		}
		if len(steps) > 0 {
			return steps
		}
	}
	return []string{""}
}

// execution is what the inputs say of a step on the host.
func execution(host, step string, job *batchv1.Job, inputs map[string][]byte) Execution {
	e := Execution{Host: host, Job: job.Name, Start: time.Now()}
	vars, err := edpm.ParseInventory(inputs["inventory"], host)
	if err != nil {
		return e // a run that a person made
	}
	e.Vars, e.Files = vars, map[string]string{}
	if all, ok := vars["edpm_steps"].(map[string]any); ok {
		own, _ := all[step].(map[string]any)
		vars["edpm_step"], vars["edpm_hash"], vars["edpm_config_files"] = step, own["hash"], own["files"]
	}
	e.Step, _ = vars["edpm_step"].(string)
	e.Hash, _ = vars["edpm_hash"].(string)
	files, _ := vars["edpm_config_files"].(map[string]any)
	for name, path := range files {
		text, _ := path.(string)
		e.Files[name] = string(inputs[text[strings.LastIndex(text, "/")+1:]])
	}
	return e
}

func (s *Space) endPod(ctx context.Context, pod *corev1.Pod, message string, good bool) error {
	pod.Status.Phase = corev1.PodSucceeded
	exit := int32(0)
	if !good {
		pod.Status.Phase, exit = corev1.PodFailed, 2
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: "x", ImageID: "x",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: message, FinishedAt: metav1.Now()}},
	}}
	return s.live.Status().Update(ctx, pod)
}

// endJob ends the Job in the way that the API server accepts: the criterion is
// met first, and then the Job is complete or failed.
func (s *Space) endJob(ctx context.Context, job *batchv1.Job, start metav1.Time, good bool, failures int32) {
	patched := job.DeepCopy()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	end := func(t batchv1.JobConditionType, reason string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now, LastProbeTime: now}
	}
	patched.Status = batchv1.JobStatus{StartTime: &start, Failed: failures, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0)}
	if good {
		patched.Status.Succeeded, patched.Status.CompletionTime = 1, &now
		patched.Status.Conditions = []batchv1.JobCondition{end(batchv1.JobSuccessCriteriaMet, "CompletionsReached"), end(batchv1.JobComplete, "CompletionsReached")}
	} else {
		patched.Status.Conditions = []batchv1.JobCondition{end(batchv1.JobFailureTarget, "BackoffLimitExceeded"), end(batchv1.JobFailed, "BackoffLimitExceeded")}
	}
	if err := s.live.Status().Patch(ctx, patched, client.MergeFrom(job)); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		panic(fmt.Sprintf("the API server refuses the status of a Job: %v", err))
	}
}
