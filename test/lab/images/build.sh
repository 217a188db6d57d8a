#!/usr/bin/env bash
# Builds the images of the lab as docker-archive files, without a registry, and
# prints the path of each on standard output. What is already there is kept: the
# file name carries a hash of everything the image is made of.
#
#   build.sh NAME...     NAME: pause, ansibleee, ansible-newest, edpm-host, edpm-machine, edpm-vm, edpm-controller, nova, nova-newest, glance,
#                        node-exporter, sriov-agent, cinder-volume, ovn, tempest
#
# EDPM_CACHE          where files are kept (default ~/.cache/edpm-operators)
# EDPM_CONTROL_PLANE_SUITE, EDPM_RUNNER_SUITE, EDPM_HOST_SUITE
#                     Debian releases of the control plane and the services (default trixie), the
#                     execution environment (default trixie), and hosts (default bookworm)
# EDPM_DEBIAN_MIRROR  mirror to build from (default: those of mmdebstrap)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
cache=${EDPM_CACHE:-$HOME/.cache/edpm-operators}/images
mirror=${EDPM_DEBIAN_MIRROR:-}
keep=3    # finished files kept for each name
room=4096 # MB that must be free before an image is built

log() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  log "$*"
  exit 1
}

# suite_of NAME: the release that an image is made of.
suite_of() {
  case $1 in
    ansibleee) echo "${EDPM_RUNNER_SUITE:-trixie}" ;;
    edpm-host | edpm-machine | edpm-vm) echo "${EDPM_HOST_SUITE:-bookworm}" ;;
    ansible-newest | nova-newest) echo forky ;;
    *) echo "${EDPM_CONTROL_PLANE_SUITE:-trixie}" ;;
  esac
}

# need TOOL PACKAGE...
need() {
  command -v "$1" >/dev/null || die "$1 is missing: apt-get install ${*:2}"
}

# require_room DIRECTORY VARIABLE: fails without room for the root file system of an image
# there. VARIABLE says where else it could be.
require_room() {
  local free
  free=$(df --output=avail --block-size=M "$1" | tail -n 1 | tr -dc 0-9)
  [ "$free" -ge "$room" ] || die "$1 has $free MB free, and an image needs $room MB: remove something, or set $2 to another directory"
}

# hash_of PATH...: 16 hex digits over names, modes and content.
hash_of() {
  local path
  for path in "$@"; do
    [ -e "$path" ] || die "$path does not exist"
    (
      cd "$(dirname "$path")"
      find "$(basename "$path")" -name __pycache__ -prune -o -name '*.pyc' -prune -o \
        \( -type f -printf '%p %m ' -exec sha256sum {} \; \) -o \( -type l -printf '%p -> %l\n' \) | LC_ALL=C sort
    )
  done | sha256sum | cut -c1-16
}

packages_of() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1" | tr -d ' \t' | paste -sd,; }

# base NAME PACKAGES [HOOK]: sets base_image to a local image with a root file
# system of these packages. Call it under the lock of NAME.
base() {
  local name=$1 packages=$2 hook=${3:-} hash tar
  hash=$(echo "$suite $mirror $(hash_of "$packages" ${hook:+"$hook"})" "$(declare -f bootstrap)" | sha256sum | cut -c1-16)
  tar=$cache/base-$name-$hash.tar
  base_image=localhost/edpm-base-$name:$hash
  if ! [ -s "$tar" ]; then
    log "$name: installing $(packages_of "$packages" | tr , '\n' | wc -l) packages of Debian $suite"
    # mmdebstrap runs a Python script for each package. An interpreter that a version manager
    # puts before that of the distribution takes several times as long to start.
    PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH bootstrap "$(packages_of "$packages")" "$hook" "$tar.part.tar" >&2
    finish "$tar.part.tar" "$tar"
    prune "base-$name" 1
  fi
  if ! podman image exists "$base_image"; then
    log "$name: importing the root file system"
    podman import --quiet "$tar" "$base_image" >&2
  fi
}

