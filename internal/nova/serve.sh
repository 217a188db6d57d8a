#!/usr/bin/env bash
# Runs an endpoint of nova: the program $1, or where the image has none of that name, as
# from nova 2026.1 on, the WSGI application $2 on port $3, with the WSGI server of the
# image. The configuration is in the directory of this script, and the image's own is not read.
set -euo pipefail
program=$1 application=${2:-} port=${3:-}
config=$(dirname "$0")
: >/tmp/report # [oslo_reports] file_event_handler

# Sockets on :: accept IPv4 as well. A kernel without IPv6 has none.
address=:: host='[::]'
[ -e /proc/net/if_inet6 ] || address=0.0.0.0 host=0.0.0.0

# has reports whether the image has a program.
has() {
  local path
  path=$(command -v "$1") && [ -x "$path" ]
}

if has "$program"; then
  sed "s/ = ::\$/ = $address/" "$config/program.ini" >/tmp/program.ini
  exec "$program" --config-file /tmp/program.ini --config-dir "$config"
fi

# fail leaves the cause as the termination message.
fail() {
  printf %s ProgramMissing >/dev/termination-log
  echo "the image has no $program${application:+, and no WSGI server for $application}" >&2
  exit 127
}

# origin prints the file of the module of the application.
origin() {
  python3 -c 'import importlib.util, sys; print(importlib.util.find_spec(sys.argv[1]).origin)' "${application%:*}" 2>/dev/null
}

[ -n "$application" ] || fail
module=$(origin) || fail
export OS_NOVA_CONFIG_FILES=api-paste.ini
# Requests that are answered at once, most of which wait for a database or a message bus.
# Until 2025.2 nova has green threads, which share no process with real ones.
processes=1 threads=16
grep --quiet "backend='threading'" "$module" || processes=8 threads=1
tls=
if [ -e "$config/tls.key" ]; then tls=yes; fi

# uWSGI takes SIGTERM for a request to start again.
if has uwsgi; then
  socket=(--http-socket "$host:$port")
  if [ -n "$tls" ]; then socket=(--https-socket "$host:$port,$config/tls.crt,$config/tls.key"); fi
  exec uwsgi --plugins python3 "${socket[@]}" --module "$application" --need-app --lazy-apps --master \
    --processes "$processes" --threads "$threads" --enable-threads --buffer-size 65535 --add-header 'Connection: close' \
    --hook-master-start 'unix_signal:15 gracefully_kill_them_all' --worker-reload-mercy 60
fi

# find_file prints the first of files that exists.
find_file() {
  local file
  for file in "$@"; do
    if [ -e "$file" ]; then
      echo "$file"
      return
    fi
  done
  return 1
}

httpd=httpd
has httpd || httpd=apache2
has "$httpd" || fail
wsgi=$(find_file /etc/httpd/modules/mod_wsgi*.so /usr/lib64/httpd/modules/mod_wsgi*.so /usr/lib/apache2/modules/mod_wsgi*.so) || fail
modules=$(dirname "$wsgi")
cat >/tmp/application.wsgi <<<"from ${application%:*} import ${application#*:}"
{
  for name in mpm_event unixd authz_core log_config; do
    echo "<IfModule !mod_$name.c>
LoadModule ${name}_module $modules/mod_$name.so
</IfModule>"
  done
  cat <<EOF
LoadModule wsgi_module $wsgi
ServerName $program
ServerRoot /tmp
DefaultRuntimeDir /tmp
PidFile /tmp/httpd.pid
Listen $host:$port
ErrorLog /dev/stderr
LogFormat "%h %l %u %t \"%r\" %>s %b %D" access
CustomLog /dev/stdout access
LimitRequestFieldSize 65535
KeepAlive Off
ServerLimit $processes
StartServers $processes
ThreadsPerChild $threads
MaxRequestWorkers $((processes * threads))
MinSpareThreads 1
MaxSpareThreads $((processes * threads))
GracefulShutdownTimeout 60
WSGIApplicationGroup %{GLOBAL}
WSGIPassAuthorization On
WSGIChunkedRequest On
WSGIScriptAlias / /tmp/application.wsgi
WSGIImportScript /tmp/application.wsgi application-group=%{GLOBAL} process-group=%{GLOBAL}
EOF
  if [ -n "$tls" ]; then
    cat <<EOF
LoadModule ssl_module $modules/mod_ssl.so
SSLEngine on
SSLProtocol -all +TLSv1.2 +TLSv1.3
SSLCertificateFile $config/tls.crt
SSLCertificateKeyFile $config/tls.key
EOF
  fi
} >/tmp/httpd.conf

# httpd ends at once on SIGTERM, and when requests are answered on SIGWINCH.
"$httpd" -f /tmp/httpd.conf -D FOREGROUND &
server=$!
trap 'kill -WINCH $server' TERM
while kill -0 "$server" 2>/dev/null; do
  wait "$server" || true # which a signal to this shell ends, too
done
wait "$server" # bash remembers how it has ended
