package edpm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

const (
	// maxTargetInputs is the most bytes of files and variables of one host. The rest
	// of maxInputs is for what the engine adds.
	maxTargetInputs = maxInputs - 16<<10
	// maxPod is the most bytes that a target adds to its run and its Pod, of which
	// etcd stores 1.5 MiB.
	maxPod = 512 << 10
	// maxToken is the longest rerun token that is kept as it is. It is in every
	// target of a run.
	maxToken = 63
)

// ShortToken is equal for equal tokens, and short.
func ShortToken(token string) string {
	if len(token) <= maxToken {
		return token
	}
	return digest(token)
}

// tooLarge says which inputs of the target are larger than a run can carry, and
// what helps; empty if all fit.
func (t *Target) tooLarge() string {
	inputs := map[string]int{"the variables (ansibleVars)": len(encode(t.Vars))}
	for name, content := range t.Files {
		inputs["file "+name] = len(content)
	}
	if why := exceeds(inputs, maxTargetInputs, "shorten it, or have the host download it"); why != "" {
		return why
	}
	return exceeds(map[string]int{
		"the playbook": len(t.Step.PlaybookContents), "env": len(encode(t.Env)), "extraMounts": len(encode(t.ExtraMounts)),
	}, maxPod, "shorten it, or put it into a Secret or ConfigMap that is mounted")
}

// exceeds names the largest part if all together are larger than the limit.
func exceeds(parts map[string]int, limit int, remedy string) string {
	total := 0
	for _, n := range parts {
		total += n
	}
	if total <= limit {
		return ""
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(parts)), func(a, b string) int { return cmp.Compare(parts[a], parts[b]) })
	return fmt.Sprintf("the inputs of the host have %d bytes, and the maximum is %d; the largest is %s with %d: %s", total, limit, largest, parts[largest], remedy)
}
