#!/usr/bin/env bash
# Moves rows of instances that were deleted $1 days ago to the shadow tables, and removes
# rows from there that were deleted $2 days ago.
set -euo pipefail
manage() { nova-manage --config-file /dev/null --config-dir "$(dirname "$0")" db "$@"; }

# ago prints the day of so many days ago.
ago() { date --date "$1 days ago" +%F; }

# A second between batches is for what others write. 1: rows were archived
manage archive_deleted_rows --verbose --until-complete --sleep 1 --task-log --before "$(ago "$1")" || [ $? = 1 ]
# 3: there were none to purge
manage purge --verbose --before "$(ago "$2")" || [ $? = 3 ]
