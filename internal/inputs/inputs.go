// Package inputs reads the Secrets and ConfigMaps that people give to the suite.
//
// The Secrets of the cluster are no business of the manager: it asks for those
// alone that objects of the suite name, one by one. So its right to read Secrets
// can be granted by namespace.
package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	cached  client.Reader
	secrets *secrets
}

// NewReader returns a Reader that reads ConfigMaps from the cache of the manager
// and watches the Secrets that it is asked for until the context ends.
func NewReader(ctx context.Context, mgr ctrl.Manager) (*Reader, error) {
	api, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for Secrets: %w", err)
	}
	r := &Reader{cached: mgr.GetCache(), secrets: newSecrets(ctx, api)}
	return r, mgr.Add(r.secrets)
}

// SecretChanges returns a source of events of the Secrets that were read through
// the Reader: one that was missing appears, changes, or goes, or may be read at
// last. A Secret stays watched as long as one of the handlers finds an object
// that it concerns.
func (r *Reader) SecretChanges(h handler.EventHandler) source.Source { return r.secrets.source(h) }

// Secret returns the data of a Secret, which the caller must not change, a
// *MissingError when it does not exist, or a *ForbiddenError when the manager
// may not read it.
func (r *Reader) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret, err := r.secrets.get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	switch {
	case apierrors.IsForbidden(err):
		return nil, &ForbiddenError{Namespace: namespace, Name: name}
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	case secret == nil:
		return nil, &MissingError{Kind: "Secret", Name: name}
	}
	return secret.Data, nil
}

// Holds tells whether a Secret exists and has exactly the data. Errors are those
// of Secret, but for a missing one.
func (r *Reader) Holds(ctx context.Context, namespace, name string, data map[string][]byte) (bool, error) {
	present, err := r.Secret(ctx, namespace, name)
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		return false, nil
	}
	return err == nil && Digest(present) == Digest(data), err
}

// SecretKey returns the value of one key of a Secret, or a *MissingError when
// the Secret or the key does not exist or the value is empty. Other errors are
// those of Secret.
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
	err := r.cached.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) {
		return nil, &MissingError{Kind: "ConfigMap", Name: name}
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
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
