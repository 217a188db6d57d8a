package inputs

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxKept is how many bytes of the content of ConfigMaps are kept in memory. More
// than that costs requests, not memory: it is room for the inventories of some
// 20,000 nodes.
const maxKept = 32 << 20

// configMaps reads ConfigMaps of which the cache of the manager has the metadata
// only: what others put into theirs is no concern of ours, however large. Content
// is read by name when the metadata shows another version than the one read last.
type configMaps struct {
	metadata, live client.Reader

	mu   sync.Mutex
	kept map[types.NamespacedName]*content
	size int
}

// content of one version of a ConfigMap. No one changes it.
type content struct {
	object *corev1.ConfigMap // without its text, which is in data
	data   map[string][]byte // text and binary data
	size   int
}

func newConfigMaps(metadata, live client.Reader) *configMaps {
	return &configMaps{metadata: metadata, live: live, kept: map[types.NamespacedName]*content{}}
}

// get returns a ConfigMap, or an error of the API.
func (c *configMaps) get(ctx context.Context, key types.NamespacedName) (*content, error) {
	known := ConfigMapMetadata()
	if err := c.metadata.Get(ctx, key, known); err != nil {
		c.drop(key)
		return nil, err
	}
	if found := c.lookUp(key, known.ResourceVersion); found != nil {
		return found, nil
	}
	cm := &corev1.ConfigMap{}
	if err := c.live.Get(ctx, key, cm); err != nil {
		return nil, err
	}
	found := newContent(cm)
	c.keep(key, found)
	return found, nil
}

// ConfigMapMetadata returns an empty object for the metadata of a ConfigMap, which
// is all that the cache has of one.
func ConfigMapMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

func newContent(cm *corev1.ConfigMap) *content {
	cm.ManagedFields = nil // nobody reads them
	c := &content{object: cm, data: make(map[string][]byte, len(cm.Data)+len(cm.BinaryData)), size: cm.Size()}
	for k, v := range cm.Data {
		c.data[k] = []byte(v)
	}
	cm.Data = nil
	for k, v := range cm.BinaryData {
		c.data[k] = v
	}
	return c
}

// copyTo makes cm the ConfigMap.
func (c *content) copyTo(cm *corev1.ConfigMap) {
	c.object.DeepCopyInto(cm)
	for k, v := range c.data {
		if _, binary := cm.BinaryData[k]; binary {
			continue
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[k] = string(v)
	}
}

func (c *configMaps) lookUp(key types.NamespacedName, version string) *content {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.kept[key]; found != nil && found.object.ResourceVersion == version {
		return found
	}
	return nil
}

// keep keeps a content, in the place of any others if there is no room.
func (c *configMaps) keep(key types.NamespacedName, next *content) {
	c.drop(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	for old, o := range c.kept {
		if c.size+next.size <= maxKept {
			break
		}
		c.size -= o.size
		delete(c.kept, old)
	}
	c.size += next.size
	c.kept[key] = next
}

func (c *configMaps) drop(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.kept[key]; old != nil {
		c.size -= old.size
		delete(c.kept, key)
	}
}

// Client returns a client that reads ConfigMaps as the Reader does, one by one and
// by name, and is c in all else.
func (r *Reader) Client(c client.Client) client.Client { return reading{c, r} }

type reading struct {
	client.Client
	reader *Reader
}

// Get reads a ConfigMap through the Reader.
func (c reading) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	cm, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	found, err := c.reader.configMaps.get(ctx, key)
	if err != nil {
		return err
	}
	found.copyTo(cm)
	return nil
}

// Apply keeps the ConfigMap that the API server answers with: whoever reads it next
// needs no request.
func (c reading) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := c.Client.Apply(ctx, obj, opts...); err != nil {
		return err
	}
	answer, ok := obj.(runtime.Unstructured)
	if !ok || answer.GetObjectKind().GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("ConfigMap") {
		return nil
	}
	cm := &corev1.ConfigMap{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.UnstructuredContent(), cm); err != nil {
		return fmt.Errorf("reading the answer to the apply of a ConfigMap: %w", err)
	}
	c.reader.configMaps.keep(client.ObjectKeyFromObject(cm), newContent(cm))
	return nil
}
