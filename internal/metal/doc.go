// Package metal holds the rules of phase -1: which BareMetalHost a node may have,
// what is written to it and to its first boot, and what its state means. It is
// pure: who reads and writes objects is the controller of nodes.
//
// baremetal-operator's documentation and the comments of its API (apis v0.9.0) are
// the source of what its states and fields mean.
package metal
