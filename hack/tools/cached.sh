#!/usr/bin/env bash
# Builds a program into bin/, or copies it from the user's cache, where programs are kept by the content of what they
# are built from: a fresh checkout links nothing that another one has linked.
# usage: cached.sh PROGRAM INPUT... -- COMMAND...; an input is a file or directory, and the command writes to $OUT.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$1 inputs=()
shift
while [ "$1" != -- ]; do
  inputs+=("$1")
  shift
done
shift
key=$({
  go version
  go env GOFLAGS CGO_ENABLED
  echo "$@"
  find "${inputs[@]}" -type f -not -name '*_test.go' -not -path '*/testdata/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
} | sha256sum | cut -c1-32)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/heliostat/bin
kept=$cache/$program-$key
mkdir -p bin "$cache"
[ ! -e "bin/$program" ] || [ "$(cat "bin/.$program.key" 2>/dev/null)" != "$key" ] || exit 0
if [ ! -x "$kept" ]; then
  OUT=$kept.$$ "$@"
  mv "$kept.$$" "$kept"
  find "$cache" -type f -mtime +30 -delete
fi
touch "$kept" # what is used stays
cp "$kept" "bin/$program.$$"
mv "bin/$program.$$" "bin/$program" # also where the former one runs
echo "$key" >"bin/.$program.key"