# bootstrap PACKAGES HOOK OUTPUT
bootstrap() {
  local options=(--variant=minbase --include="$1"
    --aptopt='Acquire::Retries "3"'
    --aptopt='APT::Install-Recommends "false"'
    --dpkgopt='path-exclude=/usr/share/man/*'
    --dpkgopt='path-exclude=/usr/share/info/*'
    --dpkgopt='path-exclude=/usr/share/locale/*'
    --dpkgopt='path-exclude=/usr/share/doc/*'
    --dpkgopt='path-include=/usr/share/doc/*/copyright')
  if [ -n "$2" ]; then options+=(--customize-hook="$2"); fi
  # The list of packages of testing is not always renewed in time.
  if [ "$suite" = forky ]; then options+=(--aptopt='Acquire::Check-Valid-Until "false"'); fi
  if [ -n "$mirror" ]; then
    mmdebstrap "${options[@]}" "$suite" "$3" "$mirror"
  else
    mmdebstrap "${options[@]}" "$suite" "$3"
  fi
}

# finish PART FILE: gives a file its name once it is on the disk.
finish() {
  sync "$1"
  mv "$1" "$2"
}

# unfinished NAME: removes what builds of NAME have left that were killed or failed.
# Call it under the lock of NAME.
unfinished() {
  rm -f "$cache/$1"-????????????????.tar.part "$cache/base-$1"-????????????????.tar.part.tar
}

# prune PREFIX COUNT: keeps the COUNT newest finished files of PREFIX.
prune() {
  find "$cache" -maxdepth 1 -name "$1-????????????????.tar" -printf '%T@ %p\n' | sort -rn |
    tail -n +$(($2 + 1)) | cut -d' ' -f2- | while read -r old; do
    log "removing $old"
    rm -f "$old"
  done
}

# layer CONTEXT CONTAINERFILE TAG...: builds on $base_image. No step of the
# Containerfile may run a command: that needs more rights than a CI machine has.
layer() {
  local context=$1 containerfile=$2 tags=() tag
  shift 2
  for tag in "$@"; do tags+=(--tag "$tag"); done
  podman build --quiet --pull=never --network=none --build-arg "BASE_IMAGE=$base_image" \
    --file "$containerfile" "${tags[@]}" "$context" >&2
}

# run_once IMAGE COMMAND TAG: tags what becomes of IMAGE when COMMAND has run in it.
run_once() {
  local container=edpm-lab-build-$$ limit
  limit=$(ulimit -Hn)
  podman --runtime runc run --name "$container" --network none --privileged \
    --ulimit "nofile=$limit:$limit" --ulimit nproc=16384:16384 "$1" "$2" >&2 || {
    podman rm --force "$container" >&2
    die "$2 failed in $1"
  }
  podman commit --quiet --change 'CMD ["/sbin/init"]' --change 'STOPSIGNAL SIGRTMIN+3' "$container" "$3" >&2
  podman rm "$container" >&2
}

# Each of the following makes the images of its name and sets tags.
make_pause() {
  local dir
  need go golang
  dir=$(mktemp -d)
  CGO_ENABLED=0 go build -ldflags '-s -w' -o "$dir/pause" "$here/pause/main.go" >&2
  tar -C "$dir" --owner=0 --group=0 -c pause |
    podman import --quiet --change 'ENTRYPOINT ["/pause"]' --change 'USER 65535:65535' - localhost/pause:latest >&2
  rm -rf "$dir"
  tags=(localhost/pause:latest)
}

make_ansibleee() {
  tags=(localhost/edpm-ansibleee:latest)
  base ansibleee "$repo/ansible/execution-environment/packages.txt" "$here/ansibleee/customize.sh"
  layer "$repo/ansible" "$repo/ansible/execution-environment/Containerfile" "${tags[@]}"
}

