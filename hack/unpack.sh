#!/usr/bin/env bash
# hack/unpack.sh NAME MODULE PACKAGE...
#
# Unpacks packages of the distribution into bin/NAME, for tests that compare with their
# MODULE, and prints the directory for PYTHONPATH. They are not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=$1 module=$2
packages=("${@:3}")
modules=$PWD/bin/$name/usr/lib/python3/dist-packages

if [ ! -d "$modules/$module" ]; then
  command -v apt-get >/dev/null || { echo "$name: there is no apt-get to get it with" >&2; exit 1; }
  down=$(mktemp -d)
  trap 'rm -rf "$down"' EXIT
  download() { (cd "$down" && apt-get -q -o Acquire::Retries=3 -o APT::Sandbox::User=root download "${packages[@]}") >&2; }
  # The lists of packages may be missing, or older than what the archive has.
  download || { apt-get -q -o Acquire::Retries=3 update >&2 && download; }
  mkdir -p "bin/$name"
  for package in "$down"/*.deb; do dpkg-deb -x "$package" "bin/$name"; done
fi
echo "$modules"
