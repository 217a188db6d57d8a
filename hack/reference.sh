#!/usr/bin/env bash
# Makes docs/reference.md from the Go types of the API.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go tool -modfile=go.tools.mod crd-ref-docs --source-path=apis --config=hack/reference.yaml \
  --renderer=markdown --output-path=docs/reference.md --max-depth=20
