#!/usr/bin/env bash
# Checks the shell scripts and the Ansible collection with the linters that are
# installed, and says how to get those that are not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

have() { command -v "$1" >/dev/null; }

if have shellcheck; then
  mapfile -t scripts < <(git ls-files --cached --others --exclude-standard '*.sh' .ci/run)
  for script in "${scripts[@]}"; do
    [ -e "$script" ] || continue
    case $(head -c2 "$script") in
      '#!') shellcheck -x "$script" ;;
      *) shellcheck --shell=sh "$script" ;; # fed to a shell by a program
    esac
  done
else
  echo "shellcheck is not installed: the scripts are not checked (hack/install-packages.sh lint)" >&2
fi

if have ansible-lint && have ansible-playbook && have shellcheck; then
  ansible/tests/check.sh
else
  echo "ansible-lint is not installed: the collection is not checked (hack/install-packages.sh lint)" >&2
fi
