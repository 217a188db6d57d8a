#!/usr/bin/env bash
# Runs the tests of the Python that runs inside the execution environment, with
# the interpreter that has Ansible, else with python3 as far as that goes. In CI
# (variable CI), and with E2E_LONG=1, it has to be there: tests that are left out protect
# nothing. The tests run with the newest ansible-core as well then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

complete=
if [ -n "${CI:-}" ] || [ "${E2E_LONG:-}" = 1 ]; then complete=yes; fi

python=$(command -v python3 || true)
if command -v ansible-playbook >/dev/null; then
  python=$(sed -n '1s/^#! *//p' "$(command -v ansible-playbook)")
fi
# Not the directory ansible/ of this project.
# shellcheck disable=SC2086 # the line of the interpreter can have arguments
if [ -n "$complete" ] && { [ -z "$python" ] || ! $python -c 'import ansible.release' 2>/dev/null; }; then
  echo "ansible-core is not installed, and CI or E2E_LONG=1 is set: install it (hack/install-packages.sh test)" >&2
  exit 1
fi
if [ -z "$python" ]; then
  echo "python3 is not installed: the Python tests are left out" >&2
  exit 0
fi

export PYTHONDONTWRITEBYTECODE=1
# shellcheck disable=SC2086 # the line of the interpreter can have arguments
if $python -c 'import ansible.release' 2>/dev/null; then
  $python -m unittest discover -s ansible/tests -p 'test_*.py'
else
  echo "ansible-core is not installed: the tests of the callback are left out" >&2
  $python -m unittest discover -s ansible/tests -p 'test_entrypoint.py'
fi

# The same with the newest release that is served, in an image, but for those that only run
# modules: these are programs, whatever release sends them to a host.
if [ -n "$complete" ] && [ "$(id -u)" != 0 ]; then
  echo "the tests with the newest ansible-core need root, for containers: they are left out" >&2
elif [ -n "$complete" ]; then
  test/lab/images/build.sh ansible-newest >/dev/null
  limit=$(ulimit -Hn)
  cd ansible/tests
  mapfile -t files < <({ grep --files-without-match 'modules\.ModuleTest' test_*.py; grep --files-with-matches 'runs\.Run\b' test_*.py; } | sort --unique)
  podman --runtime runc run --rm --network none --privileged --ulimit "nofile=$limit:$limit" --ulimit nproc=16384:16384 \
    --volume "$PWD/../..:/src:ro" --workdir /src/ansible/tests --env PYTHONDONTWRITEBYTECODE=1 --env LANG=C.UTF-8 \
    localhost/edpm-ansible-newest:latest python3 -m unittest "${files[@]%.py}"
fi
