#!/usr/bin/env bash
# linked.sh OPERATOR...: the packages of edpm-operators that these operators are made of.
# What they may do is written beside their code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=$(go list -m)
paths=()
for operator in "$@"; do paths+=("./controllers/$operator/..." "./webhooks/$operator/..."); done
go list -deps "${paths[@]}" | grep -E "^$module/(controllers|webhooks|internal)/"
printf '%s\n' "$module/cmd/manager" "$module/internal/coexistence"
