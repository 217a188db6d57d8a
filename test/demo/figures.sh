#!/usr/bin/env bash
# Measures what deployments and changes take on the real hosts of the lab, and
# prints a table, and a profile of one of each. Begins with an empty lab and
# leaves none. Nothing else may run on the machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/demo/steps.sh
. test/demo/steps.sh

computes=(nec/edpm-compute-0 nec/edpm-compute-1)

now() { date +%s.%N; }
# since START: seconds, to one place.
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
# await STATUS COMPUTE...: until the condition Ready of all of them has it.
await() { kubectl -n $namespace wait --for="condition=Ready=$1" --timeout=300s "${@:2}" >/dev/null; }

# rerun TOKEN: seconds of a rerun of all steps on both computes, with nothing to change.
rerun() {
  local start
  start=$(now)
  kubectl -n $namespace annotate --overwrite osdprole edpm-compute "edpm.openstack.org/rerun=$1" >/dev/null
  await False "${computes[@]}"
  await True "${computes[@]}"
  since "$start"
}

# configure VALUE: seconds until the first compute runs with another customServiceConfig.
configure() {
  local start
  start=$(now)
  kubectl -n $namespace patch nec edpm-compute-0 --type=merge \
    -p "{\"spec\":{\"customServiceConfig\":\"[DEFAULT]\\nreserved_host_memory_mb = $1\\n\"}}" >/dev/null
  await False "${computes[0]}"
  await True "${computes[0]}"
  on edpm-compute-0 grep -rqs "reserved_host_memory_mb = $1" /var/lib/openstack/nova || { echo 'The configuration is not on the host.' >&2; return 1; }
  since "$start"
}

# bare: seconds of one ansible-playbook with the same playbooks, nothing to change.
bare() {
  /usr/bin/python3 -B ansible/tests/measure.py --bare ansible
}

# profile NAME: prints, once finish is called, what happened when, into a file.
profile() {
  python3 test/demo/timeline.py $namespace >"$profiles/$1" 2>"$profiles/recording" &
  recorder=$!
  until grep -q recording "$profiles/recording"; do sleep 0.2; done
}
finish() { kill $recorder; wait $recorder; }

times() { local f=$1; shift; for value in "$@"; do printf '%s s  ' "$("$f" "$value")"; done; }

profiles=$(mktemp -d)
trap 'rm -rf "$profiles"' EXIT
lab down
say 'One ansible-playbook on two hosts of its own'
alone=$(bare)
lab up --hosts --images ansibleee,glance
connect
make --no-print-directory image-manager
deploy_manager >&2
kubectl apply -f $demo/namespace.yaml >&2
profile 'First deployment'
start=$(now)
apply_inputs hosts-only.yaml >&2
for compute in "${computes[@]}"; do wait_ready nec "${compute#nec/}" 600 >&2; done
first=$(since "$start")
finish
say 'Reruns and changes'
profile 'Rerun with nothing to change'
reruns=$(times rerun a)
finish
profile 'customServiceConfig of one compute changed'
configurations=$(times configure 640)
finish
cat <<TABLE

| two hosts, an idle machine | measured | aim |
|---|---:|---:|
| From kubectl apply until both computes are Ready | $first s | 45 s |
| All seven playbooks with nothing to change, one bare ansible-playbook | $alone s | 20 s |
| The same as a rerun of the role, three times | $reruns$(times rerun b c) | 1.15 times the bare one |
| customServiceConfig of one compute changed until it runs with it, three times | $configurations$(times configure 641 642) | 12 s |
TABLE
for name in "$profiles"/*\ *; do
  say "$(basename "$name"), in seconds"
  cat "$name"
done
lab down
