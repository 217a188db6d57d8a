#!/bin/sh
# Finishes the root file system of a machine after the script of edpm-host, to which
# it is appended: a machine has no user, cloud-init makes the one of its user data.
set -eu
root=$1

chroot "$root" userdel --remove cloud-admin
rm -f "$root/etc/sudoers.d/cloud-admin"
# podman keeps the address of the container: cloud-init adds that of the network data.
echo 'source /etc/network/interfaces.d/*' > "$root/etc/network/interfaces"
