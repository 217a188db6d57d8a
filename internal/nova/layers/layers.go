// Package layers knows what people say of the configuration of nova-compute on a host: the
// templates of its cell, in their order, and then its own customServiceConfig. Each is a
// layer, of a text and of Secrets, which come right after it; the later one wins.
package layers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Names of files on the host. oslo.config reads a directory in the order of the names
// (oslo_config/cfg.py, _ConfigDirOpt): 01-nova.conf, templates, what is the compute's own.
const (
	templatePrefix      = "01-template-"
	templateFile        = templatePrefix + "%02d-config.conf"
	templateSecretsFile = templatePrefix + "%02d-secrets.conf"
	ownFile             = "02-nova-override.conf"
	ownSecretsFile      = "03-nova-secrets.conf"
)

// Own is the path of the compute's own layer.
const Own = "spec.customServiceConfig"

// Layer is one customServiceConfig, with the Secrets that come right after it.
type Layer struct {
	// At is the path of customServiceConfig, after its object unless that is the compute.
	At      string
	Custom  string
	Secrets []string
	// File and SecretsFile are their names on the host.
	File, SecretsFile string
}

// Of returns the layers of a compute of the role, in the order in which they are read.
func Of(cell *novav1.NovaCell, role string, compute *novav1.NovaExternalCompute) []Layer {
	own := Layer{Own, compute.Spec.CustomServiceConfig, compute.Spec.CustomServiceConfigSecrets, ownFile, ownSecretsFile}
	return append(Templates(cell, role), own)
}

// Templates returns the layers that computes of the role have from their cell. Files are numbered
// by those that they have: others do not concern them.
func Templates(cell *novav1.NovaCell, role string) []Layer {
	var layers []Layer
	for i, t := range cell.Spec.ComputeTemplates {
		if !concerns(t, role) {
			continue
		}
		layers = append(layers, Layer{
			fmt.Sprintf("NovaCell %s: spec.computeTemplates[%d].customServiceConfig", cell.Name, i), t.CustomServiceConfig, t.CustomServiceConfigSecrets,
			fmt.Sprintf(templateFile, len(layers)+1), fmt.Sprintf(templateSecretsFile, len(layers)+1),
		})
	}
	return layers
}

// concerns reports whether a template says something to computes of the role.
func concerns(t novav1.NovaComputeTemplate, role string) bool {
	return (len(t.Roles) == 0 || slices.Contains(t.Roles, role)) && (t.CustomServiceConfig != "" || len(t.CustomServiceConfigSecrets) > 0)
}

// Files reads the layers of a compute, by name on the host, with the texts in them. The error is a *phase.Halt of
// ServiceConfigReady when a Secret is missing, or a text is nothing that a compute may read.
func Files(ctx context.Context, r *inputs.Reader, namespace string, layers []Layer) (files map[string][]byte, parts []podified.Part, err error) {
	files = map[string][]byte{ownFile: {}}
	for _, l := range layers {
		found, err := podified.ReadSnippets(ctx, r, identity.HostCompute, namespace, l.At, l.Custom, l.Secrets)
		if err != nil {
			return nil, nil, halt(err)
		}
		parts = append(parts, found.Parts...)
		if found.Custom != "" {
			files[l.File] = []byte(found.Custom)
		}
		if found.Secrets != "" {
			files[l.SecretsFile] = []byte(found.Secrets)
		}
	}
	return files, parts, nil
}

// Hash identifies what a compute has from its cell: the generated configuration and the files of
// templates among those that it reads.
func Hash(generated []byte, files map[string][]byte) string {
	content := map[string][]byte{novav1.GeneratedConfigKey: generated}
	for name, text := range files {
		if strings.HasPrefix(name, templatePrefix) {
			content[name] = text
		}
	}
	return inputs.Digest(content)[:32]
}

// PodHash identifies what a compute in pods has from its cell: the generated configuration, and
// the authorities that it trusts.
func PodHash(generated, authorities []byte) string {
	return inputs.Digest(map[string][]byte{novav1.GeneratedConfigKey: generated, podified.AuthoritiesFile: authorities})[:32]
}

// SecretNames are the Secrets that the templates of a cell name.
func SecretNames(cell *novav1.NovaCell) []string {
	var names []string
	for _, t := range cell.Spec.ComputeTemplates {
		names = append(names, t.CustomServiceConfigSecrets...)
	}
	return names
}

// halt shows a Secret that is missing where texts are refused.
func halt(err error) error {
	var halt *phase.Halt
	if errors.As(err, &halt) {
		halt.Type = condition.ServiceConfigReadyCondition
	}
	return err
}

// secretIndex holds the Secrets that the templates of a NovaCell name.
const secretIndex = "nova.layers"

// Index adds the index that CellsWith uses.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &novav1.NovaCell{}, secretIndex, func(cell client.Object) []string {
		return SecretNames(cell.(*novav1.NovaCell))
	})
}

// CellsWith returns a function from a Secret to the names of the cells whose templates name it.
func CellsWith(c client.Reader) func(context.Context, client.Object) []string {
	cells := watch.Users(c, func() client.ObjectList { return &novav1.NovaCellList{} }, secretIndex, watch.ByName)
	return func(ctx context.Context, secret client.Object) []string {
		var names []string
		for _, cell := range cells(ctx, secret) {
			names = append(names, cell.Name)
		}
		return names
	}
}
