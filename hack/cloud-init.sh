#!/usr/bin/env bash
# Unpacks the distribution's cloud-init into bin/cloud-init, for tests that compare
# with it, and prints the directory for PYTHONPATH. It is not installed: an installed
# cloud-init runs at the next boot and gives the machine new host keys.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/unpack.sh" cloud-init cloudinit \
  cloud-init python3-configobj python3-jsonschema python3-jsonpatch python3-json-pointer python3-oauthlib python3-pyrsistent python3-attr
