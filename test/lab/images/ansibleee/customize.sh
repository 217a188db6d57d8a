#!/bin/sh
# Finishes the root file system under the execution environment. $1 is its directory.
set -eu
root=$1
chroot "$root" useradd --uid 1001 --home-dir /runner --no-create-home --shell /bin/sh runner
install -d -m 0775 -o 1001 -g 0 "$root/runner"

# Of the community collections keep those that playbooks for hosts of this kind use.
collections=$root/usr/lib/python3/dist-packages/ansible_collections
for collection in "$collections"/*/*; do
  case ${collection#"$collections"/} in
    ansible/posix | ansible/utils | containers/podman | community/general) ;;
    *) rm -rf "$collection" ;;
  esac
done
find "$root/usr" -name __pycache__ -prune -path '*ansible_collections*' -exec rm -rf {} +
