#!/bin/sh
# Finishes the root file system of a virtual machine after the script of edpm-host, to which it is appended.
set -eu
root=$1

# What containers do without.
chroot "$root" systemctl unmask systemd-udevd.service systemd-udev-trigger.service systemd-logind.service systemd-modules-load.service
chroot "$root" systemctl enable systemd-networkd.service
# It asks registries for images at each boot.
chroot "$root" systemctl disable podman-auto-update.service

# The initial file system of the distribution takes most of a boot in emulation. This one knows one disk.
version=$(ls "$root/usr/lib/modules")
tree=$(mktemp -d)
mkdir "$tree/bin" "$tree/modules" "$tree/dev" "$tree/proc" "$tree/sys" "$tree/root"
cp "$root/bin/busybox" "$tree/bin/"
number=10
for module in virtio_pci virtio_blk ext4; do
  chroot "$root" modprobe --set-version "$version" --show-depends "$module"
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r file; do
  case $file in
    *.xz) xz -dc "$root$file" ;;
    *) cat "$root$file" ;;
  esac >"$tree/modules/$number"
  number=$((number + 1))
done
cat >"$tree/init" <<'I'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
for module in /modules/*; do /bin/busybox insmod "$module"; done
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 100 ]; do
  /bin/busybox usleep 50000
  tries=$((tries + 1))
done
/bin/busybox mount -t ext4 /dev/vda /root && exec /bin/busybox switch_root /root /sbin/init
/bin/busybox echo "/dev/vda has no root file system"
/bin/busybox poweroff -f
I
chmod 0755 "$tree/init"
(cd "$tree" && find . | cpio --quiet -o -H newc | gzip -1) >"$root/boot/initrd.img-$version"
rm -rf "$tree"

# The first configuration of the boot loader: update-grub needs the disk that it will be on.
install -d "$root/boot/grub/i386-pc"
cp "$root"/usr/lib/grub/i386-pc/*.mod "$root"/usr/lib/grub/i386-pc/*.lst "$root/boot/grub/i386-pc/"
cat >"$root/etc/default/grub" <<'G'
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="console=ttyS0 net.ifnames=0 systemd.show_status=false"
G
cat >"$root/boot/grub/grub.cfg" <<G
linux /boot/vmlinuz-$version root=/dev/vda ro console=ttyS0 net.ifnames=0 systemd.show_status=false
initrd /boot/initrd.img-$version
boot
G
# The disk that it starts from is the boot sector and its core, which finds its configuration on the disk of the host.
cat >"$root/boot/grub/core.cfg" <<'G'
search --no-floppy --file --set root /boot/grub/grub.cfg
set prefix=($root)/boot/grub
normal
G
chroot "$root" grub-mkimage --format i386-pc --output /boot/grub/core.img --config /boot/grub/core.cfg --prefix /boot/grub \
  biosdisk ext2 search search_fs_file normal linux configfile boot minicmd
cat "$root/usr/lib/grub/i386-pc/boot.img" "$root/boot/grub/core.img" >"$root/boot/grub/loader.img"
