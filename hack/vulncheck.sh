#!/usr/bin/env bash
# Looks for known vulnerabilities that the code can reach, and fails if there are,
# or if the database cannot be reached.
#
#   hack/vulncheck.sh [REPORT]    also writes what it says to the file REPORT
#
# GOVULNDB   address of the database (default https://vuln.go.dev), file:// too
# OFFLINE=1  accept that nothing is checked where the database cannot be reached:
#            the report says so, and the exit code is 0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

report=${1:-/dev/null}
db=${GOVULNDB:-https://vuln.go.dev}

reachable() {
  case $db in
    file://*) [ -e "${db#file://}/index/db.json" ] ;;
    *) curl --silent --fail --location --max-time 20 --output /dev/null "$db/index/db.json" ;;
  esac
}

if ! reachable; then
  not_checked="not checked: the database of vulnerabilities $db cannot be reached from here"
  if [ "${OFFLINE:-}" = 1 ]; then
    echo "$not_checked, which OFFLINE=1 accepted; run make vulncheck where it can" | tee "$report" >&2
    exit 0
  fi
  echo "$not_checked; run this where it can, or accept that with OFFLINE=1" | tee "$report" >&2
  exit 1
fi
go tool -modfile=go.tools.mod govulncheck -db "$db" ./... 2>&1 | tee "$report"
