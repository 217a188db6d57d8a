// Package inputs reads the Secrets and ConfigMaps that people give to edpm-operators.
//
// The Secrets of the cluster are no business of the manager: it asks for those
// alone that objects of edpm-operators name, one by one. So its right to read Secrets
// can be granted by namespace. Of ConfigMaps it knows the metadata of all, since
// each node has one, and reads the content of those that objects of edpm-operators name.
package inputs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=secrets,verbs=list;watch

// Reader reads Secrets and ConfigMaps.
type Reader struct {
	configMaps *configMaps
	secrets    *secrets
}

// NewReader returns a Reader that reads the ConfigMaps of which the cache of the
// manager has the metadata, and watches the Secrets that it is asked for until the
// context ends.
func NewReader(ctx context.Context, mgr ctrl.Manager, limits Limits) (*Reader, error) {
	api, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for Secrets: %w", err)
	}
	r := &Reader{configMaps: newConfigMaps(mgr.GetCache(), mgr.GetAPIReader()), secrets: newSecrets(ctx, api, cmp.Or(limits, DefaultLimits))}
	return r, mgr.Add(r.secrets)
}

// NewConfigMapReader returns a Reader of ConfigMaps alone, of which metadata has the metadata.
func NewConfigMapReader(metadata, live client.Reader) *Reader {
	return &Reader{configMaps: newConfigMaps(metadata, live)}
}

// SecretChanges returns a source of events of the Secrets that were read through
// the Reader: one that was missing appears, changes, or goes, or may be read at
// last. A Secret stays watched as long as one of the handlers finds an object
// that it concerns.
func (r *Reader) SecretChanges(h handler.EventHandler) source.Source { return r.secrets.source(h) }

// Secret returns the data of a Secret, which the caller must not change, a
// *MissingError when it does not exist, a *ForbiddenError when the manager may not
// read it, or a *LimitError when its namespace has no more room.
func (r *Reader) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret, err := r.Generated(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, &MissingError{Kind: "Secret", Name: name}
	}
	return secret.Data, nil
}

// Generated returns a Secret that edpm-operators makes itself, which the caller must
// not change, or nil when it does not exist. Errors are those of Secret.
func (r *Reader) Generated(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret, err := r.secrets.get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	switch {
	case apierrors.IsForbidden(err):
		return nil, &ForbiddenError{Namespace: namespace, Name: name}
	case err != nil: // a *LimitError among others
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	return secret, nil
}

// SecretKey returns the value of one key of a Secret, or a *MissingError when
// the Secret or the key does not exist or the value is empty. Other errors are
// those of Secret.
func (r *Reader) SecretKey(ctx context.Context, namespace, name, key string) ([]byte, error) {
	data, err := r.Secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return Value(name, data, key)
}

// Value returns the value of one key of a Secret that was read, or a *MissingError.
func Value(name string, data map[string][]byte, key string) ([]byte, error) {
	if len(data[key]) == 0 {
		return nil, &MissingError{Kind: "Secret", Name: name, Key: key}
	}
	return data[key], nil
}

// ConfigMap returns the data of a ConfigMap, binary data included, which the
// caller must not change, or a *MissingError when it does not exist.
func (r *Reader) ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	found, err := r.configMaps.get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	if apierrors.IsNotFound(err) {
		return nil, &MissingError{Kind: "ConfigMap", Name: name}
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	return found.data, nil
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
