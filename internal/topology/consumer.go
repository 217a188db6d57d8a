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

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// NodesKind is the kind of the consumer that stands for all nodes of a role that
// refer to a Topology themselves: its name is that of the role.
const NodesKind = "OpenStackDataPlaneNodes"

// Consumer is an object that uses a Topology.
type Consumer struct{ Kind, Name string }

// ConsumerOf returns as whom the object uses Topologies. The error says that the scheme
// does not know its kind.
func ConsumerOf(scheme *runtime.Scheme, obj client.Object) (Consumer, error) {
	if node, ok := obj.(*dataplanev1.OpenStackDataPlaneNode); ok {
		return NodesOf(node.Spec.Role), nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return Consumer{}, fmt.Errorf("naming the consumer of a Topology: %w", err)
	}
	return Consumer{Kind: gvk.Kind, Name: obj.GetName()}, nil
}

// NodesOf returns the consumer that stands for the nodes of a role.
func NodesOf(role string) Consumer { return Consumer{Kind: NodesKind, Name: role} }

// String is Kind/name.
func (c Consumer) String() string { return c.Kind + "/" + c.Name }

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

// Versions up to 0.1 had a finalizer on the Topology for each consumer,
// openstack.org/<kind>-<name>, as the OpenStack operators have. Objects of other
// operators that have those of their own kinds keep them.
const (
	oldPrefix = "openstack.org/"
	oldLength = 63 // of what follows the prefix
	hashed    = 10 // characters of a longer one that are a hash
)

// oldFinalizer returns the finalizer by which versions up to 0.1 held a Topology for the
// consumer.
func (c Consumer) oldFinalizer() string {
	name := strings.ToLower(c.Kind) + "-" + c.Name
	if len(name) > oldLength {
		sum := sha256.Sum256([]byte(name))
		name = name[:oldLength-hashed-1] + "-" + hex.EncodeToString(sum[:])[:hashed]
	}
	return oldPrefix + name
}

// isOldFinalizer reports whether versions up to 0.1 set a finalizer for an object of one
// of the kinds that use Topologies.
func isOldFinalizer(finalizer string) bool {
	rest, ours := strings.CutPrefix(finalizer, oldPrefix)
	kind, _, named := strings.Cut(rest, "-")
	return ours && named && (kind == strings.ToLower(NodesKind) ||
		slices.ContainsFunc(Kinds, func(k Kind) bool { return kind == strings.ToLower(k.Name) }))
}

// IsStale reports whether versions up to 0.1 set a finalizer for a consumer that is none
// of those that use the Topology.
func IsStale(finalizer string, used map[Consumer]bool) bool {
	if !isOldFinalizer(finalizer) {
		return false
	}
	for who := range used {
		if who.oldFinalizer() == finalizer {
			return false
		}
	}
	return true
}

// IsOurs reports whether a finalizer of a Topology was set by a version of this project.
func IsOurs(finalizer string) bool {
	return finalizer == topologyv1.Finalizer || isOldFinalizer(finalizer)
}
