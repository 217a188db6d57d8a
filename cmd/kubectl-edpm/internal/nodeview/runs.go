package nodeview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// What became of a host in a run.
const (
	Running     = "Running"
	Succeeded   = "Succeeded"
	Failed      = "Failed"
	Unreachable = "Unreachable"
	// NoResult : the run has ended, and what it did on the host is not known.
	NoResult = "NoResult"
)

// Run is a run of Ansible, seen from one of its hosts.
type Run struct {
	Name string `json:"name"`
	Step string `json:"step,omitempty"`
	// Outcome is one of the constants above.
	Outcome string `json:"outcome"`
	// Attempt for the same inputs, from 1; 0 when no one counts.
	Attempt int32      `json:"attempt,omitempty"`
	Start   *time.Time `json:"start,omitempty"`
	End     *time.Time `json:"end,omitempty"`
	// Recap is Ansible's result for the host, once there is one.
	Recap *ansibleeev1.HostStatus `json:"recap,omitempty"`
}

// RunsOf returns the runs that had the host, of the given step unless that is
// empty, the oldest first. A host is named as in the inventory.
func RunsOf(runs []ansibleeev1.OpenStackAnsibleEE, host, step string) []*ansibleeev1.OpenStackAnsibleEE {
	var found []*ansibleeev1.OpenStackAnsibleEE
	for i := range runs {
		r := &runs[i]
		_, wanted := r.Target(host)
		_, had := r.Host(host)
		if (wanted || had) && (step == "" || slices.Contains(r.StepNames(), step)) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *ansibleeev1.OpenStackAnsibleEE) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return found
}

// ByHost returns the runs of every host.
func ByHost(runs []ansibleeev1.OpenStackAnsibleEE) map[string][]ansibleeev1.OpenStackAnsibleEE {
	hosts := map[string][]ansibleeev1.OpenStackAnsibleEE{}
	for i := range runs {
		if runs[i].Spec.Check { // kubectl edpm drift shows those
			continue
		}
		names := map[string]bool{}
		for _, t := range runs[i].Spec.Targets {
			names[t.Host] = true
		}
		for _, h := range runs[i].Status.Hosts {
			names[h.Name] = true
		}
		for name := range names {
			hosts[name] = append(hosts[name], runs[i])
		}
	}
	return hosts
}

// NewRun returns what the run is for the host. What it says of a run of several steps is about the
// whole: the outcome is that of the step at which the host stopped, and so is the attempt.
func NewRun(r *ansibleeev1.OpenStackAnsibleEE, host string) Run {
	run := Run{Name: r.Name, Step: r.Spec.Step, Attempt: attempt(r, host), Start: timeOrNil(r.Status.StartTime), Outcome: Running}
	recap, known := r.Host(host)
	if known {
		run.Recap = &recap
	}
	if !r.Finished() {
		return run
	}
	run.End, run.Outcome = timeOrNil(r.Status.CompletionTime), NoResult
	switch {
	case !known:
	case r.Converged(recap):
		run.Outcome = Succeeded
	case recap.Unreachable > 0:
		run.Outcome = Unreachable
	case !recap.Untouched(): // a task failed, or the play was aborted
		run.Outcome = Failed
	}
	return run
}

// attempt at the first step that the host has not done in the run, else at the last one.
func attempt(r *ansibleeev1.OpenStackAnsibleEE, host string) int32 {
	target, _ := r.Target(host)
	recap, _ := r.Host(host)
	if n := len(target.Steps); n > 0 {
		return target.Steps[min(r.StepsDone(recap), n-1)].Attempt
	}
	return target.Attempt
}

// newest of the runs, oldest first, that is under way, and that has ended.
func newest(runs []*ansibleeev1.OpenStackAnsibleEE, host string) (current, last *Run) {
	for _, r := range runs {
		if run := NewRun(r, host); run.Outcome == Running {
			current = &run
		} else {
			last = &run
		}
	}
	return current, last
}

func timeOrNil(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

func byNodeName(a, b Node) int { return strings.Compare(a.Name, b.Name) }

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
