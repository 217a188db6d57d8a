#!/usr/bin/env bash
# Maps the cell $1 in the API database, or gives its mapping the message bus and the
# database that the configuration has. It can be run again at any time.
set -euo pipefail
manage() { nova-manage --config-dir "$(dirname "$0")" cell_v2 "$@"; }

# uuid prints the id of the cell, and fails where there are several of that name.
uuid() {
  manage list_cells | awk -F'|' -v cell="$1" '
    { gsub(/ /, "", $2); gsub(/ /, "", $3) }
    $2 == cell { print $3; found++ }
    END { if (found > 1) { print found " cells are named " cell > "/dev/stderr"; exit 1 } }'
}

# Addresses that no argument has are those of the configuration. cell0 has no bus.
create=(create_cell --name "$1") update=()
if [ "$1" = cell0 ]; then create=(map_cell0) update=(--transport-url none:///); fi

id=$(uuid "$1")
if [ -z "$id" ]; then
  manage "${create[@]}"
else
  manage update_cell --cell_uuid "$id" --name "$1" "${update[@]}"
fi
