#!/usr/bin/env bash
# Shows the main job for real: annotated data plane nodes become nova-computes on
# hosts with systemd and podman. Brings the lab up, deploys the manager into it,
# applies the samples, waits, shows what came of it, and tries what must not work.
# It can be run again at any time; demo-down takes everything away.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

namespace=openstack
demo=test/demo
started=$SECONDS

say() { printf '\n\033[1m[%4ds] %s\033[0m\n' $((SECONDS - started)) "$*"; }
# show prints a command as a person would type it, and then runs it.
show() { printf '\n$ %s\n' "$*"; "$@"; }
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

# refused COMMAND...: the command must fail, and its error is shown.
refused() {
  printf '\n$ %s\n' "$*"
  if "$@"; then
    echo 'This was not refused, and should have been.' >&2
    return 1
  fi
}

bring_up() {
  say 'Bringing up a Kubernetes with one real node, and three hosts'
  lab up --hosts --images ansibleee,glance
  KUBECONFIG=$(lab kubeconfig)
  PATH=$(lab binaries):$PATH
  export KUBECONFIG PATH
}

deploy_manager() {
  say 'Deploying the manager as a pod'
  local there
  there=$(kubectl get deployment --ignore-not-found -n edpm-operators-system -o name edpm-operators-manager)
  make --no-print-directory image-manager
  lab load bin/manager.tar
  kubectl apply --server-side --force-conflicts -k config/overlays/lab >/dev/null
  if [ -n "$there" ]; then # the tag stays the same when the image is built again
    kubectl -n edpm-operators-system rollout restart deployment/edpm-operators-manager
  fi
  kubectl -n edpm-operators-system rollout status deployment/edpm-operators-manager --timeout=180s
}

apply_inputs() {
  say 'Applying the control plane: an image service, a Nova with two cells, and the Secrets that a person gives'
  kubectl label node --overwrite lab-worker-0 zone=zoneA
  kubectl apply -f $demo/controlplane.yaml
  local key
  key=$(dirname "$KUBECONFIG")/ssh/id_ed25519
  kubectl -n $namespace create secret generic dataplane-ansible-ssh-private-key-secret \
    --from-file=ssh-privatekey="$key" --dry-run=client -o yaml | kubectl apply -f -
  say 'Applying the samples, which are those of the founding text'
  kubectl -n $namespace apply --validate=strict -k $demo
  say 'Adding a host that is no compute, and a configuration for one compute'
  kubectl apply -f $demo/dataplane.yaml
  kubectl -n $namespace patch nec edpm-compute-0 --type=merge --patch-file=$demo/custom-config.yaml
}

wait_all() {
  say 'Waiting for the nodes (phases -1 and 0), and then for the computes (phase 1)'
  for n in edpm-compute-0 edpm-compute-1 edpm-storage-0; do wait_ready osdpnode $n 600; done
  for n in edpm-compute-0 edpm-compute-1; do wait_ready nec $n 600; done
  wait_ready glance glance 300
}

show_result() {
  say 'Nodes, with their phases and services'
  show kubectl -n $namespace get osdprole,osdpnode
  show kubectl -n $namespace get osdpnode -o 'custom-columns=NODE:.metadata.name,PROVISIONED:.status.conditions[?(@.type=="ProvisionReady")].status,DEPLOYED:.status.conditions[?(@.type=="DeploymentReady")].status,SERVICE:.status.services[*].name,UP:.status.services[*].ready'
  say 'Computes, with their cells'
  show kubectl -n $namespace get nec
  say 'Runs, with their hosts'
  show kubectl -n $namespace get osaee
  show kubectl -n $namespace get osaee -o 'jsonpath={range .items[*]}{.spec.step}{":"}{range .status.hosts[*]}{"  "}{.name}{" ok="}{.ok}{" changed="}{.changed}{" failed="}{.failed}{end}{"\n"}{end}'
  for host in edpm-compute-0 edpm-compute-1; do
    say "On $host"
    printf '\n$ systemctl is-active edpm_nova_compute.service\n'
    on $host systemctl is-active edpm_nova_compute.service
    printf '\n$ virsh list\n'
    on $host podman exec edpm_libvirt_libvirtd virsh list
    printf '\n$ what the running nova-compute reports of its options\n'
    effective $host
  done
}

# effective HOST: what the running nova-compute says of its options when it is
# asked for a report (oslo.reports does so on SIGUSR2, and masks secrets).
effective() {
  on "$1" "podman exec edpm_nova_compute pkill -USR2 -x nova-compute && sleep 3 &&
    journalctl -b -o cat --no-pager | awk '/^[a-z_]+: *\$/ { default_section = /^default:/ }
      default_section && /^ +(debug|reserved_host_memory_mb|initial_cpu_allocation_ratio|transport_url) =/' | tail -n 4"
}

try_to_move() {
  say 'Trying to move a compute to another cell, which nova cannot do'
  refused kubectl -n $namespace annotate --overwrite osdpnode edpm-compute-1 nova.openstack.org/cell=nova-cell1
  refused kubectl -n $namespace annotate --overwrite osdprole edpm-compute nova.openstack.org/cell=nova-cell2
  say 'Trying a configuration that nova could not read'
  refused kubectl -n $namespace patch nec edpm-compute-0 --type=merge -p '{"spec":{"customServiceConfig":"debug\n"}}'
}

show_map() {
  say 'Where the pods of the control plane are'
  make --no-print-directory plugin
  show bin/kubectl-edpm topology map -n $namespace
}

bring_up
deploy_manager
apply_inputs
wait_all
show_result
try_to_move
show_map
say 'Done. Look around:'
cat <<TXT
  export KUBECONFIG=$KUBECONFIG
  export PATH=$(lab binaries):\$PATH
  make demo-down    # takes everything away
TXT
