#!/bin/sh
# Makes the disk of the lab's guest, which boots the kernel and busybox of the distribution:
#
#   build.sh OUTPUT SUITE [MIRROR]
#
# It has a boot loader and a partition, as images of people have: nova looks into the disks that
# it moves, and takes a kernel that is an image of its own for a disk that is none.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
output=$1
shift
root=$(mktemp -d)
files=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root" "$files"' EXIT

# Nothing but the files of the packages.
mmdebstrap --quiet --variant=extract --include="linux-image-$(dpkg --print-architecture),busybox-static,syslinux,syslinux-common,mtools,dosfstools,fdisk" \
  --aptopt='Acquire::Retries "3"' --aptopt='APT::Install-Recommends "false"' "$1" "$root" ${2:+"$2"}

mkdir -p "$output" "$files/bin" "$files/dev" "$files/media" "$files/modules" "$files/proc" "$files/sys"
# Of Debian 13 and later /bin and /lib are in /usr, and modules are compressed.
for directory in bin lib lib64 sbin; do
  if [ ! -e "$root/$directory" ] && [ -e "$root/usr/$directory" ]; then ln -s "usr/$directory" "$root/$directory"; fi
done
cp "$root/bin/busybox" "$files/bin/"
cp "$here/init" "$files/init"
# What reads a config drive on the machine type q35, each after what it needs, and
# what tells of the power button.
order=10
for module in scsi_common scsi_mod libata libahci ahci cdrom sr_mod isofs evdev button; do
  xz -dcf "$(find "$root/lib/modules/" -name "$module.ko*")" >"$files/modules/$order-$module.ko"
  order=$((order + 1))
done
mkdir -p "$root/disk" "$root/proc" "$root/tmp"
(cd "$files" && find . | "$root/bin/busybox" cpio -o -H newc 2>/dev/null) | gzip -9 >"$root/disk/initrd"
cp "$root"/boot/vmlinuz-* "$root/disk/kernel"
cat >"$root/disk/syslinux.cfg" <<'CFG'
default guest
label guest
  kernel kernel
  initrd initrd
  append console=ttyS0 quiet
CFG
# syslinux starts mtools through a shell, and finds the open disk in /proc.
ln -s busybox "$root/bin/sh"
mount -t proc proc "$root/proc"
# One partition from the first MiB to the end, with the loader of which sector 0 knows.
chroot "$root" /bin/busybox sh -eu -c '
  cd /disk
  export PATH=/usr/sbin:/usr/bin:/sbin:/bin
  truncate -s 40M disk
  echo "2048,,6,*" | sfdisk --quiet disk
  dd if=/usr/lib/syslinux/mbr/mbr.bin of=disk conv=notrunc status=none
  mkfs.fat --offset 2048 disk 39936 >/dev/null
  mcopy -i disk@@1M kernel initrd syslinux.cfg ::
  syslinux --offset 1048576 --install disk'
cp "$root/disk/disk" "$output/disk"
