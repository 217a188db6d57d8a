// Package hosted brings services to hosts outside Kubernetes: everything that
// NovaExternalCompute and other services on hosts have in common. It is the twin of
// internal/podified. A kind says in a Service what is special to it, and Setup adds
// two controllers for it:
//
//   - The creator watches nodes. A node that is annotated with the service, itself or
//     through its role, gets an object of its name. The creator is the only writer of
//     the service's entry in status.services of the node: the entry is there before
//     the object, mirrors its condition Ready, and is removed after it.
//   - The deployer brings the service of each object to its host, and removes it when
//     the object is deleted.
//
// Where objects of a kind are for different services (MultiInstance), a node has one for each
// of its services, and each service is rolled out apart from the others.
//
// For each object the deployer asks Service.Bind for what the kind adds (Parts), and
// runs the phases. In the order of their conditions:
//
//   - InputReady: node, inventory, SSH key and strategy, and whether the annotation
//     selects the object.
//   - Parts.Inputs: what else the kind needs, with its own conditions.
//   - UpdateAvailable: Parts.Images that the operators bring and that are not accepted.
//   - DataPlaneNodeReady: phases -1 and 0 of the node are complete, and it owns the object.
//   - ServiceConfigReady: customServiceConfig can be read.
//   - DeploymentReady: Parts.Steps ran on the host with the current inputs.
//   - Parts.Deployed: what the kind observes of the running service.
//
// A deleted object is released when Parts.Drain, the clean-up of the host and
// Parts.Leave have succeeded, or without them where skip-cleanup is set.
//
// Rules are tested here; the stories are those of NovaExternalCompute in
// controllers/*_test.go.
package hosted
