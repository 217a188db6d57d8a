// Package dataplane knows the nodes of the data plane, for all controllers that need
// them, and with inherit is the only place that does:
//
//   - the inventory of a node and of a role (nodes.go, inventory.go);
//   - which nodes are one machine (machine.go);
//   - the entries of services in the status of a node (status.go), which show whether
//     everything on the node is up.
package dataplane
