// Package storagecluster tells stories of StorageClusters on a real API server, with
// Rook's definition of CephCluster and without. Rook itself and the scheduler do not
// run: where a story needs claims and pods of OSDs, it makes them as Rook would.
package storagecluster
