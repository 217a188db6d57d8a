#!/usr/bin/env bash
# Makes the disks of virtual machines, and prints the paths of three: that with the root file system of edpm-vm, that
# of its boot loader, and that with the images that store.sh makes as a directory.
#
#   vm.sh [NAME...]   names as for store.sh
#
# EDPM_CACHE as for build.sh. Disks are written, not mounted: that needs loop devices.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${EDPM_CACHE:-$HOME/.cache/edpm-operators}/vms

# system: the disks of an empty machine.
system() {
  local container
  "$here/load.sh" edpm-vm
  container=$(podman create localhost/edpm-vm:latest /sbin/init)
  mkdir root
  podman export "$container" | tar -C root -x --exclude='dev/*'
  podman rm "$container" >/dev/null
  # Its kernel is its own, with modules; names and addresses come from lab up.
  rm -rf root/usr/local/lib/lab/no-modules root/etc/{hostname,hosts,resolv.conf} root/run/.containerenv
  mkdir root/etc/edpm-lab
  truncate -s 16G root.raw
  mkfs.ext4 -q -F -d root root.raw
  cp root/boot/grub/loader.img loader.raw
  truncate -s 1M loader.raw
  rm -rf root
}

# images STORE: a disk as large as its files, with room for what a file system takes for each.
images() {
  local megabytes
  megabytes=$(($(du -s --block-size=1M "$1" | cut -f1) * 5 / 4 + 64))
  mkfs.ext4 -q -F -O ^has_journal -m 0 -N $(($(find "$1" | wc -l) + 1024)) -d "$1" images.raw "${megabytes}M" >&2
}

# once KIND KEY COMMAND...: the directory KIND-KEY in the cache, made by the command, and no other of the kind.
once() {
  local directory=$cache/$1-$2 part=$cache/$1.part
  (
    flock 9
    [ ! -d "$directory" ] || exit 0
    rm -rf "$cache/$1"-* "$part"
    mkdir -p "$part"
    (cd "$part" && "${@:3}")
    mv "$part" "$directory"
  ) 9>"$cache/.lock"
}

[ $# -gt 0 ] || set -- nova
mkdir -p "$cache"
store=$("$here/store.sh" "$@")
key=$(cat <("$here/build.sh" edpm-vm | xargs -n1 basename) "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
once system "$key" system
once images "$(basename "$store")" images "$store"
printf '%s\n' "$cache/system-$key/root.raw" "$cache/system-$key/loader.raw" "$cache/images-$(basename "$store")/images.raw"
