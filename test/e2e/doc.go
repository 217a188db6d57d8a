// Package e2e tests the whole on real parts: a real cluster, the manager as a
// pod with its webhooks served, real Ansible over ssh, and hosts with systemd,
// podman, libvirt and nova-compute.
//
//	sudo go test ./test/e2e/... -timeout 60m
//
// It brings the lab of test/lab up, or uses the one that is up if no nodes of
// others are in it, and takes it down at the end. It is skipped with -short.
//
//	E2E_KEEP=1            leave the lab and the objects as they are at the end
//	E2E_LOCAL_MANAGER=1   run the manager as a process, without webhooks: quicker
//	                      while developing; what needs the pod is skipped
//	E2E_SEED=N            the random moments at which the manager is killed
//
// One story is chosen with -ginkgo.focus; -ginkgo.v shows what is going on.
package e2e
