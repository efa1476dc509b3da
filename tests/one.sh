#!/usr/bin/env bash
# Runs one test of any layer. usage: NAME=TestX one.sh, or NAME="text of a spec" one.sh. A name that begins with Test,
# Fuzz or Benchmark is a Go test; anything else selects specs on real Ray by their text, as a regular expression.
# KEEP=1 leaves the local Kubernetes up for the next time; LAYER=e2e says that Test… is the text of a spec.
set -euo pipefail
cd "$(dirname "$0")/.."
LOGS=.state/logs/test TIMES=.state/one STEP=one BEGAN=$(date +%s)
mkdir -p $LOGS $TIMES bin
. tests/steps.sh

# module DIRECTORY: the directory of the Go module that a package is in.
module() {
  local dir=$1
  while [ ! -f "$dir/go.mod" ]; do dir=$(dirname "$dir"); done
  echo "$dir"
}

# run_go DIRECTORY: runs the Go test in a package.
run_go() {
  local module
  module=$(module "$1")
  echo "go test in $1"
  case $1 in
    tests/integration | tests/web)
      make build
      instance one-api --control-plane-only --pod-groups
      ;;
    tests/localkube | tests/localkube/internal/realtest) make build ;;
    tests/bench/byhand)
      make build
      nodes one-ray
      ;;
    hack/tools/chart)
      make bin/helm
      export HELM=$PWD/bin/helm
      ;;
    *) ! grep -qs 'tests/redistest"' "$1"/*_test.go && [ "$1" != tests/redistest ] || redis ;;
  esac
  go test -C "$module" -v -count=1 -timeout 30m -run "^(${NAME})\$" "./$(realpath --relative-to="$module" "$1")"
}

[ -n "${NAME:-}" ] || { echo 'Which test? make test-one NAME=TestDecide, or NAME="text of a spec"' >&2; exit 2; }
case ${LAYER:-}$NAME in
  Test* | Fuzz* | Benchmark*)
    found=$(git grep -lE --untracked "^func ${NAME%%/*}\(" -- '*_test.go' | xargs -rn1 dirname | sort -u || true)
    [ -n "$found" ] || { echo "there is no test ${NAME%%/*}: give the name of a Go test, or the text of a spec" >&2; exit 2; }
    for directory in $found; do run_go "$directory"; done
    ;;
  *)
    make build
    MORE=frameworks nodes one-ray
    # A rebuilt operator has the same tag, so the pods of a Kubernetes that was kept start again.
    "$KUBECTL" delete pods --namespace heliostat-system --all --wait --ignore-not-found
    specs one "" -ginkgo.focus "$NAME" -ginkgo.v
    ;;
esac
