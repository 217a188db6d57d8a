#!/usr/bin/env bash
# Makes the OLM bundle from config, and a file-based catalog from bundles.
#
#   hack/bundle.sh bundle [DIR]               DIR: default bundle
#   hack/bundle.sh catalog DIR BUNDLE...      BUNDLE: the directory of a bundle
#
# OPERATORS   operators of the bundle, separated by commas (default: all but ocs,
#             which a cluster may have from elsewhere)
# VERSION     of the bundle (default 0.1.0)
# REPLACES    the version before it (default: none)
# PACKAGE     name of the package (default edpm-operators, and with OPERATORS
#             followed by their names)
# CHANNEL     default candidate
# IMG         image of the manager (default localhost/edpm-operators:latest)
# RUNNER_IMG  execution environment (default: none, and then nothing is run)
# RELATED_IMAGE_*  any other image that config/olm names, by its variable there
# BUNDLE_IMG  image of the newest bundle, in a registry: the catalog then refers to
#             it instead of holding the bundle
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

channel=${CHANNEL:-candidate}
tool() { go tool -modfile=go.tools.mod "$@"; }

# all_operators: those with controllers and webhooks, but for ocs.
all_operators() {
  comm -12 <(ls controllers) <(ls webhooks) | grep -vx -e ocs -e '.*\.go' | paste -sd,
}

bundle() {
  local out work=bin/_bundle operators package # Go packages are not looked for there
  out=$(realpath -m "${1:-bundle}")
  operators=${OPERATORS:-$(all_operators)}
  package=edpm-operators${OPERATORS:+-${OPERATORS//,/-}}
  rm -rf "$work"
  mkdir -p "$work"
  cp -r config "$work/config"
  # The rights of these operators and no others: config/rbac has those of all.
  # shellcheck disable=SC2046,SC2086 # lists of words
  [ -z "${OPERATORS:-}" ] || tool controller-gen rbac:roleName=manager-role "paths=$(hack/linked.sh ${operators//,/ } | paste -sd';')" output:rbac:dir="$work/config/rbac"
  tool kustomize build "$work/config/olm" |
    go -C hack/bundle run . -out "$out" -operators "$operators" -package "${PACKAGE:-$package}" -channel "$channel" \
      -version "${VERSION:-0.1.0}" -replaces "${REPLACES:-}" -image "${IMG:-localhost/edpm-operators:latest}" -runner "${RUNNER_IMG:-}" \
      -icon "$PWD/config/olm/icon.svg" -scorecard "$PWD/config/scorecard/config.yaml"
}

# annotation DIR KEY: what the bundle says of itself.
annotation() { sed -n "s/^ *operators.operatorframework.io.bundle.$2.v1: //p" "$1/metadata/annotations.yaml"; }

# entry DIR: the bundle as an entry of its channel.
entry() {
  local csv name replaces
  csv=$(echo "$1"/manifests/*.clusterserviceversion.yaml)
  name=$(sed -n '/^metadata:/,/^spec:/s/^  name: //p' "$csv")
  replaces=$(sed -n 's/^  replaces: //p' "$csv")
  echo "- {name: $name${replaces:+, replaces: $replaces}}"
}

catalog() {
  local out=$1 opm dir package newest
  shift
  opm=$(go run ./test/lab binaries olm)/opm
  newest=${*: -1}
  package=$(annotation "$newest" package)
  rm -rf "${out:?}/$package"
  mkdir -p "$out/$package"
  {
    "$opm" init "$package" --default-channel "$(annotation "$newest" channel.default)" --icon config/olm/icon.svg --output yaml
    echo "---"
    echo "{schema: olm.channel, package: $package, name: $(annotation "$newest" channel.default), entries: ["
    for dir in "$@"; do entry "$dir" | sed 's/^- //; s/$/,/'; done
    echo "]}"
    for dir in "$@"; do
      if [ "$dir" = "$newest" ] && [ -n "${BUNDLE_IMG:-}" ]; then dir=$BUNDLE_IMG; fi
      "$opm" render "$dir" --output yaml
    done
  } >"$out/$package/catalog.yaml"
  "$opm" validate "$out"
}

case ${1:-} in
  bundle) bundle "${2:-}" ;;
  catalog) shift && [ $# -ge 2 ] && catalog "$@" ;;
  *)
    echo "usage: ${0##*/} bundle [DIR] | catalog DIR BUNDLE..." >&2
    exit 2
    ;;
esac