make_ansible-newest() {
  tags=(localhost/edpm-ansible-newest:latest)
  base ansible-newest "$here/ansible-newest/packages.txt"
  podman tag "$base_image" "${tags[@]}"
}

make_edpm-host() {
  # With the release too, so that tests of hosts of several do not take each other's.
  tags=(localhost/edpm-host:latest "localhost/edpm-host:$suite")
  base edpm-host "$here/edpm-host/packages.txt" "$here/edpm-host/customize.sh"
  layer "$here/edpm-host" "$here/edpm-host/Containerfile" "${tags[@]}"
}

# host_with NAME: sets context to a directory with what makes NAME of edpm-host, and builds its base.
host_with() {
  context=$(mktemp -d)
  cat "$here/edpm-host/packages.txt" "$here/$1/packages.txt" >"$context/packages.txt"
  cat "$here/edpm-host/customize.sh" "$here/$1/customize.sh" >"$context/customize.sh"
  chmod +x "$context/customize.sh"
  base "$1" "$context/packages.txt" "$context/customize.sh"
  cp -a "$here/edpm-host/rootfs" "$context"
}

make_edpm-machine() {
  local context
  tags=(localhost/edpm-machine:latest)
  host_with edpm-machine
  # Its host key is the one that cloud-init is given: no other is made.
  rm -r "$context/rootfs/etc/systemd/system/ssh.service.d"
  cp -a "$here/edpm-machine/rootfs" "$context"
  layer "$context" "$here/edpm-machine/Containerfile" "${tags[@]}"
  rm -rf "$context"
}

make_edpm-vm() {
  local context
  tags=(localhost/edpm-vm:latest)
  host_with edpm-vm
  cp -a "$here/edpm-vm/rootfs" "$context"
  layer "$context" "$here/edpm-vm/Containerfile" "${tags[@]}"
  rm -rf "$context"
}

make_edpm-controller() {
  local context empty=localhost/edpm-controller-empty:latest
  tags=(localhost/edpm-controller:latest)
  base edpm-controller "$here/edpm-controller/packages.txt" "$here/edpm-controller/customize.sh"
  context=$(mktemp -d)
  cp -a "$here/edpm-controller/rootfs" "$context"
  cp -a "$here/edpm-host/rootfs/etc/ssh" "$context/rootfs/etc/"
  cp -a "$here/edpm-host/rootfs/etc/systemd/system/ssh.service.d" "$context/rootfs/etc/systemd/system/"
  log "edpm-controller: making the guest"
  "$here/edpm-controller/guest/build.sh" "$context/guest" "$suite" ${mirror:+"$mirror"} >&2
  layer "$context" "$here/edpm-controller/Containerfile" "$empty"
  rm -rf "$context"
  log "edpm-controller: making the databases"
  run_once "$empty" /usr/local/lib/lab/bootstrap "${tags[0]}"
}

make_nova() {
  tags=(localhost/edpm-nova-compute:latest localhost/edpm-nova-libvirt:latest localhost/edpm-nova:latest)
  base nova "$here/nova/packages.txt" "$here/nova/customize.sh"
  layer "$here/nova" "$here/nova/Containerfile" "${tags[@]}"
}

make_nova-newest() {
  local context
  tags=(localhost/edpm-nova-newest:latest)
  context=$(mktemp -d)
  cat "$here/nova/packages.txt" "$here/nova-newest/packages.txt" >"$context/packages.txt"
  base nova-newest "$context/packages.txt" "$here/nova/customize.sh"
  layer "$here/nova" "$here/nova/Containerfile" "${tags[@]}"
  rm -rf "$context"
}

make_glance() {
  tags=(localhost/edpm-glance-api:latest)
  base glance "$here/glance/packages.txt" "$here/glance/customize.sh"
  layer "$here/glance" "$here/glance/Containerfile" "${tags[@]}"
}

