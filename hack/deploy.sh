#!/usr/bin/env bash
# Applies or deletes the suite in the cluster of the current kubeconfig.
#
#   hack/deploy.sh apply    resource definitions, rights, webhooks and manager
#   hack/deploy.sh delete   all of that but the resource definitions, so that the
#                           objects stay
#
# IMG         image of the manager (default localhost/edpm-operators:latest)
# RUNNER_IMG  execution environment for specs that name none (default: the
#             manager's own choice)
# KUBECTL     default kubectl
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
image=${IMG:-localhost/edpm-operators:latest}
runner=${RUNNER_IMG:-}
kubectl=${KUBECTL:-kubectl}

# overlay BASE: a kustomization over BASE with the images; prints its directory.
overlay() {
  local dir=$repo/bin/deploy name=${image%@*} variable
  mkdir -p "$dir"
  [[ ${name##*/} != *:* ]] || name=${name%:*}
  {
    echo "resources: [../../config/$1]"
    echo "images:"
    if [[ $image == *@* ]]; then
      echo "- {name: edpm-operators, newName: \"$name\", digest: \"${image#*@}\"}"
    else
      local tag=${image#"$name"}
      tag=${tag#:}
      echo "- {name: edpm-operators, newName: \"$name\", newTag: \"${tag:-latest}\"}"
    fi
    if [ -n "$runner" ]; then
      echo "patches:"
      echo "- target: {kind: Deployment, name: edpm-operators-manager}"
      echo "  patch: |-"
      echo "    apiVersion: apps/v1"
      echo "    kind: Deployment"
      echo "    metadata: {name: edpm-operators-manager}"
      echo "    spec: {template: {spec: {containers: [{name: manager, env: ["
      for variable in RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT; do
        echo "      {name: $variable, value: \"$runner\"},"
      done
      echo "    ]}]}}}"
    fi
  } >"$dir/kustomization.yaml"
  echo "$dir"
}

build() { (cd "$repo" && go tool -modfile=go.tools.mod kustomize build "$(overlay "$1")"); }

case ${1:-} in
  apply)
    build default | "$kubectl" apply --server-side -f -
    "$kubectl" -n edpm-operators-system rollout status deployment/edpm-operators-manager --timeout 5m
    ;;
  delete)
    build operator | "$kubectl" delete --ignore-not-found -f -
    echo "The resource definitions and their objects are still there. Once no object is left:"
    echo "  $kubectl delete -k config/crd"
    ;;
  *)
    echo "usage: ${0##*/} apply|delete" >&2
    exit 2
    ;;
esac
