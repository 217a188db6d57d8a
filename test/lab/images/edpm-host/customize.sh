#!/bin/sh
# Finishes the root file system of a pretend EDPM host. $1 is its directory.
set -eu
root=$1

chroot "$root" useradd --create-home --shell /bin/bash --uid 1000 cloud-admin
# No password, yet not locked: only keys can log in.
chroot "$root" usermod --password '*' cloud-admin
chroot "$root" usermod --password '*' root
install -d -m 0700 "$root/root/.ssh"
chroot "$root" install -d -m 0700 -o cloud-admin -g cloud-admin /home/cloud-admin/.ssh

# Each host makes its own identity when it starts.
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/iscsi/initiatorname.iscsi" "$root/etc/nvme/hostnqn" "$root/etc/nvme/hostid" \
  "$root/etc/openvswitch/conf.db" "$root/etc/openvswitch/system-id.conf"
: > "$root/etc/machine-id"

# Units that only make sense on hardware.
chroot "$root" systemctl mask getty.target console-getty.service systemd-udevd.service \
  systemd-udev-trigger.service systemd-logind.service systemd-modules-load.service apt-daily.timer apt-daily-upgrade.timer \
  dpkg-db-backup.timer e2scrub_all.timer fstrim.timer
# The playbooks start what is to run.
chroot "$root" systemctl disable chrony.service nftables.service podman.socket podman.service \
  podman-auto-update.timer podman-restart.service \
  iscsid.service iscsid.socket open-iscsi.service multipathd.service multipathd.socket \
  nvmefc-boot-connections.service nvmf-autoconnect.service tuned.service \
  openvswitch-switch.service ovs-record-hostname.service

echo 'cloud-admin ALL=(ALL) NOPASSWD:ALL' > "$root/etc/sudoers.d/cloud-admin"
chmod 0440 "$root/etc/sudoers.d/cloud-admin"
