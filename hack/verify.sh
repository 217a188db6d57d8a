#!/usr/bin/env bash
# Makes everything again that is made by a tool, in a copy of the tree, and fails
# if anything differs from what is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repo=$PWD
: "${MODULES:?run make verify, which lists the modules}"

# existing: of the names on standard input, those of files that are there.
existing() { while read -r name; do [ ! -e "$name" ] || echo "$name"; done; }

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files --cached --others --exclude-standard | existing | tr '\n' '\0' | xargs -0 cp --parents --no-dereference -t "$copy"

# Paths of the copy would make the compiler's cache useless.
cd "$copy"
export GOFLAGS="${GOFLAGS:-} -trimpath"
git init -q . # for the scripts that ask git for files
rm -rf config/crd/bases/*.yaml config/webhook/manifests.yaml config/rbac/aggregate/roles.yaml config/rbac/role.yaml config/overlays/ocs/role.yaml config/overlays/split/operators/[!k]*.yaml docs/reference.md docs/conditions-reference.md internal/conditions/zz_generated.texts.go bundle
make --no-print-directory generate
make --no-print-directory --jobs "$(nproc)" manifests docs
# With the defaults, whatever is being built and deployed.
env -u OPERATORS -u PACKAGE -u CHANNEL -u VERSION -u REPLACES -u IMG -u RUNNER_IMG hack/bundle.sh bundle

failed=0
complain() {
  echo "verify: $*" >&2
  failed=1
}

for path in cmd/manager internal/conditions config/crd config/webhook config/rbac config/prometheus config/overlays/ocs config/overlays/split docs apis bundle; do
  diff -ruN "$repo/$path" "$path" || complain "$path is not what the tools make of the code: run make generate manifests docs bundle"
done
unformatted=$(find . -name '*.go' -print0 | xargs -0 gofmt -l)
[ -z "$unformatted" ] || complain "not formatted, run make fmt: $unformatted"
for module in . $MODULES; do
  go -C "$module" mod tidy -diff || complain "$module/go.mod is not tidy: run go mod tidy there"
done

# broken DIRECTORY: prints it if kustomize cannot build it.
# shellcheck disable=SC2317 # xargs has it called
broken() { go tool -modfile=go.tools.mod kustomize build "config/$1" >/dev/null || echo "$1"; }
export -f broken
dirs=(default overlays/{lab,lab-split,ocs,secrets-by-namespace,split,cert-manager} samples samples/ocs prometheus grafana)
while read -r dir; do
  complain "config/$dir cannot be built"
done < <(printf '%s\n' "${dirs[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'broken {}')
exit "$failed"
