package common

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CheckLabel with the value "true" marks a run that changes nothing, with its Job and its Pod.
const CheckLabel = "edpm.openstack.org/check"

// RepairPolicy says what becomes of a step that differs on a host.
// +kubebuilder:validation:Enum=Never;Ask;Always
type RepairPolicy string

// Policies.
const (
	// RepairNever reports it.
	RepairNever RepairPolicy = "Never"
	// RepairAsk has a condition say how a person repairs it.
	RepairAsk RepairPolicy = "Ask"
	// RepairAlways has the step run again, once for each finding.
	RepairAlways RepairPolicy = "Always"
)

// HostInSyncCondition : a check of the host found differences from what its steps brought it
// to, which `status.drift` and `kubectl edpm drift` show. Present only then; Ready does not
// depend on it.
const HostInSyncCondition condition.Type = "HostInSync"

// Reasons of HostInSync.
const (
	// HostDiffersReason : the message names the steps that would change the host, which is left
	// as it is. Remedy: compare `kubectl edpm drift <node>` with what was done on the host. `kubectl
	// edpm rerun <node>` repairs it; to keep a change, add it to the variables or the
	// configuration.
	HostDiffersReason condition.Reason = "HostDiffers"
	// RepairAwaitedReason : as `HostDiffers`, and the role has `repair: Ask`. Remedy: set
	// annotation `edpm.openstack.org/rerun`, as `kubectl edpm rerun <node>` does: the next run
	// repairs the host.
	RepairAwaitedReason condition.Reason = "RepairAwaited"
	// DriftReturnedReason : the step was run again because a check found differences, and the next
	// check found differences again; the repair is not repeated automatically. Remedy: use `kubectl
	// edpm drift <node>` to find out what changes the host, such as another tool, or tasks that
	// always report changes in check mode; then run `kubectl edpm rerun <node>`.
	DriftReturnedReason condition.Reason = "DriftReturned"
)

// Difference is what a check found on a host: a task that would change it.
type Difference struct {
	// Task that would change the host. Empty when the report of the run had no room for its name.
	// +optional
	Task string `json:"task,omitempty"`
	// Names of files, units or containers that it would change, as far as it says.
	// +optional
	// +listType=atomic
	Names []string `json:"names,omitempty"`
	// Omitted is how many more tasks of the step would change the host.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// Drift is what the last check of a step found on the host.
type Drift struct {
	// Step that was checked.
	Step string `json:"step"`
	// Checked is when the host had its turn to be checked last.
	Checked metav1.Time `json:"checked"`
	// Run that found the differences. It may no longer exist.
	// +optional
	Run string `json:"run,omitempty"`
	// Of is the run whose outcome was checked.
	// +optional
	Of string `json:"of,omitempty"`
	// Differences from what the step brought the host to; none if there are none.
	// +optional
	// +listType=atomic
	Differences []Difference `json:"differences,omitempty"`
	// Repaired is true when the step was run again because of what the last check but one
	// found. What differs now is not repaired automatically.
	// +optional
	Repaired bool `json:"repaired,omitempty"`
	// Message says why the last check could not be done. The differences are those of the one before.
	// +optional
	Message string `json:"message,omitempty"`
}

// Differs reports whether the step would change the host.
func (d Drift) Differs() bool { return len(d.Differences) > 0 }

// Tasks returns the tasks that would change the host, each with what it would change, at most so
// many, and how many more there are. There are none without differences.
func (d Drift) Tasks(most int) []string {
	var tasks []string
	more := 0
	for _, difference := range d.Differences {
		switch {
		case difference.Task == "":
			more += max(1, int(difference.Omitted))
		case len(tasks) == most:
			more++
		case len(difference.Names) > 0:
			tasks = append(tasks, fmt.Sprintf("%s (%s)", difference.Task, strings.Join(difference.Names, ", ")))
		default:
			tasks = append(tasks, difference.Task)
		}
	}
	if more > 0 {
		tasks = append(tasks, fmt.Sprintf("%d more tasks", more))
	}
	return tasks
}

// DriftOf returns what is known of a step, the zero value but for its name if it was never checked.
func (l *Ledger) DriftOf(step string) Drift {
	if i := l.driftIndex(step); i >= 0 {
		return l.Drift[i]
	}
	return Drift{Step: step}
}

// SetDrift records what is known of a step.
func (l *Ledger) SetDrift(d Drift) {
	if i := l.driftIndex(d.Step); i >= 0 {
		l.Drift[i] = d
		return
	}
	l.Drift = append(l.Drift, d)
}

func (l *Ledger) driftIndex(step string) int {
	return slices.IndexFunc(l.Drift, func(d Drift) bool { return d.Step == step })
}
