package phase

import (
	"context"
	"errors"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
)

// Func is one step of a phase. It works on its receiver's scope, and returns a *Halt to
// stop with a reason, or any other error for a fault that is to be retried.
type Func func(context.Context) error

// Phase is a part of a reconciliation that belongs to one condition.
type Phase struct {
	condition     condition.Type
	optional      bool
	informational bool
	funcs         []Func
	halted        func()
}

// Of returns the phase of a condition. The condition is Unknown until the functions have
// run, in their order. Whatever fails in one of them shows there, an error of the API
// server too. Then it is True, unless a function has set it. Without functions it is set
// by another phase.
func Of(t condition.Type, funcs ...Func) Phase { return Phase{condition: t, funcs: funcs} }

// OptionalOf is Of for a condition that an object has only if a function sets it or
// fails.
func OptionalOf(t condition.Type, funcs ...Func) Phase {
	return Phase{condition: t, optional: true, funcs: funcs}
}

// InformationalOf is Of for a condition that does not decide whether the object is Ready: a Halt of
// the functions ends this phase only.
func InformationalOf(t condition.Type, funcs ...Func) Phase {
	return Phase{condition: t, informational: true, funcs: funcs}
}

// NoticeOf is the phase of a condition that an object has only while a function sets it, of this
// phase or of another one, and that does not decide whether the object is Ready.
func NoticeOf(t condition.Type, funcs ...Func) Phase {
	return Phase{condition: t, optional: true, informational: true, funcs: funcs}
}

// WhenHalted returns phases that call the function when one of them ends the reconciliation with a
// Halt. After any other error, after a conflict, and while the cache shows an older object it is
// not known what is wanted.
func WhenHalted(phases []Phase, halted func()) []Phase {
	out := slices.Clone(phases)
	for i := range out {
		if !out[i].informational {
			out[i].halted = halted
		}
	}
	return out
}

// Deleting returns the phases of an object that is being deleted: the functions belong to
// one of the conditions, and the others stay Unknown.
func Deleting(phases []Phase, t condition.Type, funcs ...Func) []Phase {
	var out []Phase
	for _, p := range phases {
		if !p.optional && !p.informational && p.condition != t {
			out = append(out, Of(p.condition))
		}
	}
	return append(out, Of(t, funcs...))
}

// run runs the functions, and marks the condition True at their end.
func (p Phase) run(ctx context.Context, obj Object) error {
	for _, f := range p.funcs {
		if err := f(ctx); err != nil {
			if halt := (*Halt)(nil); p.halted != nil && errors.As(err, &halt) {
				p.halted()
			}
			return err
		}
	}
	if len(p.funcs) == 0 || p.optional {
		return nil
	}
	if c := obj.GetConditions().Get(p.condition); c != nil && c.Status == corev1.ConditionUnknown && c.Reason == condition.InitReason {
		obj.GetConditions().MarkTrue(p.condition, "%s", done(p.condition))
	}
	return nil
}

// done is what a condition says that is True without a message of its own.
func done(t condition.Type) string {
	switch t {
	case condition.InputReadyCondition:
		return condition.InputReadyMessage
	case condition.ServiceConfigReadyCondition:
		return condition.ServiceConfigReadyMessage
	case condition.DeploymentReadyCondition:
		return condition.DeploymentReadyMessage
	}
	return condition.ReadyMessage
}

// Conditions returns those that an object with these phases always has, each once.
func Conditions(phases []Phase) []condition.Type {
	var types []condition.Type
	for _, p := range phases {
		if !p.optional && !slices.Contains(types, p.condition) {
			types = append(types, p.condition)
		}
	}
	return types
}
