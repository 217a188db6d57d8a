package phase

import (
	"sync"

	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory remembers something of each object, of the last ones at most.
type memory struct {
	once  sync.Once
	cache *lru.Cache
}

// remembered is how many objects are remembered.
const remembered = 10_000

type identity struct {
	apitypes.NamespacedName
	apitypes.UID
}

func (m *memory) objects() *lru.Cache {
	m.once.Do(func() { m.cache = lru.New(remembered) })
	return m.cache
}

func identify(obj client.Object) identity {
	return identity{client.ObjectKeyFromObject(obj), obj.GetUID()}
}

// written remembers the version of each object whose status was written. A status
// that is computed from an older one may equal that, and then nothing would be
// written over the newer one, which no longer holds.
type written struct{ memory }

func (w *written) note(obj client.Object) {
	w.objects().Add(identify(obj), obj.GetResourceVersion())
}

// newerThan reports whether the object is older than the status that was written
// to it last. Versions of one resource can be compared:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
func (w *written) newerThan(obj client.Object) bool {
	version, ok := w.objects().Get(identify(obj))
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), version.(string))
	if err != nil || order >= 0 {
		w.objects().Remove(identify(obj)) // the cache has caught up
		return false
	}
	return true
}

// warned remembers the objects that an event has reported a problem of.
type warned struct{ memory }

func (w *warned) note(obj client.Object) { w.objects().Add(identify(obj), nil) }

// forget reports whether the object was remembered.
func (w *warned) forget(obj client.Object) bool {
	_, was := w.objects().Get(identify(obj))
	w.objects().Remove(identify(obj))
	return was
}
