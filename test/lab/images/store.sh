#!/usr/bin/env bash
# Makes one image store that all pretend hosts share, and prints its directory.
# A host mounts it read-only at /var/lib/edpm-images, where the storage.conf of the
# edpm-host image looks for images (additionalimagestores): podman in the host then
# has the images without a registry and without a copy of its own.
#
#   store.sh [NAME...]   names as for build.sh (default nova)
#
# EDPM_CACHE as for build.sh. It must not be on overlayfs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${EDPM_CACHE:-$HOME/.cache/edpm-operators}/stores
log() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

[ $# -gt 0 ] || set -- nova
archives=$("$here/build.sh" "$@")
hash=$(echo "$archives" | xargs -n1 basename | sha256sum | cut -c1-16)
store=$cache/$hash

mkdir -p "$cache"
if [ "$(stat -f -c %T "$cache")" = overlayfs ]; then
  log "$cache is on overlayfs, which cannot hold an image store: set EDPM_CACHE to another file system"
  exit 1
fi

# discard DIRECTORY: a store's layers may still be mounted.
discard() {
  umount --quiet "$1/overlay" 2>/dev/null || true
  rm -rf "$1"
}

(
  flock 9
  if ! [ -e "$store/complete" ]; then
    discard "$store"
    runroot=$(mktemp -d)
    while read -r archive; do
      log "loading $archive"
      podman --root "$store" --runroot "$runroot" --storage-driver overlay load --quiet --input "$archive" >&2
    done <<<"$archives"
    umount --quiet "$store/overlay" 2>/dev/null || true
    rm -rf "$runroot"
    touch "$store/complete"
  fi
) 9>"$cache/.lock"
echo "$store"
