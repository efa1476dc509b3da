#!/usr/bin/env bash
# Fails if apiserver/rest/openapi.json breaks clients of the document that was promised last. That is the one of a commit in
# this repository's history: of the last release, and before the first release of the commit below.
# hack/tools/openapi/accepted.txt has the changes that were made on purpose since then.
set -euo pipefail
cd "$(dirname "$0")/../.."
base=63a6f20af4b4da53a1b7085dac62725c76bf09a6
earlier=$(mktemp)
trap 'rm -f "$earlier"' EXIT
# Exponents of quantities have two digits at most since then. The pattern stands in hundreds of places, so the earlier document
# is read with the present one.
wide='[eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))' bounded='[eE](\\+|-)?[0-9]{1,2}'
document=$(git show "$base:apiserver/rest/openapi.json")
printf '%s\n' "${document//"$wide"/"$bounded"}" >"$earlier"
bin/openapi "$earlier" apiserver/rest/openapi.json hack/tools/openapi/accepted.txt || {
  echo "The document of the API below /v1 breaks clients. Undo the change, or accept it as CONTRIBUTING.md says." >&2
  exit 1
}
echo "the API below /v1 breaks no client of $base"
