#!/usr/bin/env bash
# Fails if apiserver/rest/openapi.json breaks clients of the document that was promised last. That is the one of a commit in
# this repository's history: of the last release, and before the first release of the commit below.
# hack/tools/openapi/accepted.txt has the changes that were made on purpose since then.
set -euo pipefail
cd "$(dirname "$0")/../.."
base=d51ba136371eb6950dd650e2c7d93edaca97a362
earlier=$(mktemp)
trap 'rm -f "$earlier"' EXIT
git show "$base:apiserver/rest/openapi.json" >"$earlier"
bin/openapi "$earlier" apiserver/rest/openapi.json hack/tools/openapi/accepted.txt || {
  echo "The document of the API below /v1 breaks clients. Undo the change, or accept it as docs/contributing/changes.md says." >&2
  exit 1
}
echo "the API below /v1 breaks no client of $base"
