#!/bin/sh
# Finishes the root file system under the controller. $1 is its directory.
set -eu
root=$1

chroot "$root" useradd --create-home --shell /bin/bash --uid 1000 cloud-admin
# No password, yet not locked: only keys can log in.
chroot "$root" usermod --password '*' cloud-admin
chroot "$root" usermod --password '*' root
echo 'cloud-admin ALL=(ALL) NOPASSWD:ALL' > "$root/etc/sudoers.d/cloud-admin"
chmod 0440 "$root/etc/sudoers.d/cloud-admin"

# Each controller makes its own identity when it starts.
rm -f "$root"/etc/ssh/ssh_host_*
: > "$root/etc/machine-id"

# Units that only make sense on hardware or need a mirror. Those of the packages
# do not start either: the default target of the image is its own.
chroot "$root" systemctl mask systemd-udevd.service systemd-udev-trigger.service systemd-modules-load.service \
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer

# The configuration is in /etc/lab alone: no file of the packages may add to it.
for file in keystone/keystone.conf placement/placement.conf glance/glance-api.conf neutron/neutron.conf; do
  : > "$root/etc/$file"
done
chmod -R a+rX "$root"/etc/keystone "$root"/etc/placement "$root"/etc/glance "$root"/etc/neutron

# The compiler suite comes in through dependencies and is of no use at run time.
rm -rf "$root"/usr/lib/gcc "$root"/usr/libexec/gcc
# Logs of the installation. The directories stay: daemons expect theirs.
find "$root/var/log" -type f -delete
