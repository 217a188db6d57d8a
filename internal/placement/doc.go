// Package placement tells where the pods of a StatefulSet would go before they
// are rolled out, and why some would go nowhere.
//
// [Predict] runs the code of kube-scheduler itself, filters and scores, over a
// snapshot of the cluster (a [Snapshot]) and plays the roll-out as the StatefulSet
// controller does with podManagementPolicy Parallel, and kube-scheduler with pods that
// wait: it tries them again. The StatefulSet controller is that of Kubernetes 1.37, where
// MaxUnavailableStatefulSet is enabled by default: it replaces pods that are not available
// at once, and an available pod only while all others are available. Releases before 1.37
// replace pods from the highest ordinal down, and do not count those of lower ordinals that
// are unavailable: there a roll-out can complete that is predicted to stop. Every reason comes from what the scheduler says of
// each node; this package only groups the statements and names what to do.
// [Measure] counts the pods per domain of a topology spread constraint and its
// skew, by the scheduler's rule. Both are pure: they read and write nothing.
//
// The prediction is exact in which pods are created and which nodes take them: a
// differential test holds it equal to kube-apiserver and kube-scheduler processes.
// LimitRanges and ResourceQuotas are played with the code of their admission plugins.
//
// Where several nodes score equally kube-scheduler takes one at random, and pods that are
// created at once it tries in any order. That can decide whether a later pod fits: the
// first pod may take the only place that the volume of the second can be reached from. The
// prediction does not depend on such luck.
// [Predict] plays the roll-out with each of these choices. A pod fits if it fits in all
// plays; if it fits in some of them, its problem says that this depends on chance
// (ByChance). With more choices than 64 plays, or fewer in clusters of more than 15
// nodes, it plays a sample that is the same each time, which can miss rare cases.
//
// Not played are: preemption (priorities), dynamic resource allocation, mutating
// webhooks, scheduler profiles other than the default one, the preference for nodes
// that have the image, the room of a CSIStorageCapacity that is used up pod by pod,
// the zone that a provisioner chooses for a volume with Immediate binding,
// VolumeAttachments without a pod (volumes that are being detached count for the limit
// of a driver), that kube-scheduler scores only some of more than 100 nodes, the order in
// which pods leave that are deleted at once, and changes of the cluster during the roll-out. docs/topology.md has the list for users.
//
// [Predictor] is for controllers: it shares one view of the cluster, and limits
// how often the same is predicted.
//
// This is the only package that imports k8s.io/kubernetes. Importing it makes
// client-go read its feature gates from the compiled-in defaults of Kubernetes
// instead of KUBE_FEATURE_* variables.
package placement
