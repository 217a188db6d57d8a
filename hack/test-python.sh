#!/usr/bin/env bash
# Runs the tests of the Python that runs inside the execution environment, with
# the interpreter that has Ansible, else with python3 as far as that goes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=$(command -v python3 || true)
if command -v ansible-playbook >/dev/null; then
  python=$(sed -n '1s/^#! *//p' "$(command -v ansible-playbook)")
fi
if [ -z "$python" ]; then
  echo "python3 is not installed: the Python tests are left out" >&2
  exit 0
fi

export PYTHONDONTWRITEBYTECODE=1
# shellcheck disable=SC2086 # the line of the interpreter can have arguments
if $python -c 'import ansible' 2>/dev/null; then
  $python -m unittest discover -s ansible/tests -p 'test_*.py'
else
  echo "ansible-core is not installed: the tests of the callback are left out" >&2
  $python -m unittest discover -s ansible/tests -p 'test_entrypoint.py'
fi
