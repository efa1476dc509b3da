#!/usr/bin/env bash
# Runs every fuzz target of every module for FUZZTIME (30s by default), one after the other. It goes on past a failure,
# and ends with the failing targets and the inputs that failed; commit such an input with the fix.
# usage: fuzz.sh [DIRECTORY...], by default all that have targets. Each target has a log in .state/logs/fuzz.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD logs=$PWD/.state/logs/fuzz
mkdir -p "$logs"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()

# fuzz DIRECTORY TARGET: runs one target of the binary that was built last.
fuzz() {
  local log="$logs/${1//\//_}.$2.log" code=0
  (cd "$1" && "$work/fuzz.test" -test.run "^$2\$" -test.fuzz "^$2\$" -test.fuzztime "${FUZZTIME:-30s}" \
    -test.fuzzminimizetime 10s -test.fuzzcachedir "$corpus") >"$log" 2>&1 || code=$?
  printf '%-4s %-40s %-16s %s\n' "$([ $code = 0 ] && echo ok || echo FAIL)" "$1" "$2" \
    "$(sed -nE 's/^fuzz: (elapsed: .*execs.*)/\1/p' "$log" | tail -n 1)"
  [ $code = 0 ] || failed+=("$1 $2: $(grep -oE 'testdata/fuzz/[^ ]+|seed corpus entry: [^ ]+' "$log" | tail -n 1), see $log")
}

if [ $# = 0 ]; then
  mapfile -t directories < <(git grep -lE '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u)
  set -- "${directories[@]}"
fi
for directory in "$@"; do
  # Compiled once with go test's instruments; the inputs it finds are kept where go test keeps them.
  if ! go test -C "$directory" -c -vet=off -fuzz=Fuzz -o "$work/fuzz.test" . >"$logs/build.log" 2>&1; then
    failed+=("$directory does not compile: $(tail -n 1 "$logs/build.log")")
    continue
  fi
  corpus=$(go env GOCACHE)/fuzz/$(go list -C "$directory" .)
  for target in $(cd "$directory" && "$work/fuzz.test" -test.list '^Fuzz'); do
    fuzz "$directory" "$target"
  done
done
[ ${#failed[@]} = 0 ] || { printf 'FAILED: %s\n' "${failed[@]}"; exit 1; }
