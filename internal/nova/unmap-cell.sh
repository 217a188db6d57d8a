#!/usr/bin/env bash
# Removes the cell $1 from the API database. It fails as long as hosts are mapped to it or
# it has instances, and can be run again at any time.
set -euo pipefail
manage() { nova-manage --config-file /dev/null --config-dir "$(dirname "$0")" "$@"; }

ids=$(manage cell_v2 list_cells | awk -F'|' -v cell="$1" '{ gsub(/ /, "", $2); gsub(/ /, "", $3) } $2 == cell { print $3 }')
if [ "$(wc -w <<<"$ids")" -gt 1 ]; then
  echo "several cells are named $1" >&2
  exit 1
fi
[ -n "$ids" ] || exit 0

status=0
manage cell_v2 delete_cell --cell_uuid "$ids" || status=$?
if [ "$status" = 4 ]; then
  # Only instances that were deleted are mapped to it.
  manage db archive_deleted_rows --verbose --until-complete || [ $? = 1 ]
  status=0
  manage cell_v2 delete_cell --cell_uuid "$ids" || status=$?
fi
exit "$status"
