// Package walkthrough follows docs/walkthrough.md as a new user would: it runs the
// commands of the page in their order, on a real cluster with the real OLM and real
// hosts, and looks after each section whether what the page says is true.
//
//	sudo E2E_OLM=1 go test ./test/e2e/walkthrough -timeout 40m
//
// OLM is compiled the first time, which takes some five minutes on two CPUs:
// without E2E_OLM=1 the walk is skipped. E2E_KEEP=1 leaves the lab as it is if the
// walk ends early.
package walkthrough
