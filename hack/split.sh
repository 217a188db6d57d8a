#!/usr/bin/env bash
# Makes config/overlays/split/operators from config/operator: a manager for each
# operator, with the rights that its code needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool() { go tool -modfile=go.tools.mod "$@"; }

operators=$(comm -12 <(ls controllers) <(ls webhooks) | grep -vx -e ocs -e '.*\.go' | paste -sd,)
roles=$(mktemp -d)
trap 'rm -rf "$roles"' EXIT

# role OPERATOR: makes its role. Each takes seconds of one processor.
role() {
  tool controller-gen rbac:roleName=manager-role "paths=$(hack/linked.sh "$1" | paste -sd';')" output:rbac:dir="$roles/$1"
}
export roles
export -f tool role
tr , '\n' <<<"$operators" | xargs -P "$(nproc)" -I '{}' bash -euo pipefail -c 'role {}'
tool kustomize build config/operator | go run ./hack/split -operators "$operators" -roles "$roles" -out config/overlays/split/operators
