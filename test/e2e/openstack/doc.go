// Package openstack tests nova with a real OpenStack: keystone, placement and glance
// are those of the lab's controller, which is a fixture; nova's API, scheduler,
// conductors, metadata service and console proxy are those that the operators run in
// pods, and nova-compute is the one that they configured on a host. It registers in
// its cell and runs a guest. Next to it, cinder-volume runs on a host as the class of
// config/samples/classes has it, and reports to cinder.
//
//	sudo E2E_OPENSTACK=1 go test ./test/e2e/openstack -timeout 60m
//
// The controller's image is built the first time, which takes some ten minutes:
// without E2E_OPENSTACK=1 the stories are skipped. E2E_KEEP=1 leaves the lab as it
// is at the end.
package openstack
