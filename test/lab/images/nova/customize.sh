#!/bin/sh
# Finishes the root file system of the nova images. $1 is its directory.
set -eu
root=$1

# The configuration comes from the operator alone: no file of the packages
# may add to it.
: > "$root/etc/nova/nova.conf"
: > "$root/etc/nova/nova-compute.conf"
# What is left, such as api-paste.ini, is read by whatever user a pod runs as.
chmod -R a+rX "$root/etc/nova"

# The API and the metadata service with a server of their own, as nova's setup.cfg has them
# up to 2025.1: the packages have them for web servers only.
for module in api_os_compute api_metadata; do
  [ -e "$root/usr/lib/python3/dist-packages/nova/cmd/$module.py" ] || continue
  program=$root/usr/bin/nova-$(echo "$module" | tr _ -)
  printf '#!/usr/bin/python3\nimport sys\n\nfrom nova.cmd.%s import main\n\nsys.exit(main())\n' "$module" > "$program"
  chmod 755 "$program"
done

# nova-compute reaches libvirt through its socket, which has the group libvirt.
chroot "$root" usermod -a -G libvirt,kvm nova

# Files on hosts belong to these, so that they have the same IDs in images of all releases; that of nova is Kolla's.
# renumber NAME ID
renumber() {
  before=$(chroot "$root" getent group "$1" | cut -d : -f 3)
  chroot "$root" groupmod --gid "$2" "$1"
  find "$root" -xdev -group "$before" -exec chgrp --no-dereference "$2" {} +
}
renumber nova 42436
renumber libvirt 42437
renumber kvm 42438
before=$(chroot "$root" id -u nova)
chroot "$root" usermod --uid 42436 nova
find "$root" -xdev -user "$before" -exec chown --no-dereference 42436 {} +

# The owner of the state of emulated TPMs. nova-compute does not start with
# [libvirt] swtpm_enabled where this user does not exist.
chroot "$root" getent group tss >/dev/null || chroot "$root" groupadd --system tss
chroot "$root" getent passwd tss >/dev/null || chroot "$root" useradd --system --gid tss --no-create-home --home-dir /dev/null --shell /usr/sbin/nologin tss

# The compiler suite comes in through dependencies of nova-compute-kvm and is
# of no use at run time.
rm -rf "$root"/usr/lib/gcc "$root"/usr/libexec/gcc

# Each host has its own state.
rm -rf "$root"/var/lib/nova/* "$root"/var/log/* "$root"/etc/machine-id
: > "$root/etc/machine-id"
