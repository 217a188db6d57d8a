#!/bin/sh
# Makes the kernel and the initial file system of the lab's guest from packages:
#
#   build.sh OUTPUT SUITE [MIRROR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
output=$1
shift
root=$(mktemp -d)
files=$(mktemp -d)

# Nothing but the files of the packages.
mmdebstrap --quiet --variant=extract --include="linux-image-$(dpkg --print-architecture),busybox-static" \
  --aptopt='Acquire::Retries "3"' --aptopt='APT::Install-Recommends "false"' "$1" "$root" ${2:+"$2"}

mkdir -p "$output" "$files/bin" "$files/dev" "$files/media" "$files/modules" "$files/proc" "$files/sys"
# Of Debian 13 and later /bin and /lib are in /usr, and modules are compressed.
for directory in bin lib; do [ -e "$root/$directory" ] || ln -s "usr/$directory" "$root/$directory"; done
cp "$root/bin/busybox" "$files/bin/"
cp "$here/init" "$files/init"
# What reads a config drive on the machine type q35, each after what it needs, and
# what tells of the power button.
order=10
for module in scsi_common scsi_mod libata libahci ahci cdrom sr_mod isofs evdev button; do
  xz -dcf "$(find "$root/lib/modules/" -name "$module.ko*")" >"$files/modules/$order-$module.ko"
  order=$((order + 1))
done
(cd "$files" && find . | "$root/bin/busybox" cpio -o -H newc 2>/dev/null) | gzip -9 >"$output/initramfs"
cp "$root"/boot/vmlinuz-* "$output/vmlinuz"
rm -rf "$root" "$files"
