# Shuts the guests of libvirt down, and ends those that do not shut down in $1 seconds. Runs in the container of the daemon.
set -u
seconds=$1

virsh() { command virsh --quiet --connect qemu:///system "$@"; }
guests() { virsh list --uuid | grep .; }
# Each guest at the same time, as one may not answer.
each() { guests | while read -r guest; do virsh "$@" "$guest" & done; }

each shutdown
while [ "$seconds" -gt 0 ] && guests >/dev/null; do
  sleep 1
  seconds=$((seconds - 1))
done
guests | sed 's/$/ has not shut down in time and is ended./'
each destroy --graceful
while guests >/dev/null; do sleep 1; done
