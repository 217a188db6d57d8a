package openstackansibleee

import (
	"encoding/json"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// importPlaybook is an entry of the playbook of a run of several steps.
type importPlaybook struct {
	Name     string         `json:"name"`
	Playbook string         `json:"import_playbook"`
	Vars     map[string]any `json:"vars"`
}

// stepsPlaybook returns the playbook of a run of several steps, which imports theirs
// one after the other; empty for a run of one. What differs between the steps of a
// host is in the variable edpm_steps of the inventory. The number of the step is
// how the runner knows to which step a play belongs.
func stepsPlaybook(run *ansibleeev1.OpenStackAnsibleEE) string {
	if len(run.Spec.Steps) == 0 {
		return ""
	}
	entries := make([]importPlaybook, 0, len(run.Spec.Steps))
	for i, step := range run.Spec.Steps {
		of := "edpm_steps[" + quoted(step.Name) + "]"
		entries = append(entries, importPlaybook{"Step " + step.Name, step.Playbook, map[string]any{
			"edpm_step": step.Name, "edpm_step_number": i + 1,
			"edpm_hash": "{{ " + of + ".hash }}", "edpm_config_files": "{{ " + of + ".files }}",
		}})
	}
	return quoted(entries)
}

// quoted returns a value as JSON, which both YAML and Jinja understand.
func quoted(value any) string {
	text, _ := json.Marshal(value) // strings and numbers
	return string(text)
}
