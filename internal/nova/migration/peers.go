package migration

import (
	"bytes"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Cells has what the computes of each cell are told of one another, once: thousands of computes
// that wait for their step would each have thousands of others.
type Cells struct {
	mu sync.Mutex
	of map[types.NamespacedName]*told
}

// cell returns what the computes of a cell are told.
func (c *Cells) cell(name types.NamespacedName) *told {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[types.NamespacedName]*told{}
	}
	if c.of[name] == nil {
		c.of[name] = &told{latest: map[string][]byte{}}
	}
	return c.of[name]
}

// told is what the computes of a cell are told.
type told struct {
	mu     sync.Mutex
	latest map[string][]byte
}

// note makes a content the latest of its name. It returns the one that is kept: the earlier one
// if that is equal.
func (t *told) note(name string, content []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !bytes.Equal(t.latest[name], content) {
		t.latest[name] = content
	}
	return t.latest[name]
}

// hint notes a value, and returns a variable that has the latest one when it is written: all hosts
// of a run have the same then, and it is in their inventory once.
func (t *told) hint(name string, value any) json.Marshaler {
	content, _ := json.Marshal(value) // names and addresses
	t.note(name, content)
	return latest{t, name}
}

type latest struct {
	of   *told
	name string
}

// MarshalJSON returns the latest value.
func (l latest) MarshalJSON() ([]byte, error) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.of.latest[l.name], nil
}
