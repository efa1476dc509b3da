#!/usr/bin/env bash
# Fails if the kinds break what users may rely on: docs/reference/compatibility.md. hack/tools/schema/golden.txt has each field and
# rule of them, and is compared with what it was in a commit of this repository's history: of the last release, and before the
# first release of the commit below. hack/tools/schema/accepted.txt has the changes that were made on purpose since then, which
# is empty from the first release on.
set -euo pipefail
cd "$(dirname "$0")/../.."
base=d51ba136371eb6950dd650e2c7d93edaca97a362
golden=hack/tools/schema/golden.txt
released=()
[[ $base != v[0-9]* ]] || released=(released)
git cat-file -e "$base^{commit}" || { echo "$base is not in this clone: fetch the whole history, with tags." >&2; exit 1; }
earlier=$(mktemp)
trap 'rm -f "$earlier"' EXIT
if [ ${#released[@]} != 0 ] || git cat-file -e "$base:$golden" 2>/dev/null; then
  git show "$base:$golden" >"$earlier"
else
  cp "$golden" "$earlier" # until the commit is one that has the file
fi
bin/schema check "$earlier" "$golden" hack/tools/schema/accepted.txt "${released[@]}" || {
  echo "The kinds break what users may rely on. Undo the change, or accept it as docs/contributing/changes.md says." >&2
  exit 1
}
echo "the kinds break nothing of $base"
