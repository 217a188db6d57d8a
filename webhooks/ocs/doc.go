// Package ocs admits storage clusters.
//
// What a StorageCluster says ends up with Rook, which makes claims and OSDs of it
// and takes none back: fewer in the spec are not fewer in the cluster, and another
// name means other OSDs. So what cannot be undone is refused, and what happens
// otherwise than one may think is said in a warning.
package ocs
