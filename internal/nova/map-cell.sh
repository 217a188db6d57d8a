#!/usr/bin/env bash
# Maps the cell $1 in the API database, or gives its mapping the message bus and the
# database that the configuration has. It can be run again at any time.
set -euo pipefail
manage() { nova-manage --config-file /dev/null --config-dir "$(dirname "$0")" cell_v2 "$@"; }

# uuid prints the id of the cell, and fails where there are several of that name.
uuid() {
  manage list_cells | awk -F'|' -v cell="$1" '
    { gsub(/ /, "", $2); gsub(/ /, "", $3) }
    $2 == cell { print $3; found++ }
    END { if (found > 1) { print found " cells are named " cell > "/dev/stderr"; exit 1 } }'
}

# Addresses that no argument has are those of the configuration, but for the database
# of cell0: map_cell0 adds _cell0 to its name, which update_cell corrects.
id=$(uuid "$1")
case $1,$id in
  cell0,*)
    [ -n "$id" ] || manage map_cell0
    manage update_cell --cell_uuid 00000000-0000-0000-0000-000000000000 --name cell0 --transport-url none:///
    ;;
  *,) manage create_cell --name "$1" ;;
  *) manage update_cell --cell_uuid "$id" --name "$1" ;;
esac
