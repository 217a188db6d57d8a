#!/usr/bin/env bash
# Applies or deletes the suite in the cluster of the current kubeconfig.
#
#   hack/deploy.sh apply    resource definitions, rights, webhooks and manager
#   hack/deploy.sh lab      the same in the lab, with bin/manager.tar as the image
#   hack/deploy.sh render   what apply would apply, on standard output
#   hack/deploy.sh delete   rights, webhooks and manager; the resource definitions
#                           and so the objects stay
#
# IMG         image of the manager (default localhost/edpm-operators:latest)
# RUNNER_IMG  execution environment for specs that name none (default: the
#             manager's own choice)
# RELATED_IMAGE_*  any other image for specs that name none, by the name of the
#             variable in config/manager: NAME@sha256:DIGEST pins it
# BASE        directory of config that apply starts from (default: default)
# KUBECTL     default kubectl
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

image=${IMG:-localhost/edpm-operators:latest}
runner=${RUNNER_IMG:-}
kubectl=${KUBECTL:-kubectl}

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

# patch PODSPEC: a patch of the manager's pod template, as YAML in one line.
patch() {
  echo "- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: edpm-operators-manager, namespace: edpm-operators-system}, spec: {template: $1}}'"
}

# build BASE [PODSPEC]...: config/BASE with the images and patches, on stdout.
build() {
  local dir=bin/deploy base=$1 pod
  shift
  mkdir -p "$dir"
  {
    echo "resources: [../../config/$base]"
    images
    [ $# = 0 ] || echo "patches:"
    for pod in "$@"; do patch "$pod"; done
  } >"$dir/kustomization.yaml"
  go tool -modfile=go.tools.mod kustomize build "$dir"
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

# chosen: BASE with these images.
chosen() {
  local env
  env=$(environment)
  build "${BASE:-default}" ${env:+"{spec: {containers: [{name: manager, env: [$env]}]}}"}
}

# definitions: the names of the resource definitions on stdin.
definitions() { awk '/^---/ {crd = 0} /^kind: CustomResourceDefinition/ {crd = 1} crd && /^  name: / {print $2; crd = 0}'; }

# refuse_foreign FILE: fails if a definition in it would take the place of one that
# belongs to another operator.
refuse_foreign() {
  local foreign
  foreign=$(comm -12 <(definitions <"$1" | sort) \
    <("$kubectl" get customresourcedefinitions --selector 'app.kubernetes.io/part-of!=edpm-operators' --output name | cut -d/ -f2 | sort))
  [ -n "$foreign" ] || return 0
  echo "These resource definitions belong to another operator, and nothing was applied:" >&2
  echo "  ${foreign//$'\n'/$'\n'  }" >&2
  echo "Deploy the operators whose kinds are free: OPERATORS=nova,dataplane,... (docs/coexistence.md)." >&2
  echo "Definitions of an older version of this suite are yours to label: kubectl label crd NAME app.kubernetes.io/part-of=edpm-operators" >&2
  return 1
}

# apply COMMAND...: applies what the command writes.
apply() {
  mkdir -p bin/deploy
  "$@" >bin/deploy/manifests.yaml
  refuse_foreign bin/deploy/manifests.yaml
  "$kubectl" apply --server-side -f bin/deploy/manifests.yaml
  "$kubectl" -n edpm-operators-system rollout status deployment/edpm-operators-manager --timeout 5m
}

case ${1:-} in
  apply) apply chosen ;;
  render) chosen ;;
  lab)
    go run ./test/lab load bin/manager.tar
    image=localhost/edpm-operators:latest
    # The name of the image is always the same: only this tells that it is new.
    id=$(sha256sum bin/manager | cut -c1-16)
    apply build overlays/lab "{metadata: {annotations: {edpm.openstack.org/manager-build: \"$id\"}}}"
    ;;
  delete)
    build operator | "$kubectl" delete --ignore-not-found -f -
    echo "The resource definitions and their objects are still there. Once no object is left:"
    echo "  $kubectl delete -k config/crd --ignore-not-found"
    ;;
  *)
    echo "usage: ${0##*/} apply|lab|render|delete" >&2
    exit 2
    ;;
esac
