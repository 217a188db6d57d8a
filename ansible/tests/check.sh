#!/bin/sh
# Checks the collection without any host: lint, syntax, shell. make test runs its tests.
# Needs ansible-core, ansible-lint and shellcheck.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# Names such as edpm.operators.nova resolve only in a tree of collections.
collection=$tree/ansible_collections/edpm/operators
mkdir -p "$collection"
cp -R "$here/." "$collection"
cd "$collection"
export ANSIBLE_COLLECTIONS_PATH="$tree" ANSIBLE_HOME="$tree/home"

ansible-lint --offline --nocolor -q
set --
for playbook in playbooks/*.yml; do
  set -- "$@" "edpm.operators.$(basename "$playbook" .yml)"
done
ansible-playbook --syntax-check -i localhost, "$@" >/dev/null
shellcheck tests/check.sh
shellcheck --shell=sh roles/*/files/*.sh
shellcheck "$here"/../test/lab/images/*.sh "$here"/../test/lab/images/*/*.sh
