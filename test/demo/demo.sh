#!/usr/bin/env bash
# Shows the main job for real: annotated data plane nodes become nova-computes on
# hosts with systemd and podman. Brings the lab up, deploys the manager into it,
# applies the samples, waits, shows what came of it, and tries what must not work.
# It can be run again at any time; demo-down takes everything away.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/demo/steps.sh
. test/demo/steps.sh

# show prints a command as a person would type it, and then runs it.
show() { printf '\n$ %s\n' "$*"; "$@"; }

# refused COMMAND...: the command must fail, and its error is shown.
refused() {
  printf '\n$ %s\n' "$*"
  if "$@"; then
    echo 'This was not refused, and should have been.' >&2
    return 1
  fi
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
