#!/usr/bin/env bash
# Fails if anything generated differs from what "make generate" would write. It generates beside the work tree and
# never changes it. Fails too if the kinds or the API below /v1 break users, or if docs/results has a result of something that is gone.
set -euo pipefail
cd "$(dirname "$0")/../.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/tools/generate.sh "$fresh"
hack/tools/proto.sh "$fresh"
bad=0
while read -r file; do
  diff -u "$file" "$fresh/$file" >"$fresh/diff" || { bad=1; echo "$file is out of date:"; head -n 30 "$fresh/diff"; }
done < <(cd "$fresh" && find . -type f -not -name diff | sed 's|^\./||' | sort)
[ $bad = 0 ] || { echo 'Run "make generate" and commit what it writes.' >&2; exit 1; }
echo "generated files are up to date"
hack/tools/openapi.sh
hack/tools/schema.sh
go run ./tests/acceptance -list | go run ./tests/results check
