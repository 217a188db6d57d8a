// Package podsecurity asks the code of the API server which level of the Pod
// Security Standards a pod fits.
package podsecurity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Level returns the strictest level that a pod fits, and what the next stricter
// one forbids, empty for the level restricted.
func Level(pod corev1.PodTemplateSpec) (level string, forbidden []string) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // the checks are those of the library
	}
	for _, l := range []api.Level{api.LevelRestricted, api.LevelBaseline} {
		var why []string
		for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: l, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				why = append(why, fmt.Sprintf("%s: %s (%s)", l, result.ForbiddenReason, result.ForbiddenDetail))
			}
		}
		if len(why) == 0 {
			return string(l), forbidden
		}
		forbidden = why
	}
	return string(api.LevelPrivileged), forbidden
}
