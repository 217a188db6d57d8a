#!/usr/bin/env bash
# What the demo and the figures have in common: sourced by both, from the root of the repository.

namespace=openstack
demo=test/demo

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
lab() { go run ./test/lab "$@"; }
on() { local host=$1; shift; lab ssh "root@$host" -- "$@"; }

# wait_ready KIND NAME SECONDS: waits for Ready and says what it waits for.
wait_ready() {
  local kind=$1 name=$2 end=$((SECONDS + $3)) last='' now=''
  until [ "$(kubectl -n $namespace get "$kind" "$name" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; do
    now=$(kubectl -n $namespace get "$kind" "$name" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}')
    if [ "$now" != "$last" ]; then printf '  %s %s: %s\n' "$kind" "$name" "$now"; last=$now; fi
    if [ $SECONDS -ge $end ]; then
      printf 'Not Ready in time: %s %s\n' "$kind" "$name" >&2
      kubectl -n $namespace get "$kind" "$name" -o yaml >&2
      return 1
    fi
    sleep 1
  done
  printf '  %s %s: Ready\n' "$kind" "$name"
}

# connect has kubectl use the lab.
connect() {
  KUBECONFIG=$(lab kubeconfig)
  PATH=$(lab binaries):$PATH
  export KUBECONFIG PATH
}

# deploy_manager deploys the image that make image-manager has made.
deploy_manager() {
  say 'Deploying the manager as a pod'
  local there
  there=$(kubectl get deployment --ignore-not-found -n edpm-operators-system -o name edpm-operators-manager)
  lab load bin/manager.tar
  kubectl apply --server-side --force-conflicts -k config/overlays/lab >/dev/null
  if [ -n "$there" ]; then # the tag stays the same when the image is built again
    kubectl -n edpm-operators-system rollout restart deployment/edpm-operators-manager
  fi
  kubectl -n edpm-operators-system rollout status deployment/edpm-operators-manager --timeout=180s
}

# apply_inputs CONTROLPLANE: a file or directory of the demo with the control plane.
apply_inputs() {
  say 'Applying the control plane: an image service, a Nova with two cells, and the Secrets that a person gives'
  kubectl label node --overwrite lab-worker-0 zone=zoneA
  kubectl apply -f $demo/namespace.yaml
  kubectl apply -f "$demo/$1"
  local key
  key=$(dirname "$KUBECONFIG")/ssh/id_ed25519
  kubectl -n $namespace create secret generic dataplane-ansible-ssh-private-key-secret \
    --from-file=ssh-privatekey="$key" --dry-run=client -o yaml | kubectl apply -f -
  say 'Applying the samples, which are those of the founding text, with a configuration for one compute'
  # Before there are nodes, so that no host is configured twice.
  kubectl -n $namespace apply -f config/samples/dataplane_v1beta1_openstackdataplanerole.yaml
  kubectl -n $namespace patch osdprole edpm-compute --type=merge \
    -p "{\"spec\":{\"nodeTemplate\":{\"ansibleVars\":{\"edpm_nova_virt_type\":\"$(lab virt-type)\"}}}}"
  kubectl -n $namespace apply --validate=strict -k $demo
}
