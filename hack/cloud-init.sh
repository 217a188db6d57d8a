#!/usr/bin/env bash
# Unpacks the distribution's cloud-init into bin/cloud-init, for tests that compare
# with it, and prints the directory for PYTHONPATH. It is not installed: an installed
# cloud-init runs at the next boot and gives the machine new host keys.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(cloud-init python3-configobj python3-jsonschema python3-jsonpatch python3-json-pointer python3-oauthlib python3-pyrsistent python3-attr)
modules=$PWD/bin/cloud-init/usr/lib/python3/dist-packages

if [ ! -d "$modules/cloudinit" ]; then
  command -v apt-get >/dev/null || { echo "${0##*/}: there is no apt-get to get cloud-init with" >&2; exit 1; }
  down=$(mktemp -d)
  trap 'rm -rf "$down"' EXIT
  download() { (cd "$down" && apt-get -q -o Acquire::Retries=3 -o APT::Sandbox::User=root download "${packages[@]}") >&2; }
  # The lists of packages may be missing, or older than what the archive has.
  download || { apt-get -q -o Acquire::Retries=3 update >&2 && download; }
  mkdir -p bin/cloud-init
  for package in "$down"/*.deb; do dpkg-deb -x "$package" bin/cloud-init; done
fi
echo "$modules"
