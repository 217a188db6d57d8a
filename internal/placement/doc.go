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
// The prediction is exact in which nodes take a pod: a differential test holds
// it equal to a kube-scheduler process. Where several nodes score alike the
// scheduler takes one at random and this package the first by name. Not played
// are: preemption (priorities), dynamic resource allocation, scheduler profiles
// other than the default one, LimitRanges, and changes of the cluster while the
// roll-out goes on.
//
// This is the only package that imports k8s.io/kubernetes. Importing it makes
// client-go read its feature gates from the compiled-in defaults of Kubernetes
// instead of KUBE_FEATURE_* variables.
package placement
