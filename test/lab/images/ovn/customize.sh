#!/bin/sh
# Finishes the root file system of the image of OVN's agents. $1 is its directory.
set -eu
root=$1

# The configuration comes from the operator alone: no file of the packages may
# add to it.
: > "$root/etc/neutron/neutron.conf"
: > "$root/etc/neutron/neutron_ovn_metadata_agent.ini"
chmod -R a+rX "$root/etc/neutron"

# The compiler suite comes in through dependencies and is of no use at run time.
rm -rf "$root"/usr/lib/gcc "$root"/usr/libexec/gcc

# Open vSwitch and its state are those of the host.
rm -rf "$root"/etc/openvswitch/* "$root"/var/lib/neutron/* "$root"/var/log/* "$root"/etc/machine-id
: > "$root/etc/machine-id"
