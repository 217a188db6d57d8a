// Package deploy tells what hack/deploy.sh does in clusters that have something
// already: another operator's kinds, or edpm-operators deployed in another way. The
// control plane is real, and KWOK plays the nodes: the managers' pods only seem to
// run. What the managers do is tested in cmd/manager.
//
//	go test ./test/e2e/deploy
//
// It needs no root, and is skipped with -short.
package deploy
