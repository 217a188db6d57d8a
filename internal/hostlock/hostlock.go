// Package hostlock decides which of the runs that want a host may have it: one at
// a time. It is apart from the execution engine, whose rights a manager that only
// makes Jobs of runs does not need.
package hostlock

import (
	"cmp"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// FirstBefore returns the run for which another one has to wait, or nil. Rivals
// are the runs that share a host or a machine with it and have not ended. One
// that has started goes first, and so does one that was created before: all runs
// are served in one order, so that none waits for one that waits for it.
func FirstBefore(run *ansibleeev1.OpenStackAnsibleEE, rivals []ansibleeev1.OpenStackAnsibleEE, started func(*ansibleeev1.OpenStackAnsibleEE) (bool, error)) (*ansibleeev1.OpenStackAnsibleEE, error) {
	for i := range rivals {
		first, err := started(&rivals[i])
		if err != nil || first || CreatedBefore(&rivals[i], run) {
			return &rivals[i], err
		}
	}
	return nil, nil
}

// CreatedBefore reports whether a is served before b when both wait.
func CreatedBefore(a, b *ansibleeev1.OpenStackAnsibleEE) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace)) < 0
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
