package inputs

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// envSource is one key of a Secret or ConfigMap that a variable takes its value from.
type envSource struct {
	kind, name, key string
	optional        bool
}

// envSources are the sources of an environment, in its order. Values of the Pod
// itself have none.
func envSources(env []corev1.EnvVar) []envSource {
	var sources []envSource
	for _, v := range env {
		switch from := v.ValueFrom; {
		case from == nil:
		case from.SecretKeyRef != nil:
			ref := from.SecretKeyRef
			sources = append(sources, envSource{"Secret", ref.Name, ref.Key, ptr.Deref(ref.Optional, false)})
		case from.ConfigMapKeyRef != nil:
			ref := from.ConfigMapKeyRef
			sources = append(sources, envSource{"ConfigMap", ref.Name, ref.Key, ptr.Deref(ref.Optional, false)})
		}
	}
	return sources
}

// EnvNames are the Secrets and ConfigMaps that an environment takes values from,
// as Kind/name.
func EnvNames(env []corev1.EnvVar) []string {
	var names []string
	for _, s := range envSources(env) {
		names = append(names, s.kind+"/"+s.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// EnvDigests returns digests of the values that an environment takes from Secrets
// and ConfigMaps, and of the whole ConfigMap envFrom if it exists; empty means
// none. The map is nil when there is nothing of either. Errors are those of
// Secret and ConfigMap; what is optional may be missing.
func (r *Reader) EnvDigests(ctx context.Context, namespace string, env []corev1.EnvVar, envFrom string) (map[string]string, error) {
	var digests map[string]string
	add := func(name string, data map[string][]byte) {
		if digests == nil {
			digests = map[string]string{}
		}
		digests[name] = Digest(data)
	}
	missing := (*MissingError)(nil)
	for _, s := range envSources(env) {
		value, err := r.envValue(ctx, namespace, s)
		if errors.As(err, &missing) && s.optional {
			continue
		}
		if err != nil {
			return nil, err
		}
		add(s.kind+"/"+s.name+"/"+s.key, map[string][]byte{s.key: value})
	}
	if envFrom == "" {
		return digests, nil
	}
	data, err := r.ConfigMap(ctx, namespace, envFrom)
	if errors.As(err, &missing) {
		return digests, nil
	}
	if err == nil {
		add("ConfigMap/"+envFrom, data)
	}
	return digests, err
}

// envValue reads a value, which may be empty, as that of a variable may.
func (r *Reader) envValue(ctx context.Context, namespace string, s envSource) ([]byte, error) {
	read := r.ConfigMap
	if s.kind == "Secret" {
		read = r.Secret
	}
	data, err := read(ctx, namespace, s.name)
	if err != nil {
		return nil, err
	}
	value, ok := data[s.key]
	if !ok {
		return nil, &MissingError{Kind: s.kind, Name: s.name, Key: s.key}
	}
	return value, nil
}
