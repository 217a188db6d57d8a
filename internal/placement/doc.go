// Package placement tells where the pods of a StatefulSet would go before they
// are rolled out, and why some would go nowhere.
//
// [Predict] runs the code of kube-scheduler itself, filters and scores, over a
// snapshot of the cluster (a [World]) and plays the roll-out in the order of the
// StatefulSet controller. Every reason comes from what the scheduler says of
// each node; this package only groups the statements and names what to do.
// [Measure] counts the pods per domain of a topology spread constraint and its
// skew, by the scheduler's rule. Both are pure: they read and write nothing.
//
// The prediction is exact in which pods are created and which nodes take them: a
// differential test holds it equal to kube-apiserver and kube-scheduler processes.
// LimitRanges and ResourceQuotas are played with the code of their admission
// plugins. Where several nodes score alike the scheduler takes one at random and
// this package the first by name.
//
// Not played are: preemption (priorities), dynamic resource allocation, mutating
// webhooks, scheduler profiles other than the default one, the preference for nodes
// that have the image, the room of a CSIStorageCapacity that is used up pod by pod,
// the zone that a provisioner chooses for a volume with Immediate binding, and
// changes of the cluster during the roll-out. docs/topology.md has the list for users.
//
// [Predictor] is for controllers: it shares one view of the cluster, and limits
// how often the same is predicted.
//
// This is the only package that imports k8s.io/kubernetes. Importing it makes
// client-go read its feature gates from the compiled-in defaults of Kubernetes
// instead of KUBE_FEATURE_* variables.
package placement
