// Package olm tests that edpm-operators is installed by the Operator Lifecycle Manager:
// the real opm serves a catalog with bundles that were made a moment ago, the real
// catalog and olm install, upgrade and remove them, and the manager runs as a pod
// with the rights that its ClusterServiceVersion gives.
//
//	sudo E2E_OLM=1 go test ./test/e2e/olm -timeout 40m
//	E2E_OLM=1 E2E_OLM_PRETEND=1 go test ./test/e2e/olm -timeout 40m
//
// OLM is compiled the first time, which takes some five minutes on two CPUs:
// without E2E_OLM=1 the stories are skipped. With E2E_OLM_PRETEND=1 no root is
// needed: KWOK plays the node and so the pod, and what the manager itself does is
// skipped. E2E_KEEP=1 leaves the lab as it is at the end.
package olm
