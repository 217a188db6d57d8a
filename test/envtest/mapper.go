package envtest

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mapper remembers the resources of kinds. Every request of a client asks for one, and
// the mapper of controller-runtime looks through all groups each time: a tenth of what
// the process of a suite computes.
type mapper struct {
	meta.RESTMapper
	known sync.Map
}

func newMapper(config *rest.Config) (meta.RESTMapper, error) {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	dynamic, err := apiutil.NewDynamicRESTMapper(config, http)
	return &mapper{RESTMapper: dynamic}, err
}

// RESTMapping implements meta.RESTMapper. A kind that does not exist may be defined later.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := fmt.Sprint(gk, versions)
	if mapping, ok := m.known.Load(key); ok {
		return mapping.(*meta.RESTMapping), nil
	}
	mapping, err := m.RESTMapper.RESTMapping(gk, versions...)
	if err == nil {
		m.known.Store(key, mapping)
	}
	return mapping, err
}
