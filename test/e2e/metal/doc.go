// Package metal has the end-to-end story of phase -1: machines are registered, and
// become computes without anybody's help, are replaced, and are given back. They boot
// with the real cloud-init; baremetal-operator is played by test/lab/metal. It is part
// of make e2e-all and skipped with -short. E2E_KEEP=1 leaves the lab up.
//
//	sudo E2E_LONG=1 go test ./test/e2e/metal
package metal
