#!/bin/sh
# Finishes the root file system of the image of cinder-volume. $1 is its directory.
set -eu
root=$1

# The configuration comes from the operator alone: no file of the packages may
# add to it.
: > "$root/etc/cinder/cinder.conf"
chmod -R a+rX "$root/etc/cinder"

# The compiler suite comes in through dependencies and is of no use at run time.
rm -rf "$root"/usr/lib/gcc "$root"/usr/libexec/gcc

# Volumes, their targets and the metadata of LVM are those of the host.
rm -rf "$root"/var/lib/cinder/* "$root"/etc/lvm/archive "$root"/etc/lvm/backup "$root"/var/log/* "$root"/etc/machine-id
: > "$root/etc/machine-id"
