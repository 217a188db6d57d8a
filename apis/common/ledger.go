package common

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Ledger records, by step, what ran successfully on a host.
type Ledger struct {
	// Hash of what ran successfully, by step.
	// +optional
	// +mapType=atomic
	Hash map[string]string `json:"hash,omitempty"`

	// Runs that made the hashes true, by step.
	// +optional
	// +mapType=atomic
	Runs map[string]RunRecord `json:"runs,omitempty"`

	// HostKey is the public key by which the host is known: that of the
	// annotation HostKeyAnnotation, else the one that it showed when it was first
	// met. A host that shows another one is not talked to.
	// +optional
	HostKey string `json:"hostKey,omitempty"`

	// NextRetry is when the step that failed on the host is tried again. Absent
	// while none has failed, and while none may be tried again.
	// +optional
	NextRetry *metav1.Time `json:"nextRetry,omitempty"`

	// Drift is what the last checks found on the host, by step. Absent unless
	// deployStrategy.driftCheck is set.
	// +optional
	// +listType=map
	// +listMapKey=step
	Drift []Drift `json:"drift,omitempty"`
}

// RunRecord is the last run of a step that succeeded on a host.
type RunRecord struct {
	// Name of the OpenStackAnsibleEE.
	Name string `json:"name"`
	// Serial number of the run among those of the step on this host.
	Serial int64 `json:"serial"`
	// Rerun is the token that the run honoured.
	// +optional
	Rerun string `json:"rerun,omitempty"`
	// Tokens are the last rerun tokens that were honoured, or overridden by
	// another one, by the object that had them: role, node or service. Removing a
	// token causes no run, whichever is in force then.
	// +optional
	Tokens map[string]string `json:"tokens,omitempty"`
	// End of the run.
	// +optional
	End *metav1.Time `json:"end,omitempty"`
}

// unknownKey is where Runs says that the object was restored from a backup
// without its status.
const unknownKey = "@unknown"

// SetUnknown notes that no one knows what ran on the host before.
func (l *Ledger) SetUnknown() {
	if l.Runs == nil {
		l.Runs = map[string]RunRecord{}
	}
	l.Runs[unknownKey] = RunRecord{Name: "unknown"}
}

// Unknown reports whether no one knows what ran on the host before.
func (l *Ledger) Unknown() bool {
	_, ok := l.Runs[unknownKey]
	return ok
}

// Ran reports whether a run on the host is recorded. A user of a namespace can create an
// object that looks like a restored one, of which it is unknown, but none that has run.
func (l *Ledger) Ran() bool {
	return len(l.Runs) > 1 || len(l.Runs) == 1 && !l.Unknown()
}

// Set records a successful run.
func (l *Ledger) Set(step, hash string, run RunRecord) {
	if l.Hash == nil {
		l.Hash = map[string]string{}
	}
	if l.Runs == nil {
		l.Runs = map[string]RunRecord{}
	}
	l.Hash[step], l.Runs[step] = hash, run
}
