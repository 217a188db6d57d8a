package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxEnvBytes is the most bytes that a text can have which a runner gets in an
// environment variable: Linux gives one 128 KiB with its name (MAX_ARG_STRLEN,
// execve(2)), and starts no process with a longer one.
const MaxEnvBytes = 127 << 10

// taskDebugger lets Ansible wait for a person at a keyboard when a task fails.
const taskDebugger = "ANSIBLE_ENABLE_TASK_DEBUGGER"

// Env checks the environment of a runner. The task debugger is refused as
// openstack-ansibleee-operator refuses it: a run would wait forever.
func Env(path *field.Path, env []corev1.EnvVar) field.ErrorList {
	var errs field.ErrorList
	for i, v := range env {
		at := path.Index(i)
		if found := validation.IsEnvVarName(v.Name); len(found) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, `is not the name of an environment variable: use letters, digits and "_", for example ANSIBLE_FORKS`))
		}
		if v.Name == taskDebugger {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, "would make a failed run wait for keyboard input: remove it"))
		}
		errs = append(errs, reachEnvVar(at.Child("value"), v)...)
		errs = append(errs, EnvText(at.Child("value"), v.Value)...)
	}
	return errs
}

// EnvText checks the length of a text that a runner gets in its environment. A
// Pod with a longer one would never start.
func EnvText(path *field.Path, text string) field.ErrorList {
	if len(text) <= MaxEnvBytes {
		return nil
	}
	return field.ErrorList{field.Invalid(path, size(len(text)), fmt.Sprintf(
		"is too long for an environment variable: use at most %s, and put longer values into a mounted Secret or ConfigMap", size(MaxEnvBytes)))}
}

// size in words, for a message in place of a value that is too large to be shown.
func size(bytes int) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d KiB", (bytes+1<<10-1)>>10)
}
