#!/usr/bin/env bash
# Makes a release in bin/release: programs, manifests, bundle, bill of materials,
# licences, notes and checksums. Twice with the same input it makes the same bytes.
#
#   hack/release.sh VERSION       for example v0.1.0
#
# IMG, RUNNER_IMG, RELATED_IMAGE_*   images, as for hack/deploy.sh
# PINNED=1    fail if an image is not named by digest (else the release says which)
# OFFLINE=1   continue where the database of vulnerabilities cannot be reached; the
#             release says so in vulnerabilities.txt
# REPLACES    the version before this one, for the bundle
# URL         where the archives of the plugin will be downloaded from
# OUT         default bin/release
# PLATFORMS   of the manager (default "linux/amd64 linux/arm64")
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || {
  echo "usage: ${0##*/} VERSION, such as v0.1.0" >&2
  exit 2
}
out=$(realpath -m "${OUT:-bin/release}")
url=${URL:-https://github.com/edpm-operators/edpm-operators/releases/download/$version}
export IMG=${IMG:-localhost/edpm-operators:$version}
# What make compiles for tests is not what is released.
export GOFLAGS=${GOFLAGS//-gcflags=all=-dwarf=false/}

say() { go -C hack/release run . "$@"; }

# programs: the manager for each platform, and the plugin with its krew manifest.
programs() {
  local platform
  for platform in ${PLATFORMS:-linux/amd64 linux/arm64}; do
    CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -buildvcs=false -ldflags '-s -w' \
      -o "$out/manager_${platform/\//_}" ./cmd/manager
  done
  GOFLAGS="${GOFLAGS:-} -buildvcs=false" go run ./hack/krew "$version" "$url" "$out"
}

# manifests: what is applied without OLM, and the bundle for it.
manifests() {
  local bundle
  hack/deploy.sh render >"$out/install.yaml"
  go tool -modfile=go.tools.mod kustomize build config/crd >"$out/crds.yaml"
  bundle=$(mktemp -d)
  VERSION=${version#v} hack/bundle.sh bundle "$bundle/bundle"
  pinned "$out/install.yaml" "$bundle"/bundle/manifests/*.clusterserviceversion.yaml
  tar --directory "$bundle" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --create bundle |
    gzip --no-name >"$out/bundle.tar.gz"
  rm -r "$bundle"
}

# pinned FILE...: whether every image is named by digest.
pinned() {
  if say pinned "$@" >"$out/images.txt"; then
    echo "every image is pinned by a digest" >"$out/images.txt"
  elif [ -n "${PINNED:-}" ]; then
    cat "$out/images.txt" >&2
    exit 1
  fi
}

# inventory: which modules are in the programs, and their licences.
inventory() {
  local plugin
  plugin=$(mktemp -d)
  tar --extract --gzip --directory "$plugin" --file "$out/kubectl-edpm_linux_amd64.tar.gz"
  say inventory "$out" "$version" "$out"/manager_* "$plugin/kubectl-edpm"
  rm -r "$plugin"
}

rm -rf "$out"
mkdir -p "$out"
say notes "$PWD/CHANGELOG.md" "$version" >"$out/release-notes.md"
programs
manifests
inventory
hack/vulncheck.sh "$out/vulnerabilities.txt"
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "Release $version is in $out:"
ls "$out"
