#!/usr/bin/env bash
# Makes everything again that is made by a tool and fails if anything differs
# from before. What it has made stays, to be looked at and committed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

generated() {
  git ls-files --cached --others --exclude-standard -- \
    config/crd/bases config/rbac/role.yaml docs/reference.md 'apis/**/zz_generated.*.go'
}

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
mkdir "$before/tree" "$before/out"
generated | xargs -r cp --parents -t "$before/tree"
# Left-overs of kinds that are gone must show as well.
rm -f config/crd/bases/*.yaml

make --no-print-directory generate manifests docs

stale=0
for file in $( (generated; cd "$before/tree" && find . -type f -printf '%P\n') | sort -u); do
  old=$before/tree/$file
  [ -e "$old" ] || old=/dev/null
  new=$file
  [ -e "$new" ] || new=/dev/null
  diff -u --label "$file (before)" --label "$file (made again)" "$old" "$new" || stale=1
done

unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r gofmt -l)
[ -z "$unformatted" ] || {
  echo "not formatted: $unformatted" >&2
  stale=1
}
go mod tidy -diff || stale=1
for overlay in default overlays/lab samples; do
  go tool -modfile=go.tools.mod kustomize build "config/$overlay" >"$before/out/build.yaml" || stale=1
done

if [ "$stale" != 0 ]; then
  echo "verify: the files above were not up to date; run make generate manifests docs fmt, and commit" >&2
  exit 1
fi
