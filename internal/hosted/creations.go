package hosted

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// creations are the objects that the creator of this process made with their finalizer,
// until they have a status. Another object with the finalizer and without a status was
// restored from a backup, or its creator has been restarted since: no one knows what is
// on its host, and it is cleaned up when the object is deleted.
type creations struct {
	mu sync.Mutex
	// underWay are the objects that are being created: an event can come before the
	// answer that has the UID.
	underWay map[types.NamespacedName]bool
	uids     *lru.Cache
}

// rememberedCreations is how many objects without a status are remembered.
const rememberedCreations = 10_000

func newCreations() *creations {
	return &creations{underWay: map[types.NamespacedName]bool{}, uids: lru.New(rememberedCreations)}
}

// begin notes that an object is being created, until end is called.
func (c *creations) begin(key types.NamespacedName) (end func()) {
	c.set(key, true)
	return func() { c.set(key, false) }
}

func (c *creations) set(key types.NamespacedName, underWay bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if underWay {
		c.underWay[key] = true
	} else {
		delete(c.underWay, key)
	}
}

// note notes the UID of an object that was created.
func (c *creations) note(uid types.UID) { c.uids.Add(uid, nil) }

// undecided reports whether it is not known yet if the object was restored.
func (c *creations) undecided(obj Object, finalizer string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.underWay[client.ObjectKeyFromObject(obj)] && c.restored(obj, finalizer)
}

// restored reports whether the object has its finalizer and no status, and was not
// created by this process.
func (c *creations) restored(obj Object, finalizer string) bool {
	if _, status := obj.Hosted(); status.ObservedGeneration != 0 {
		c.uids.Remove(obj.GetUID())
		return false
	}
	_, created := c.uids.Get(obj.GetUID())
	return !created && controllerutil.ContainsFinalizer(obj, finalizer)
}
