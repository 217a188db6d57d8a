// Package osd decides where the OSDs of a Ceph cluster go (seeds/003): what the
// failure domain is, which racks nodes are in, what becomes of the device sets of
// a StorageCluster in a CephCluster, and how the OSDs would be spread.
//
// Everything here is pure: objects come in, often from a cache, and none of them
// is changed. The rules are those of red-hat-storage/ocs-operator unless a
// comment says otherwise, and the names are those that Rook gives: the name of a
// StorageClassDeviceSet is part of the identity of its OSDs.
package osd
