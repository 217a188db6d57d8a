#!/usr/bin/env bash
# Unpacks the distribution's ironic-lib into bin/ironic-lib, for the test that compares root
# device hints with it, and prints the directory for PYTHONPATH.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/unpack.sh" ironic-lib ironic_lib python3-ironic-lib python3-oslo.utils python3-pyparsing
