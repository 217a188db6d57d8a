// Package content reads the files that services of nova read next to their options, and gives
// them to services in pods. On hosts the role edpm_nova places them.
package content

import (
	"context"
	"errors"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// Read reads the files of an object or template, by name, and checks them as admission does. The
// error is a *phase.Halt of ServiceConfigReady when one is missing or is not what the service reads.
// No text of a file is in it.
func Read(ctx context.Context, r *inputs.Reader, service furtherfiles.Service, namespace, at string, f novav1.FurtherFiles) (map[string][]byte, error) {
	files, total := map[string][]byte{}, 0
	for _, file := range furtherfiles.Files(at, f) {
		content, err := bytesOf(ctx, r, namespace, file)
		if err != nil {
			return nil, named(file.At, inputs.Halt(condition.ServiceConfigReadyCondition, err))
		}
		total += len(content)
		_, again := files[file.Name]
		if why := service.Check(file.Name, string(content), again, total); why != "" {
			return nil, phase.Stalled(condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason, "%s: %s", file.At, why)
		}
		files[file.Name] = content
	}
	return files, nil
}

func bytesOf(ctx context.Context, r *inputs.Reader, namespace string, f furtherfiles.File) ([]byte, error) {
	if f.From == nil {
		return []byte(f.Text), nil
	}
	return r.File(ctx, namespace, *f.From)
}

// named adds where a person finds what is missing.
func named(at string, err error) error {
	if halt := (*phase.Halt)(nil); errors.As(err, &halt) {
		halt.Message = at + ": " + halt.Message
	}
	return err
}

// Sources are the names of the objects of a kind, Secret or ConfigMap, that have files.
func Sources(kind string, all ...novav1.FurtherFiles) []string {
	var names []string
	for _, f := range all {
		names = append(names, inputs.FileSources(kind, f.ConfigFiles)...)
	}
	return names
}
