package phase

import (
	"sync"

	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// written remembers the version of each object whose status was written. A status
// that is computed from an older one may equal that, and then nothing would be
// written over the newer one, which no longer holds.
type written struct {
	once  sync.Once
	cache *lru.Cache
}

// remembered is how many objects are remembered. A cache is behind for milliseconds.
const remembered = 10_000

type identity struct {
	apitypes.NamespacedName
	apitypes.UID
}

func (w *written) versions() *lru.Cache {
	w.once.Do(func() { w.cache = lru.New(remembered) })
	return w.cache
}

func identify(obj client.Object) identity {
	return identity{client.ObjectKeyFromObject(obj), obj.GetUID()}
}

func (w *written) note(obj client.Object) {
	w.versions().Add(identify(obj), obj.GetResourceVersion())
}

// newerThan reports whether the object is older than the status that was written
// to it last. Versions of one resource can be compared:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
func (w *written) newerThan(obj client.Object) bool {
	version, ok := w.versions().Get(identify(obj))
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), version.(string))
	if err != nil || order >= 0 {
		w.versions().Remove(identify(obj)) // the cache has caught up
		return false
	}
	return true
}
