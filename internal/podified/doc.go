// Package podified brings services to pods: everything that glance-api, the
// conductor of a nova cell and nova-compute have in common. A controller says in
// a Service what is special to it, and calls Deployer.Deploy as the last of its
// phases:
//
//	func (s *scope) deploy(ctx context.Context) error {
//		return s.Pods.Deploy(ctx, s.api, s.service())
//	}
//
// Deploy follows the Topology that the service refers to (internal/topology),
// asks before a roll-out where the pods would go (internal/placement), writes the
// configuration, the Services and the StatefulSet, and says what became of them:
//
//   - TopologyReady: the Topology is there and held.
//   - PlacementReady: every pod has a node, or would find one. A problem is reported
//     with pod, volume, node, label and remedy. With enforcement Hold of the
//     Topology, the pods that run are then left as they are.
//   - DeploymentReady: the pods are up; if the scheduler finds no node for one,
//     in its own words.
//   - PodNodesReady: no pod is on a node that is lost. Nothing is ever forced.
//
// Everything that is waited for is watched: Deployer.Watch adds the watches.
package podified
