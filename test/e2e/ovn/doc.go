// Package ovn tests networks of guests with a real OVN: its databases and neutron are
// those of the lab's controller, which is a fixture, and Open vSwitch, ovn-controller
// and the metadata agent are those that the operators configured on two hosts.
//
// Network namespaces play the guests. Nova is not there: what answers behind the
// metadata agents verifies their signature as nova does, and knows nothing but the id of
// the instance.
//
//	sudo E2E_OVN=1 go test ./test/e2e/ovn -timeout 40m
//
// With E2E_HOSTS=vm the hosts are virtual machines, whose Open vSwitch is in the kernel.
//
// The images of the controller and of OVN's agents are built the first time, which takes
// some ten minutes: without E2E_OVN=1 the stories are skipped. E2E_KEEP=1 leaves the lab
// as it is at the end.
package ovn
