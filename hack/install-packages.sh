#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that a part of this project needs and
# that are missing. It looks for programs and files, not for package names, so
# that what came from elsewhere (Docker's containerd, for one) is left alone. When
# nothing is missing it does and says nothing.
#
#   hack/install-packages.sh PART...     PART: lab, openstack, vm, test, lint
#
#   lab        a cluster and hosts on this machine: make lab-up, demo, e2e
#   openstack  the program openstack, for a lab with OpenStack
#   vm         hosts that are virtual machines, in a lab
#   test       everything that the tests can compare with, and a C compiler for -race
#   lint       ansible-lint and shellcheck
set -euo pipefail

log() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# What each part needs: the part, the package, and one or more programs or files
# of which the first that is there will do.
needs='
lab  containerd                  containerd
lab  containerd                  containerd-shim-runc-v2
lab  containerd                  ctr
lab  runc                        runc
lab  containernetworking-plugins /usr/lib/cni/bridge /opt/cni/bin/bridge
lab  iptables                    iptables
lab  conntrack                   conntrack
lab  nftables                    nft
lab  iproute2                    ip
lab  mount                       mount
lab  util-linux                  flock
lab  podman                      podman
lab  netavark                    /usr/lib/podman/netavark /usr/libexec/podman/netavark
lab  aardvark-dns                /usr/lib/podman/aardvark-dns /usr/libexec/podman/aardvark-dns
lab  mmdebstrap                  mmdebstrap
lab  debian-archive-keyring      /usr/share/keyrings/debian-archive-keyring.gpg
lab  openssh-client              ssh
lab  openssh-client              ssh-keygen
lab  ca-certificates             /etc/ssl/certs/ca-certificates.crt
lab  jq                          jq
lab  python3                     /usr/bin/python3
openstack python3-openstackclient openstack
openstack python3-osc-placement  /usr/lib/python3/dist-packages/osc_placement
vm   qemu-system-x86             qemu-system-x86_64
vm   e2fsprogs                   mkfs.ext4
vm   e2fsprogs                   debugfs
vm   cpio                        cpio
test gcc                         gcc clang cc
test libc6-dev                   /usr/include/stdlib.h
test e2fsprogs                   mkfs.ext4
test e2fsprogs                   debugfs
test git                         git
test python3                     /usr/bin/python3
test python3-oslo.config         /usr/lib/python3/dist-packages/oslo_config
test ansible-core                ansible-playbook
test python3-ansible-runner      ansible-runner /usr/lib/python3/dist-packages/ansible_runner
lint ansible-core                ansible-playbook
lint ansible-lint                ansible-lint
lint shellcheck                  shellcheck
'

# present PROGRAM-OR-FILE...: true if any of them is there.
present() {
  local it
  for it in "$@"; do
    case $it in
      /*) [ -e "$it" ] && return 0 ;;
      *) command -v "$it" >/dev/null && return 0 ;;
    esac
  done
  return 1
}

# missing PART...: the packages that are needed, each once.
missing() {
  local part package alternatives
  while read -r part package alternatives; do
    [ -n "$part" ] || continue
    [[ " $* " == *" $part "* ]] || continue
    # shellcheck disable=SC2086 # a list of words
    present $alternatives || echo "$package"
  done <<<"$needs" | sort -u
}

main() {
  [ $# -gt 0 ] || {
    log "usage: ${0##*/} PART...   (lab, openstack, vm, test, lint)"
    exit 2
  }
  local packages known=() package
  mapfile -t packages < <(missing "$@")
  [ ${#packages[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    log "missing, and there is no apt-get to install it with: ${packages[*]}"
    exit 1
  fi
  if [ "$(id -u)" != 0 ]; then
    log "missing; as root, run: apt-get install --no-install-recommends ${packages[*]}"
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l
  log "installing ${packages[*]}"
  apt-get -q -o Acquire::Retries=3 update </dev/null >&2
  for package in "${packages[@]}"; do
    if [ -n "$(apt-cache show "$package" 2>/dev/null)" ]; then known+=("$package"); else log "this release has no package $package; going on without"; fi
  done
  [ ${#known[@]} -gt 0 ] || return 0
  apt-get -q -y -o Acquire::Retries=3 -o Dpkg::Options::=--force-confold install --no-install-recommends "${known[@]}" </dev/null >&2
}

main "$@"
