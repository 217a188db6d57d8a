#!/usr/bin/env bash
# Applies or deletes edpm-operators in the cluster of the current kubeconfig.
#
#   hack/deploy.sh apply    resource definitions, rights, webhooks and manager
#   hack/deploy.sh lab      the same in the lab, with bin/manager.tar as the image
#   hack/deploy.sh render   what apply would apply, on standard output
#   hack/deploy.sh delete   rights, webhooks and manager; the resource definitions
#                           and so the objects stay
#
# IMG         image of the manager (default localhost/edpm-operators:latest)
# RUNNER_IMG  execution environment for specs that name none (default: none, and
#             then nothing is run)
# RELATED_IMAGE_*  any other image for specs that name none, by the name of the
#             variable in config/manager: NAME@sha256:DIGEST pins it
# BASE        directory of config that apply starts from (default: default, or
#             overlays/split with OPERATORS), and delete
# OPERATORS   deploy these operators only, separated by commas, each with a manager
#             of its own
# KUBECTL     default kubectl
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

image=${IMG:-localhost/edpm-operators:latest}
runner=${RUNNER_IMG:-}
kubectl=${KUBECTL:-kubectl}
operators=${OPERATORS:-}
base=${BASE:-default}
[ -z "$operators" ] || base=overlays/split

mkdir -p bin
dir=$(mktemp -d bin/deploy.XXXXXX) # kustomize reads files below the repository only
trap 'rm -rf "$dir"' EXIT

# images: the kustomization's entry for the image of the manager.
images() {
  local name=${image%@*} tag
  [[ ${name##*/} != *:* ]] || name=${name%:*}
  tag=${image#"$name"}
  echo "images:"
  case $tag in
    @*) echo "- {name: edpm-operators, newName: \"$name\", digest: \"${tag#@}\"}" ;;
    *) echo "- {name: edpm-operators, newName: \"$name\", newTag: \"${tag#:}\"}" ;;
  esac
}

# patch PODSPEC: a patch of the pod template of each manager, as YAML in one line.
patch() {
  echo "- target: {kind: Deployment}"
  echo "  patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: any}, spec: {template: $1}}'"
}

# build BASE [PODSPEC]...: config/BASE with the images and patches, on stdout.
build() {
  local base=$1 pod
  shift
  {
    echo "resources: [../../config/$base]"
    images
    [ $# = 0 ] || echo "patches:"
    for pod in "$@"; do patch "$pod"; done
  } >"$dir/kustomization.yaml"
  go tool -modfile=go.tools.mod kustomize build "$dir"
}

# names KIND: the names of the objects of a kind on stdin.
names() { awk -v kind="$1" '/^---/ {it = 0} /^kind: / {it = $2 == kind} it && /^  name: / {print $2; it = 0}'; }

selector=()

# select_instances [LABEL,]: makes kubectl take what the chosen operators have, and
# what has that label.
select_instances() {
  local operator
  [ -n "$operators" ] || return 0
  for operator in ${operators//,/ }; do
    [ -e "config/overlays/split/operators/$operator.yaml" ] || {
      echo "OPERATORS: $operator is not an operator: see config/overlays/split/operators" >&2
      exit 2
    }
  done
  selector=(--selector "app.kubernetes.io/instance in (${1:-}edpm-operators-${operators//,/,edpm-operators-})")
}

# definitions: the names of the resource definitions on stdin that are applied. A
# definition is that of the operator that its group is called after.
definitions() {
  local chosen=${operators//,/|}
  names CustomResourceDefinition | grep -E "^[a-z]+[.](${chosen:-.*})[.]"
}

# refuse_foreign FILE: fails if a definition in it would take the place of one that
# belongs to another operator.
refuse_foreign() {
  local foreign
  foreign=$(comm -12 <(definitions <"$1" | sort) \
    <("$kubectl" get customresourcedefinitions --selector 'app.kubernetes.io/part-of!=edpm-operators' --output name | cut -d/ -f2 | sort))
  [ -n "$foreign" ] || return 0
  echo "These resource definitions belong to another operator, and nothing was applied:" >&2
  awk '{print "  " $0}' <<<"$foreign" >&2
  echo "Deploy the operators whose kinds are free, by OPERATORS=nova,dataplane,...: see docs/coexistence.md." >&2
  echo "If they are of an older version of edpm-operators: kubectl label crd NAME app.kubernetes.io/part-of=edpm-operators" >&2
  return 1
}

# refuse_second FILE: fails if there is a manager that the file does not have: both
# would look after the same objects.
refuse_second() {
  local others
  others=$(comm -13 <(names Deployment <"$1" | sed 's|^|edpm-operators-system/|' | sort) \
    <("$kubectl" get deployments --all-namespaces --selector app.kubernetes.io/name=edpm-operators,app.kubernetes.io/component=manager \
      --output jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}' | sort))
  [ -n "$others" ] || return 0
  echo "edpm-operators is deployed in another way already, and nothing was applied:" >&2
  awk '{print "  Deployment " $0}' <<<"$others" >&2
  echo "Remove that first, and leave the resource definitions: make undeploy, with the BASE or OPERATORS that it was deployed with." >&2
  return 1
}

apply() {
  local manifests=$dir/manifests.yaml
  select_instances edpm-operators,
  build "$@" >"$manifests"
  refuse_foreign "$manifests"
  refuse_second "$manifests"
  "$kubectl" apply --server-side "${selector[@]}" -f "$manifests"
  "$kubectl" -n edpm-operators-system rollout status deployment --selector app.kubernetes.io/component=manager --timeout 5m
}

# environment: the images of the manager's environment that are given, as entries
# of a YAML list.
environment() {
  local name
  if [ -n "$runner" ]; then
    : "${RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT=$runner}" "${RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT=$runner}"
  fi
  for name in "${!RELATED_IMAGE_@}"; do echo "{name: $name, value: \"${!name}\"},"; done
}

# chosen is the patch that gives the manager these images, if there is one.
env=$(environment)
chosen=(${env:+"{spec: {containers: [{name: manager, env: [$env]}]}}"})

case ${1:-} in
  apply)
    apply "$base" "${chosen[@]}"
    ;;
  render) build "$base" "${chosen[@]}" ;;
  lab)
    go run ./test/lab load bin/manager.tar
    image=localhost/edpm-operators:latest
    # The name of the image is always the same: only this tells that it is new.
    id=$(sha256sum bin/manager | cut -c1-16)
    apply "${BASE:-overlays/lab}" "{metadata: {annotations: {edpm.openstack.org/manager-build: \"$id\"}}}"
    ;;
  delete)
    case $base in
      *split) base=overlays/split/operators ;;
      *) base=operator ;;
    esac
    select_instances
    build "$base" | "$kubectl" delete --ignore-not-found "${selector[@]}" -f -
    echo "The resource definitions and their objects are still there. Once no object is left:"
    echo "  $kubectl delete -k config/crd --ignore-not-found"
    ;;
  *)
    echo "usage: ${0##*/} apply|lab|render|delete" >&2
    exit 2
    ;;
esac
