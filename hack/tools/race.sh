#!/usr/bin/env bash
# Runs with Go's race detector the tests of every package that has goroutines, channels or locks, and those of the
# controllers, whose World stories run without their points of disturbance. What needs a Kubernetes is left out.
# Reports go to .state/logs/race, also those of programs that tests start.
# usage: race.sh [DIRECTORY...], by default all of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CGO_ENABLED=1 # the detector is written in C++
if ! command -v gcc >/dev/null; then
  [ "$(id -u)" = 0 ] || { echo "gcc is missing, and installing it needs root: apt-get install gcc libc6-dev" >&2; exit 1; }
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends gcc libc6-dev
fi

logs=$PWD/.state/logs/race
rm -rf "$logs"
mkdir -p "$logs"
export GORACE="log_path=$logs/report"

concurrent='\bgo (func\b|[a-z][A-Za-z.]*\()|\bchan |"sync(/atomic)?"|sync/errgroup"|testkit\.(New|World|Scenario)'
if [ $# = 0 ]; then
  mapfile -t files < <(git grep -lP "$concurrent" -- '*.go' ':!proto' ':!tests/integration' ':!tests/e2e' ':!tests/bench' \
    ':!tests/archtest' ':(exclude,glob)tests/localkube/*.go' ':!tests/localkube/internal/realtest')
  for directory in $(dirname "${files[@]}" | sort -u); do
    ! compgen -G "$directory/*_test.go" >/dev/null || set -- "$@" "$directory"
  done
fi
bad=0
# race MODULE FLAGS PACKAGE...: one go test for all packages of a module.
race() {
  local module=$1 flags=$2
  shift 2
  [ $# = 0 ] || go test -C "$module" -race -count=1 -timeout 20m "$@" $flags || bad=1
}
images=() own=() stories=() localkube=()
for directory in "$@"; do
  case $directory in
    tests/imagebuild*) images+=("./${directory#tests/imagebuild}") ;;
    tests/localkube/*) localkube+=("./${directory#tests/localkube/}") ;;
    *) if grep -qs 'internal/testkit"' "$directory"/*_test.go; then stories+=("./$directory"); else own+=("./$directory"); fi ;;
  esac
done
race . "" "${own[@]}"
race . "-points none" "${stories[@]}"
race tests/imagebuild "" "${images[@]}"
race tests/localkube "" "${localkube[@]}"
reports=$(cat "$logs"/report.* 2>/dev/null | grep -c 'WARNING: DATA RACE' || true)
[ "$reports" = 0 ] || cat "$logs"/report.*
echo "$reports reports of races"
[ $bad = 0 ] && [ "$reports" = 0 ]
