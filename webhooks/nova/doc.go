// Package nova admits the kinds of the compute service, and keeps the cell of a
// data plane node what it is.
//
// # The cell rule
//
// The effective cell of a node is the annotation nova.openstack.org/cell of the
// node, else of its role. "The upstream nova project does not support moving
// computes between cells" (seeds/004), so:
//
//   - the annotation, once set on an object, is neither changed nor removed;
//   - no write changes the effective cell of a node that has one.
//
// The NovaExternalCompute of a node is the record of the cell that its host is
// in: its cellName cannot change, and it outlives deleted roles and nodes until
// the host is cleaned up. So the cell that a node "has" is that of its
// NovaExternalCompute, and only without one that of the annotations. This is
// what holds when a role is deleted and created again, or created after its nodes.
//
// Both checks read from the API server, not from a cache that may lag behind.
// Two writes can still be admitted at the same time, each before the other is
// stored. Then the first NovaExternalCompute decides: its cellName is immutable,
// and the controller reports the disagreement instead of following it.
//
// The deployed matchConditions (config/webhook/manifests.yaml) call the checks
// only for writes that touch the annotation or spec.role, so that nothing else
// depends on this webhook being up.
package nova
