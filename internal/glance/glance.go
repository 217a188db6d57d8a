// Package glance knows what an API of a Glance inherits, which pods its layout
// has, and what they are called. Admission and the controllers share it.
package glance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// Port of the API.
const Port = 9292

// Effective returns an API of the spec with everything that it inherits, its
// layout and storage.external decided. A reference to a Topology that opts out
// is nil.
func Effective(spec glancev1.GlanceSpec, name string) glancev1.GlanceAPITemplate {
	entry := spec.GlanceAPIs[name]
	api := *entry.DeepCopy()
	api.NodeSelector = cmp.Or(api.NodeSelector, spec.NodeSelector)
	api.TopologyRef = topology.Nearest(api.TopologyRef, spec.TopologyRef)
	if api.CustomServiceConfig == "" {
		api.CustomServiceConfig = spec.CustomServiceConfig
	}
	if len(api.CustomServiceConfigSecrets) == 0 {
		api.CustomServiceConfigSecrets = spec.CustomServiceConfigSecrets
	}
	api.Storage = storage(api.Storage, spec.Storage)
	api.Type = layout(api)
	return api
}

// DecideLayouts sets the layouts that the spec leaves out.
func DecideLayouts(spec *glancev1.GlanceSpec) {
	for name, api := range spec.GlanceAPIs {
		api.Type = Effective(*spec, name).Type
		spec.GlanceAPIs[name] = api
	}
}

// storage is that of an API, field by field its own or its Glance's. Without a
// size there can be no claims (glance-operator api/v1beta1/glance_webhook.go).
func storage(own, parent glancev1.Storage) glancev1.Storage {
	if own.StorageClass == "" {
		own.StorageClass = parent.StorageClass
	}
	if own.StorageRequest == nil {
		own.StorageRequest = parent.StorageRequest
	}
	if own.External == nil {
		own.External = parent.External
	}
	own.External = ptr.To(External(own))
	return own
}

// External reports whether pods with this storage have no claims.
func External(s glancev1.Storage) bool { return ptr.Deref(s.External, s.StorageRequest == nil) }

// layout is that of the API, or the one that its backend needs.
func layout(api glancev1.GlanceAPITemplate) glancev1.Layout {
	switch {
	case api.Type != "":
		return api.Type
	case FileBackend(api.APIService):
		return glancev1.LayoutSingle
	}
	return glancev1.LayoutSplit
}

// FileBackend reports whether the images of an API are files on the storage of its
// pods: one backend of type file, or none named (glance-operator
// api/v1beta1/glance_webhook.go IsFileBackend). What Secrets say is not known
// here, so an API with customServiceConfigSecrets and no backend counts as any other.
func FileBackend(api glancev1.APIService) bool {
	backends := EnabledBackends(api.CustomServiceConfig)
	if len(backends) == 0 {
		return len(api.CustomServiceConfigSecrets) == 0
	}
	return len(backends) == 1 && slices.Contains(slices.Collect(maps.Values(backends)), "file")
}

// EnabledBackends returns the types of the backends that a snippet enables, by
// name: none if it does not set enabled_backends, or cannot be read.
func EnabledBackends(snippet string) map[string]string {
	config, err := oslo.Parse(snippet)
	if err != nil {
		return nil
	}
	values := config.Get("DEFAULT", "enabled_backends")
	if len(values) == 0 {
		return nil
	}
	backends := map[string]string{}
	for _, item := range strings.Split(values[len(values)-1], ",") {
		if name, kind, ok := strings.Cut(strings.TrimSpace(item), ":"); ok {
			backends[strings.TrimSpace(name)] = strings.TrimSpace(kind)
		}
	}
	return backends
}

// APIName is the name of the GlanceAPI of a group of pods (seeds/001).
func APIName(glance, api string, t glancev1.APIType) string {
	return fmt.Sprintf("%s-%s-%s", glance, api, t)
}

// SetName is the name of the StatefulSet of a GlanceAPI, as the pods in the
// listings of seeds/000 and 001 show it.
func SetName(api string, t glancev1.APIType) string {
	if t == glancev1.APISingle {
		return api
	}
	return api + "-api"
}

// ServiceName is the name of the Service of an API for an endpoint.
func ServiceName(api, endpoint string) string { return "glance-" + api + "-" + endpoint }

// KeystoneEndpoint is the API that the catalog is to name: the one that the spec
// says, or the only one that can be; empty if there is none.
func KeystoneEndpoint(spec glancev1.GlanceSpec) string {
	if spec.KeystoneEndpoint != "" {
		return spec.KeystoneEndpoint
	}
	var able []string
	for name := range spec.GlanceAPIs {
		if Effective(spec, name).Type != glancev1.LayoutEdge {
			able = append(able, name)
		}
	}
	if len(able) != 1 {
		return ""
	}
	return able[0]
}
