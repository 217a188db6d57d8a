// Package edpmservice knows what an EDPMServiceClass says: whether it is valid, what it
// reads, and which classes wait for each other.
package edpmservice

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/utils/ptr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
)

// Variables of the playbooks that a class does not set in vars.
const (
	nameVar  = "edpm_service_name"
	imageVar = "edpm_service_image"
)

// Reads returns the Secrets and ConfigMaps that a class names, each as "Secret/name" or
// "ConfigMap/name".
func Reads(class *edpmv1.EDPMServiceClass) []string {
	return inputs.FileNames(class.Spec.ConfigFiles)
}

// Files reads the files of a class: its configFiles, and customServiceConfig if there is
// any. Errors are those of the reader.
func Files(ctx context.Context, r *inputs.Reader, class *edpmv1.EDPMServiceClass) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range class.Spec.ConfigFiles {
		content, err := r.File(ctx, class.Namespace, f)
		if err != nil {
			return nil, err
		}
		files[f.Name] = content
	}
	if text := class.Spec.CustomServiceConfig; text != "" {
		files[edpmv1.DefaultsFile(class.Name)] = []byte(text)
	}
	return files, nil
}

// Vars returns the variables of the playbooks of a class on a host that has variables of
// its own: these win over the vars of the class, and what the class says of its service
// wins over both.
func Vars(class *edpmv1.EDPMServiceClass, host map[string]any) (map[string]any, error) {
	vars, err := inherit.Vars(class.Spec.Vars)
	if err != nil {
		return nil, fmt.Errorf("spec.vars: %w", err)
	}
	maps.Copy(vars, host)
	vars[nameVar] = class.Name
	if class.Spec.Image != "" {
		vars[imageVar] = class.Spec.Image
	}
	return vars, nil
}

// Rollout returns how the service of a class is rolled out over nodes with the given
// strategy.
func Rollout(class *edpmv1.EDPMServiceClass, node dataplanev1.DeployStrategySection) (edpm.Strategy, error) {
	own := class.Spec.DeployStrategy
	section := inherit.MergeStrategy(dataplanev1.DeployStrategySection{
		BatchSize: own.BatchSize, MaxUnavailable: own.MaxUnavailable, MaxFailures: own.MaxFailures,
	}, node)
	strategy, err := dataplane.Rollout(section)
	strategy.Deploy = strategy.Deploy && ptr.Deref(own.Deploy, true)
	return strategy, err
}

// Cycle returns the names of services that come after each other, the first one again at
// the end, if the named one is reached from itself; nil if not. after has the services
// that each class comes after.
func Cycle(after map[string][]string, name string) []string {
	seen := map[string]bool{}
	var walk func(path []string) []string
	walk = func(path []string) []string {
		for _, next := range after[path[len(path)-1]] {
			switch {
			case next == name:
				return append(path, next)
			case seen[next]:
				continue
			}
			seen[next] = true
			if found := walk(append(path, next)); found != nil {
				return found
			}
		}
		return nil
	}
	return walk([]string{name})
}
