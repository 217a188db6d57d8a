# Prints what libvirt does with guests of the host that a restart of nova-compute or libvirt would interrupt: jobs of guests, such as migrations
# and saves, and jobs of their disks, such as copies for snapshots. Prints nothing where no daemon answers. $@ is podman.
for daemon in virtqemud libvirtd; do
  # shellcheck disable=SC2016  # the shell in the container expands it
  "$@" exec --env LC_ALL=C "edpm_libvirt_$daemon" /bin/sh -c '
    ask() { timeout 10 virsh --quiet --connect qemu:///system "$@"; }
    for guest in $(ask list --uuid); do
      ask domjobinfo "$guest" | grep -Eq "^Job type: *(Bounded|Unbounded)" && echo "guest $guest has a job"
      for disk in $(ask domblklist "$guest" | while read -r target source; do [ -z "$source" ] || echo "$target"; done); do
        ask blockjob "$guest" "$disk" --raw | grep -q "type=" && echo "disk $disk of guest $guest has a job"
      done
    done' 2>/dev/null
done
exit 0
