// Package layers knows what people say of the configuration of nova-compute on a host: the
// templates of its cell, in their order, and then its own customServiceConfig. Each is a
// layer, of a text and of Secrets, which come right after it, and of files that are read next to
// them; the later one wins.
package layers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles/content"
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

// ownPath is the path of the compute's own layer.
const ownPath = "spec.customServiceConfig"

// Layer is one customServiceConfig, with the Secrets that come right after it, and files that are
// read next to it.
type Layer struct {
	// At is the path of customServiceConfig, after its object unless that is the compute.
	At      string
	Custom  string
	Secrets []string
	// File and SecretsFile are their names on the host.
	File, SecretsFile string
	Further           novav1.FurtherFiles
}

// FurtherFiles are the files of the layer, which take the place of those of the same name in
// layers before it.
func (l Layer) FurtherFiles() []furtherfiles.File { return furtherfiles.Files(l.parent(), l.Further) }

// parent is the path of what has the fields of the layer.
func (l Layer) parent() string { return strings.TrimSuffix(l.At, ".customServiceConfig") }

// Of returns the layers of a compute of the role, in the order in which they are read.
func Of(cell *novav1.NovaCell, role string, compute *novav1.NovaExternalCompute) []Layer {
	own := Layer{ownPath, compute.Spec.CustomServiceConfig, compute.Spec.CustomServiceConfigSecrets, ownFile, ownSecretsFile, compute.Spec.FurtherFiles}
	return append(Templates(cell, role), own)
}

// Templates returns the layers that computes of the role have from their cell. Files are numbered
// by those that they have: others do not concern them.
func Templates(cell *novav1.NovaCell, role string) []Layer {
	var layers []Layer
	for i, t := range cell.Spec.ComputeTemplates {
		if !t.IsFor(role) || !isRead(t) {
			continue
		}
		layers = append(layers, Layer{
			fmt.Sprintf("NovaCell %s: spec.computeTemplates[%d].customServiceConfig", cell.Name, i), t.CustomServiceConfig, t.CustomServiceConfigSecrets,
			fmt.Sprintf(templateFile, len(layers)+1), fmt.Sprintf(templateSecretsFile, len(layers)+1), t.FurtherFiles,
		})
	}
	return layers
}

// isRead reports whether a template has something to read.
func isRead(t novav1.NovaComputeTemplate) bool {
	return t.CustomServiceConfig != "" || len(t.CustomServiceConfigSecrets) > 0 || t.HasFiles()
}

// Content is what a compute reads of its layers.
type Content struct {
	// Files by name on the host, with the texts in them.
	Files map[string][]byte
	// Parts are the texts of customServiceConfig and Secrets.
	Parts []podified.Part
	// ofCell are the files of templates, whatever the compute has in their place.
	ofCell map[string][]byte
}

// Read reads the layers of a compute. The error is a *phase.Halt of ServiceConfigReady when
// something is missing, or is nothing that a compute may read.
func Read(ctx context.Context, r *inputs.Reader, namespace string, layers []Layer) (*Content, error) {
	c := &Content{Files: map[string][]byte{ownFile: {}}, ofCell: map[string][]byte{}}
	for _, l := range layers {
		files, err := c.read(ctx, r, namespace, l)
		if err != nil {
			return nil, halt(err)
		}
		maps.Copy(c.Files, files)
		if strings.HasPrefix(l.File, templatePrefix) {
			maps.Copy(c.ofCell, files)
		}
	}
	return c, nil
}

// read returns the files of a layer.
func (c *Content) read(ctx context.Context, r *inputs.Reader, namespace string, l Layer) (map[string][]byte, error) {
	found, err := podified.ReadSnippets(ctx, r, identity.HostCompute, namespace, l.At, l.Custom, l.Secrets)
	if err != nil {
		return nil, err
	}
	c.Parts = append(c.Parts, found.Parts...)
	files, err := content.Read(ctx, r, furtherfiles.Compute, namespace, l.parent(), l.Further)
	if err != nil {
		return nil, err
	}
	if found.Custom != "" {
		files[l.File] = []byte(found.Custom)
	}
	if found.Secrets != "" {
		files[l.SecretsFile] = []byte(found.Secrets)
	}
	return files, nil
}

// Hash identifies what the compute has from its cell: the generated configuration and the files of
// templates.
func (c *Content) Hash(generated []byte) string {
	content := maps.Clone(c.ofCell)
	content[novav1.GeneratedConfigKey] = generated
	return inputs.Digest(content)[:32]
}

// PodHash identifies what a compute in pods has from its cell: the generated configuration, and
// the authorities that it trusts.
func PodHash(generated, authorities []byte) string {
	return inputs.Digest(map[string][]byte{novav1.GeneratedConfigKey: generated, podified.AuthoritiesFile: authorities})[:32]
}

// Sources are the objects of a kind, Secret or ConfigMap, that the templates of a cell name.
func Sources(kind string, cell *novav1.NovaCell) []string {
	var names []string
	for _, t := range cell.Spec.ComputeTemplates {
		if kind == "Secret" {
			names = append(names, t.CustomServiceConfigSecrets...)
		}
		names = append(names, content.Sources(kind, t.FurtherFiles)...)
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

// sourceIndexes hold the Secrets and the ConfigMaps that the templates of a NovaCell name.
var sourceIndexes = map[string]string{"Secret": "nova.layers.secrets", "ConfigMap": "nova.layers.configMaps"}

// Index adds the indexes that CellsWith uses.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for kind, index := range sourceIndexes {
		sources := func(cell client.Object) []string { return Sources(kind, cell.(*novav1.NovaCell)) }
		if err := indexer.IndexField(ctx, &novav1.NovaCell{}, index, sources); err != nil {
			return err
		}
	}
	return nil
}

// CellsWith returns a function from an object of a kind, Secret or ConfigMap, to the names of the
// cells whose templates name it.
func CellsWith(c client.Reader, kind string) func(context.Context, client.Object) []string {
	cells := watch.Users(c, func() client.ObjectList { return &novav1.NovaCellList{} }, sourceIndexes[kind], watch.ByName)
	return func(ctx context.Context, source client.Object) []string {
		var names []string
		for _, cell := range cells(ctx, source) {
			names = append(names, cell.Name)
		}
		return names
	}
}
