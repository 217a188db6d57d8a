package v1beta1

import "github.com/edpm-operators/edpm-operators/apis/common"

// RunStep is one of several steps of a run.
type RunStep struct {
	// Name of the step.
	Name string `json:"name"`

	// Playbook of the image that carries it out, as in spec.playbook.
	Playbook string `json:"playbook"`
}

// TargetStep is what one of several steps brings a host to.
type TargetStep struct {
	// Hash of everything that decides the outcome of the step on the host.
	Hash string `json:"hash"`

	// Serial number of the run among those of the step on this host, from 1.
	Serial int64 `json:"serial"`

	// Attempt counts the runs for this hash, from 1.
	Attempt int32 `json:"attempt"`
}

// StepNames returns the steps of the run in order. A run that a person created has none.
func (r *OpenStackAnsibleEE) StepNames() []string {
	switch {
	case len(r.Spec.Steps) > 0:
		names := make([]string, len(r.Spec.Steps))
		for i, s := range r.Spec.Steps {
			names[i] = s.Name
		}
		return names
	case r.Spec.Step != "":
		return []string{r.Spec.Step}
	}
	return nil
}

// stepIndex returns the place of a step in the run, -1 if it has no such step.
func (r *OpenStackAnsibleEE) stepIndex(name string) int {
	for i, step := range r.StepNames() {
		if step == name {
			return i
		}
	}
	return -1
}

// StepTarget returns the target of a host as if the step were the only one of the run, and false
// when the run does not carry out the step on the host.
func (r *OpenStackAnsibleEE) StepTarget(step, host string) (Target, bool) {
	t, found := r.Target(host)
	i := r.stepIndex(step)
	if i < 0 || !found {
		return Target{}, false
	}
	if i < len(t.Steps) {
		t.Hash, t.Serial, t.Attempt = t.Steps[i].Hash, t.Steps[i].Serial, t.Steps[i].Attempt
	}
	t.Steps = nil
	return t, true
}

// StepHost returns the result of a host as if the step were the only one of the
// run. It is known when the run says what became of the step there, and reached
// unless it is certain that the host did not get that far.
func (r *OpenStackAnsibleEE) StepHost(step, host string) (result HostStatus, known, reached bool) {
	h, known := r.Host(host)
	if i := r.stepIndex(step); known && i >= 0 && len(r.Spec.Steps) > 1 {
		return h.ofStep(int32(i), int32(len(r.Spec.Steps))) //nolint:gosec // at most MaxSteps
	}
	return h, known, true
}

// StepDifferences returns which tasks of the step would change a host, as a check found. Runner
// images that do not name tasks count those of all steps.
func (r *OpenStackAnsibleEE) StepDifferences(step, host string) []common.Difference {
	h, _ := r.Host(host)
	if len(h.Differences) == 0 && h.Changed > 0 { // an image that does not name them
		return []common.Difference{{Omitted: h.Changed}}
	}
	var found []common.Difference
	for _, d := range h.Differences {
		if int(d.Step) == r.stepIndex(step)+1 {
			found = append(found, d.Difference)
		}
	}
	return found
}

// ofStep is the part of the result that is about the step with the index.
func (h HostStatus) ofStep(i, steps int32) (result HostStatus, known, reached bool) {
	done := h.doneOf(steps)
	begun := done + 1
	if h.StepsBegun != nil {
		begun = max(begun, *h.StepsBegun)
	}
	switch {
	case i < done:
		result = HostStatus{Name: h.Name, OK: h.OK, Changed: h.Changed, Skipped: h.Skipped, HostKey: h.HostKey, StepsDone: new(int32(1))}
		if done == steps { // what modules noted, and not why the next step failed
			result.Message = h.Message
		}
		return result, true, true
	case i == done:
		h.StepsDone, h.StepsBegun = new(int32(0)), nil
		return h, true, true
	case i < begun, h.StepsDone == nil && !h.Untouched():
		return HostStatus{Name: h.Name}, false, true
	}
	return HostStatus{Name: h.Name}, false, false
}

// doneOf is how many of the steps the host has done, as far as is known. One that
// failed has not done them all.
func (h HostStatus) doneOf(steps int32) int32 {
	most := steps
	if h.Failed > 0 || h.Unreachable > 0 {
		most--
	}
	if h.StepsDone != nil {
		return min(*h.StepsDone, most)
	}
	if h.Converged() {
		return steps
	}
	return 0
}

// Converged reports whether a host has done all steps of the run.
func (r *OpenStackAnsibleEE) Converged(h HostStatus) bool {
	return h.Converged() && r.StepsDone(h) == max(1, len(r.Spec.Steps))
}

// StepsDone returns how many steps of the run a host has done.
func (r *OpenStackAnsibleEE) StepsDone(h HostStatus) int {
	return int(h.doneOf(int32(max(1, len(r.Spec.Steps))))) //nolint:gosec // at most MaxSteps
}
