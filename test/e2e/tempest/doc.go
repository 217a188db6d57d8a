// Package tempest runs Tempest, the test suite of OpenStack, against the services that
// the operators run: all of tempest.api.compute, with two computes on hosts whose
// guests have ports of neutron with OVN.
//
//	sudo E2E_OPENSTACK=1 go test ./test/e2e/tempest -timeout 120m
//
// What is left out, and why, is in testdata/excluded.txt, as stestr reads it. The other
// tests and what became of them are in testdata/results.txt: a test that passed there
// must pass. A run writes its own next to it, bin/tempest/results.txt, to be put in its
// place when what changed is known; a test that fails needs a reason there.
// E2E_KEEP=1 leaves the lab as it is at the end.
package tempest
