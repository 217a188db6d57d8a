#!/usr/bin/env bash
# Makes docs/reference.md from the Go types of the API.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go tool -modfile=go.tools.mod crd-ref-docs --log-level=ERROR --source-path=apis --config=hack/reference.yaml \
  --renderer=markdown --output-path=docs/reference.md --max-depth=20
# What the tool writes for +optional, in words; no line that ends in a break; and the description
# of the state of a service that is called metadata, which is no metadata of an object.
# shellcheck disable=SC2016 # backticks of Markdown
sed -i -e '1s/.*/# API reference\n\nGenerated from the code by `make docs`. What is not marked *optional* has to be given./' \
  -e '/^| `metadata` _\[Status\]/s/Refer to Kubernetes API documentation[^|]*/Metadata is the state of the pods of the metadata service, if there is one. /' \
  -e 's/Optional: \\{\\} <br \/>/*optional* <br \/>/g' -e 's/ *<br \/> *|$/ |/' docs/reference.md