make_node-exporter() {
  tags=(localhost/edpm-node-exporter:latest)
  base node-exporter "$here/node-exporter/packages.txt"
  layer "$here/node-exporter" "$here/node-exporter/Containerfile" "${tags[@]}"
}

make_sriov-agent() {
  tags=(localhost/edpm-sriov-agent:latest)
  base sriov-agent "$here/sriov-agent/packages.txt"
  layer "$here/sriov-agent" "$here/sriov-agent/Containerfile" "${tags[@]}"
}

make_cinder-volume() {
  tags=(localhost/edpm-cinder-volume:latest)
  base cinder-volume "$here/cinder-volume/packages.txt" "$here/cinder-volume/customize.sh"
  layer "$here/cinder-volume" "$here/cinder-volume/Containerfile" "${tags[@]}"
}

make_ovn() {
  tags=(localhost/edpm-ovn:latest)
  base ovn "$here/ovn/packages.txt" "$here/ovn/customize.sh"
  layer "$here/ovn" "$here/ovn/Containerfile" "${tags[@]}"
}

make_tempest() {
  tags=(localhost/edpm-tempest:latest)
  base tempest "$here/tempest/packages.txt"
  podman tag "$base_image" "${tags[@]}"
}

# inputs_of NAME: every file that decides what is in the image.
inputs_of() {
  case $1 in
    ansibleee)
      local ansible=$repo/ansible
      printf '%s\n' "$here/ansibleee" "$ansible"/{galaxy.yml,README.md,meta,roles,playbooks,plugins,execution-environment}
      ;;
    pause | ansible-newest | edpm-host | nova | glance | node-exporter | sriov-agent | cinder-volume | ovn | tempest) echo "$here/$1" ;;
    nova-newest) printf '%s\n' "$here/nova-newest" "$here/nova" ;;
    edpm-machine | edpm-vm) printf '%s\n' "$here/$1" "$here/edpm-host" ;;
    edpm-controller) printf '%s\n' "$here/edpm-controller" "$here/edpm-host/rootfs" ;;
    *) die "unknown image $1: pause, ansibleee, ansible-newest, edpm-host, edpm-machine, edpm-vm, edpm-controller, nova, nova-newest, glance, node-exporter, sriov-agent, cinder-volume, ovn and tempest are known" ;;
  esac
}

build() {
  local name=$1 inputs hash tar tags base_image suite
  suite=$(suite_of "$name")
  mapfile -t inputs < <(inputs_of "$name")
  hash=$(echo "$suite $mirror $(hash_of "${inputs[@]}")" "$(declare -f bootstrap)" "$(declare -f "make_$name")" | sha256sum | cut -c1-16)
  tar=$cache/$name-$hash.tar
  (
    flock 9
    if [ -s "$tar" ]; then
      touch "$tar" # the newest are kept
    else
      trap 'unfinished "$name"' EXIT
      unfinished "$name"
      require_room "$cache" EDPM_CACHE
      require_room "${TMPDIR:-/tmp}" TMPDIR
      "make_$name"
      log "$name: writing $tar"
      podman save --quiet --format docker-archive --multi-image-archive --output "$tar.part" "${tags[@]}" >&2
      finish "$tar.part" "$tar"
      prune "$name" "$keep"
    fi
  ) 9>"$cache/.$name.lock"
  echo "$tar"
}

[ $# -gt 0 ] || die "usage: ${0##*/} NAME...   (pause, ansibleee, ansible-newest, edpm-host, edpm-machine, edpm-vm, edpm-controller, nova, nova-newest, glance, node-exporter, sriov-agent, cinder-volume, ovn, tempest)"
for name in "$@"; do inputs_of "$name" >/dev/null; done
[ "$(id -u)" = 0 ] || die "run as root: root file systems have files of many users"
need podman podman
need mmdebstrap mmdebstrap
need flock util-linux
mkdir -p "$cache"
for name in "$@"; do build "$name"; done
