#!/usr/bin/env bash
# The steps of the demo in a lab that is up, each a function: main.go says in which
# order.
#
#   demo.sh FUNCTION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/demo/steps.sh
. test/demo/steps.sh

computes=(edpm-compute-0 edpm-compute-1 edpm-compute-2)
# Hosts on which a guest is started.
hosts_of_guests=("${computes[@]:0:2}")

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

# eventually SECONDS COMMAND...: until the command succeeds.
eventually() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    if [ $SECONDS -ge $end ]; then printf 'Not in time: %s\n' "$*" >&2; return 1; fi
    sleep 1
  done
}

apply_all() {
  apply_inputs openstack
  kubectl apply -f $demo/compute-2.yaml
}

wait_all() {
  say 'Waiting for nova in pods, the nodes (phases -1 and 0), and then for the computes (phase 1)'
  wait_ready nova nova 900
  for n in "${computes[@]}"; do wait_ready osdpnode "$n" 600; done
  for n in "${computes[@]}"; do wait_ready nec "$n" 600; done
  wait_ready glance glance 300
}

show_objects() {
  say 'Nodes, with their phases and services'
  show kubectl -n $namespace get osdprole,osdpnode
  show kubectl -n $namespace get osdpnode -o 'custom-columns=NODE:.metadata.name,PROVISIONED:.status.conditions[?(@.type=="ProvisionReady")].status,DEPLOYED:.status.conditions[?(@.type=="DeploymentReady")].status,SERVICE:.status.services[*].name,UP:.status.services[*].ready'
  say 'Computes, with their cells'
  show kubectl -n $namespace get nec
  say 'Runs, with their hosts'
  show kubectl -n $namespace get osaee
  show kubectl -n $namespace get osaee -o 'jsonpath={range .items[*]}{.spec.step}{":"}{range .status.hosts[*]}{"  "}{.name}{" ok="}{.ok}{" changed="}{.changed}{" failed="}{.failed}{end}{"\n"}{end}'
  say 'Where the pods of the control plane are'
  show bin/kubectl-edpm topology map -n $namespace
}

# log_in lets the program openstack act as the administrator.
log_in() {
  # shellcheck source=/dev/null
  . <(lab openrc)
  export PYTHONWARNINGS=ignore
}

status_of() { openstack server show --format value --column status "$1" 2>/dev/null || true; }

# guest_on HOST: a server on the host. One of an earlier demo is kept if it can run.
guest_on() {
  local name=guest-on-$1
  case $(status_of "$name") in
    ACTIVE) return ;;
    SHUTOFF) show openstack server start "$name"; return ;;
    '') ;;
    *) openstack server delete --wait "$name" ;;
  esac
  echo "hello from the config drive of $name" >"$scratch/$name"
  show openstack server create --image guest --flavor guest --nic none --host "$1" \
    --user-data "$scratch/$name" --format value --column id "$name"
}

# is_active SERVER: whether it runs; an error of nova ends the demo.
is_active() {
  local status
  status=$(status_of "$1")
  if [ "$status" = ERROR ]; then openstack server show "$1" >&2; exit 1; fi
  [ "$status" = ACTIVE ]
}

# console SERVER: what the guest itself printed. One that was moved has a new log, with its counter.
console() { openstack console log show "$1" | grep -o 'guest: .*' || counter "$1"; }

# counter SERVER: what the guest printed last, every second.
counter() { openstack console log show "$1" | grep -o 'uptime: [0-9]* of boot .*' | tail -n 1; }

has_spoken() { console "$1" | grep -qE 'hello from the config drive|uptime'; }

# all_up: whether nova has heard of all its services lately.
all_up() {
  local states
  states=$(openstack compute service list --format value --column State) && ! grep -qvx up <<<"$states"
}

show_guests() {
  log_in
  say 'Starting a guest in each cell'
  openstack flavor show guest >/dev/null 2>&1 || openstack flavor create --vcpus 1 --ram 128 --disk 1 guest >/dev/null
  for host in "${hosts_of_guests[@]}"; do guest_on "$host"; done
  for host in "${hosts_of_guests[@]}"; do eventually 300 is_active "guest-on-$host"; done
  for host in "${hosts_of_guests[@]}"; do eventually 240 has_spoken "guest-on-$host"; done
}

host_of() { openstack server show --format value --column OS-EXT-SRV-ATTR:host "$1"; }

# runs_on SERVER HOST: whether it does, and has printed something there.
runs_on() { [ "$(host_of "$1")" = "$2" ] && is_active "$1" && [ -n "$(counter "$1")" ]; }

show_migration() {
  local guest=guest-on-edpm-compute-0 to=edpm-compute-2
  log_in
  say 'Moving the running guest, with its disk, to the other compute of its cell'
  for host in edpm-compute-0 edpm-compute-2; do
    kubectl -n $namespace wait --for=condition=LiveMigrationReady nec/$host --timeout=180s
  done
  if [ "$(host_of $guest)" = $to ]; then to=edpm-compute-0; fi # of an earlier demo
  echo "on $(host_of $guest): $(counter $guest)"
  show openstack --os-compute-api-version 2.30 server migrate --live-migration --host $to --wait $guest
  eventually 180 runs_on $guest $to
  echo "on $(host_of $guest): $(counter $guest)"
}

show_hosts() {
  for host in "${computes[@]}"; do
    say "On $host"
    printf '\n$ systemctl is-active edpm_nova_compute.service\n'
    on "$host" systemctl is-active edpm_nova_compute.service
    printf '\n$ virsh list\n'
    on "$host" podman exec edpm_libvirt_libvirtd virsh list
    printf '\n$ what the running nova-compute reports of its options\n'
    effective "$host"
  done
}

# effective HOST: what the running nova-compute says of its options when it is
# asked for a report (oslo.reports does so on SIGUSR2, and masks secrets).
effective() {
  on "$1" "podman exec edpm_nova_compute pkill -USR2 -x nova-compute && sleep 3 &&
    journalctl -b -o cat --no-pager | awk '/^[a-z_]+: *\$/ { default_section = /^default:/ }
      default_section && /^ +(debug|reserved_host_memory_mb|initial_cpu_allocation_ratio|transport_url) =/' | tail -n 4"
}

show_nova() {
  log_in
  say 'What nova says'
  eventually 90 all_up
  show openstack compute service list
  show kubectl -n $namespace exec nova-api-0 -- nova-manage --config-dir /etc/nova/nova.conf.d cell_v2 list_hosts
  show openstack hypervisor list
  show openstack server list --column Name --column Status --column Host
  for host in "${hosts_of_guests[@]}"; do
    printf '\n$ openstack console log show guest-on-%s | grep guest:\n' "$host"
    console "guest-on-$host"
  done
}

try_to_move() {
  say 'Trying a configuration that nova could not read'
  refused kubectl -n $namespace patch nec edpm-compute-0 --type=merge -p '{"spec":{"customServiceConfig":"debug\n"}}'
  say 'Trying to move a compute to another cell, which nova cannot do'
  refused kubectl -n $namespace annotate --overwrite osdpnode edpm-compute-1 nova.openstack.org/cell=nova-cell1
  refused kubectl -n $namespace annotate --overwrite osdprole edpm-compute nova.openstack.org/cell=nova-cell2
}

look_around() {
  say 'Done. Look around:'
  cat <<TXT
  export KUBECONFIG=$KUBECONFIG
  export PATH=$(lab binaries):\$PATH
  source <(make -s lab-openrc)
  make demo-down    # takes everything away
TXT
}

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
connect
"$@"
