// Package openstack tests computes with a real OpenStack: keystone, placement,
// glance and nova's own services of the lab's controller, which is a fixture, and
// a nova-compute that the operators configured on a host. It registers in its cell
// and runs a guest.
//
//	sudo E2E_OPENSTACK=1 go test ./test/e2e/openstack -timeout 40m
//
// The controller's image is built the first time, which takes some ten minutes:
// without E2E_OPENSTACK=1 the stories are skipped. E2E_KEEP=1 leaves the lab as it
// is at the end.
package openstack
