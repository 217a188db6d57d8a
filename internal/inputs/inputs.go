// Package inputs reads the Secrets and ConfigMaps that people give to the suite.
//
// Secrets are watched by their metadata alone and read when they have changed:
// the manager does not hold every Secret of the cluster in memory.
package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get;list;watch

// MissingError says that a Secret or ConfigMap, or a key of it, is not there.
type MissingError struct {
	Kind, Name string
	// Key that is missing; empty when the whole object is.
	Key string
}

// Error names the object and the remedy.
func (e *MissingError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s %q does not exist: create it in the same namespace", e.Kind, e.Name)
	}
	return fmt.Sprintf("%s %q has no key %q, or it is empty: add it", e.Kind, e.Name, e.Key)
}

// Reader reads Secrets and ConfigMaps.
type Reader struct {
	cached client.Reader
	live   client.Reader

	mu      sync.Mutex
	secrets map[types.NamespacedName]secret
}

type secret struct {
	resourceVersion string
	data            map[string][]byte
}

// NewReader returns a Reader that learns from the cached reader which version
// of a Secret is current and reads its content with the live one.
func NewReader(cached, live client.Reader) *Reader {
	return &Reader{cached: cached, live: live, secrets: map[types.NamespacedName]secret{}}
}

// Secret returns the data of a Secret, which the caller must not change, or a
// *MissingError when it does not exist.
func (r *Reader) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.cached.Get(ctx, key, meta); err != nil {
		r.forget(key)
		return nil, missing(err, "Secret", name)
	}
	if known, ok := r.known(key); ok && known.resourceVersion == meta.ResourceVersion {
		return known.data, nil
	}
	full := &corev1.Secret{}
	if err := r.live.Get(ctx, key, full); err != nil {
		return nil, missing(err, "Secret", name)
	}
	r.remember(key, secret{full.ResourceVersion, full.Data})
	return full.Data, nil
}

// SecretKey returns the value of one key of a Secret, or a *MissingError when
// the Secret or the key does not exist or the value is empty.
func (r *Reader) SecretKey(ctx context.Context, namespace, name, key string) ([]byte, error) {
	data, err := r.Secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if len(data[key]) == 0 {
		return nil, &MissingError{Kind: "Secret", Name: name, Key: key}
	}
	return data[key], nil
}

// ConfigMap returns the data of a ConfigMap, binary data included, or a
// *MissingError when it does not exist.
func (r *Reader) ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	cm := &corev1.ConfigMap{}
	if err := r.cached.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, cm); err != nil {
		return nil, missing(err, "ConfigMap", name)
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	for k, v := range cm.BinaryData {
		data[k] = v
	}
	return data, nil
}

// Digest returns a hash of the data, the same for equal keys and values.
func Digest(data map[string][]byte) string {
	keys := make([]string, 0, len(data))
	for k := range data {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	h := sha256.New()
	for _, k := range keys {
		fmt.Fprintf(h, "%d:%s=%d:", len(k), k, len(data[k]))
		h.Write(data[k])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func missing(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return &MissingError{Kind: kind, Name: name}
	}
	return fmt.Errorf("reading %s %s: %w", kind, name, err)
}

func (r *Reader) known(key types.NamespacedName) (secret, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.secrets[key]
	return s, ok
}

func (r *Reader) remember(key types.NamespacedName, s secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[key] = s
}

func (r *Reader) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.secrets, key)
}
