# Starts each daemon for a moment with its new files, in a container of its own, as they have no option that only checks them.
# $1 is the directory of the files, and the others are the daemons.
set -u
directory=$1
shift

start() { "$1" --config "$directory/$1/$1.conf" --timeout 1 >"/tmp/$1.log" 2>&1; }

check() {
  if [ -e "$directory/$1/qemu.conf" ]; then cp "$directory/$1/qemu.conf" /etc/libvirt/qemu.conf; fi
  # Directories of certificates and of logs are the host's, which this container does not have.
  grep -ohE '[0-9]:file:/[^" ]*' "$directory/$1"/*.conf | cut -d: -f3 | while read -r log; do mkdir -p "$(dirname "$log")"; done
  sed -n -E 's/^[a-z_]*tls_x509_cert_dir = "(.*)"$/\1/p' "$directory/$1"/*.conf | while read -r certificates; do mkdir -p "$certificates"; done
  # What a second try does not have is not a fault of the files: a busy host can end a daemon that is about to start.
  start "$1" || start "$1" || touch "/tmp/$1.failed"
  # It ends without an error if the driver of qemu does not start. Other drivers have to do with what the container does not have.
  if grep -q 'Initialization of QEMU state driver failed.*qemu\.conf' "/tmp/$1.log"; then touch "/tmp/$1.failed"; fi
}

for daemon; do check "$daemon" & done
wait
for daemon; do
  if [ ! -e "/tmp/$daemon.failed" ]; then continue; fi
  # Without time, thread and line of the source.
  sed -n -E "s,$directory/|/etc/libvirt/,,g; s/^.*error : ([A-Za-z]+:[0-9]+ : )?/$daemon: /p" "/tmp/$daemon.log" |
    grep -v 'Driver state initialization failed' | tail -n 1 >&2
  failed=1
done
exit "${failed:-0}"
