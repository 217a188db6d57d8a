package inputs

import (
	"errors"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// MissingError says that a Secret or ConfigMap, or a key of it, is not there.
type MissingError struct {
	Kind, Name string
	// Key that is missing; empty when the whole object is.
	Key string
}

// Error names the object and the remedy.
func (e *MissingError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s %q does not exist: create it in the same namespace", e.Kind, e.Name)
	}
	return fmt.Sprintf("%s %q has no key %q, or it is empty: add it", e.Kind, e.Name, e.Key)
}

func (e *MissingError) reason() condition.Reason {
	return map[[2]bool]condition.Reason{
		{true, true}: common.SecretMissingReason, {true, false}: common.SecretKeyMissingReason,
		{false, true}: common.ConfigMapMissingReason, {false, false}: common.ConfigMapKeyMissingReason,
	}[[2]bool{e.Kind == "Secret", e.Key == ""}]
}

// ForbiddenError says that the manager may not read a Secret.
type ForbiddenError struct{ Namespace, Name string }

// Error names the Secret and the remedy.
func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("Secret %q cannot be read: the operators have no permissions for Secrets in namespace %s; "+
		"bind their ClusterRole for Secrets in the namespace: see Rights in docs/install.md", e.Name, e.Namespace)
}

// LimitError says that a Secret is not read because objects of its namespace name
// more Secrets, or larger ones, than the manager holds in memory.
type LimitError struct {
	Namespace, Name string
	Limits          Limits
}

// Error names the Secret, the limits and the remedy.
func (e *LimitError) Error() string {
	return fmt.Sprintf("Secret %q is not read: objects of namespace %s refer to more than %d Secrets, or to more than %d MiB of Secrets; "+
		"share Secrets between hosts, remove references that are not needed (it is retried within ten minutes), or raise --secrets-per-namespace of the manager",
		e.Name, e.Namespace, e.Limits.Secrets, e.Limits.Bytes>>20)
}

// Halt turns what is missing, must not be read or has no room into a *phase.Halt of the
// condition. Other errors, and nil, are returned as they are.
func Halt(t condition.Type, err error) error {
	var missing *MissingError
	var forbidden *ForbiddenError
	var limit *LimitError
	switch {
	case errors.As(err, &missing):
		return phase.Failing(t, missing.reason(), "%v", missing)
	case errors.As(err, &forbidden):
		return phase.Failing(t, common.SecretForbiddenReason, "%v", forbidden)
	case errors.As(err, &limit):
		return phase.Failing(t, common.SecretLimitReason, "%v", limit)
	}
	return err
}
