#!/usr/bin/env bash
# Makes an image of build.sh known to podman on this machine. Nothing is loaded where
# podman has it already: an image is identified by the digest of its configuration.
#
#   load.sh NAME         as for build.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
archive=$("$here/build.sh" "$1")
images=$(tar --extract --to-stdout --occurrence=1 --file "$archive" manifest.json |
  python3 -c 'import json, sys; [print(tag, i["Config"][:-len(".json")]) for i in json.load(sys.stdin) for tag in i["RepoTags"]]')

while read -r tag id; do
  if [ "$(podman image inspect --format '{{.Id}}' "$tag" 2>/dev/null)" != "$id" ]; then
    podman load --quiet --input "$archive" >&2
    break
  fi
done <<<"$images"
