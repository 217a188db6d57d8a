# Reads a public key and lets it in as root and as cloud-admin. Runs in a host.
set -eu
key=$(cat)
for user in root cloud-admin; do
  home=$(getent passwd "$user" | cut -d: -f6)
  install -d -m 700 -o "$user" -g "$(id -g "$user")" "$home/.ssh"
  touch "$home/.ssh/authorized_keys"
  grep -qxF "$key" "$home/.ssh/authorized_keys" || echo "$key" >> "$home/.ssh/authorized_keys"
  chown "$user:$(id -g "$user")" "$home/.ssh/authorized_keys"
  chmod 600 "$home/.ssh/authorized_keys"
done
