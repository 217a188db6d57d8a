package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

const (
	finalizerPrefix = "openstack.org/"
	// maxFinalizer is the longest name that may follow the prefix.
	maxFinalizer = 63
	hashLength   = 10
)

// Consumer is an object that refers to a Topology.
type Consumer struct{ Kind, Name string }

// ConsumerOf returns the object as a consumer. The error says that the scheme
// does not know its kind.
func ConsumerOf(scheme *runtime.Scheme, obj client.Object) (Consumer, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return Consumer{}, fmt.Errorf("naming the consumer of a Topology: %w", err)
	}
	return Consumer{Kind: gvk.Kind, Name: obj.GetName()}, nil
}

// String is Kind/name.
func (c Consumer) String() string { return c.Kind + "/" + c.Name }

// Finalizer returns the finalizer by which the consumer holds its Topology. It
// is that of the OpenStack operators, openstack.org/<kind>-<name>; a longer one
// than a finalizer may be is cut and ends with a hash.
func (c Consumer) Finalizer() string {
	name := strings.ToLower(c.Kind) + "-" + c.Name
	if len(name) > maxFinalizer {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxFinalizer-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength]
	}
	return finalizerPrefix + name
}

// ConsumersOf returns the consumers that hold the Topology, by their finalizers,
// in the order of these. Kinds that the scheme does not know stay in lower case.
func ConsumersOf(scheme *runtime.Scheme, t *topologyv1.Topology) []Consumer {
	var consumers []Consumer
	kinds := knownKinds(scheme)
	for _, f := range t.Finalizers {
		kind, name, ok := consumerOf(f)
		if !ok {
			continue
		}
		if known, ok := kinds[kind]; ok {
			kind = known
		}
		consumers = append(consumers, Consumer{Kind: kind, Name: name})
	}
	return consumers
}

// knownKinds are the kinds of the suite by their names in lower case.
func knownKinds(scheme *runtime.Scheme) map[string]string {
	kinds := map[string]string{strings.ToLower(NodesKind): NodesKind}
	for gvk := range scheme.AllKnownTypes() {
		if strings.HasSuffix(gvk.Group, ".openstack.org") {
			kinds[strings.ToLower(gvk.Kind)] = gvk.Kind
		}
	}
	return kinds
}

// ParseConsumers returns the consumers that Apply noted on a pod.
func ParseConsumers(pod client.Object) []Consumer {
	var consumers []Consumer
	for _, text := range strings.Split(pod.GetAnnotations()[topologyv1.ConsumersAnnotation], ",") {
		if kind, name, ok := strings.Cut(text, "/"); ok {
			consumers = append(consumers, Consumer{Kind: kind, Name: name})
		}
	}
	return consumers
}

// OtherFinalizers returns the finalizers of a Topology that are no consumer's.
func OtherFinalizers(t *topologyv1.Topology) []string {
	return slices.DeleteFunc(slices.Clone(t.Finalizers), func(f string) bool {
		_, _, ours := consumerOf(f)
		return ours
	})
}

// consumerOf returns the kind in lower case and the name that a finalizer has.
func consumerOf(finalizer string) (kind, name string, ok bool) {
	rest, ours := strings.CutPrefix(finalizer, finalizerPrefix)
	kind, name, named := strings.Cut(rest, "-")
	return kind, name, ours && named
}
