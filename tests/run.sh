#!/usr/bin/env bash
# Runs the tests, layer by layer. usage: run.sh [STEP...], by default every step that "make test" has. Each step writes
# a log of its own to .state/logs; here stands only when it began and how it ended. What a step needs is installed and
# built first, which takes a moment when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .state/logs/test bin
# One run at a time in a checkout. flock keeps the lock to itself, so that no program started here can inherit it.
if [ -z "${HELIOSTAT_LOCKED:-}" ]; then
  flock --nonblock .state/lock true || echo "another run is going on in this checkout; waiting for it to end"
  exec env HELIOSTAT_LOCKED=1 flock --close .state/lock "tests/${0##*/}" "$@"
fi
LOGS=.state/logs/test
AREA=${AREA:-}
FAILED=$LOGS/failed # a file with their names, as two lanes write it
: >"$FAILED"

# step NAME: runs the function step_NAME quietly and tells how it ended.
step() {
  local name=$1 log=$LOGS/$1.log began=$SECONDS code
  printf '[%4ds] %-12s %s ...\n' "$SECONDS" "$name" "${TITLE[$name]}"
  set +e # as a condition of "if", the step would go on after an error
  case $name in
    accept | bench) # what these find is what one runs them for
      (set -e; "step_$name") 2>&1 | tee "$log"
      code=${PIPESTATUS[0]}
      ;;
    *)
      (set -e; "step_$name") >"$log" 2>&1
      code=$?
      ;;
  esac
  set -e
  if [ $code = 0 ]; then
    printf '[%4ds] %-12s ok (%ds)%s\n' "$SECONDS" "$name" $((SECONDS - began)) "$(counts "$log")"
    return
  fi
  printf '[%4ds] %-12s FAILED (%ds)%s\n' "$SECONDS" "$name" $((SECONDS - began)) "$(counts "$log")"
  echo "$name" >>"$FAILED"
  grep -E '^\s*--- FAIL|^FAIL|\[FAIL\]|^panic:' "$log" | sort -u | head -n 20 || true
  said "$log"
  printf -- '--- the last lines of %s:\n' "$log"
  tail -n 40 "$log"
  printf -- '--- to run this step alone: make %s\n' "$(target "$name")"
}

# said LOG: what the first tests that failed said last; go test prints it before the verdict, Ginkgo after it.
said() {
  local at
  for at in $(grep -nE '^ *--- FAIL|\[FAILED\]' "$1" | cut -d: -f1 | head -n 3); do
    printf -- '--- around line %d of %s:\n' "$at" "$1"
    sed -n "$((at > 30 ? at - 30 : 1)),$((at + 5))p" "$1" | cut -c1-300
  done
}

target() { case $1 in localkube) echo localkube-test ;; accept) echo "accept AREA=$AREA" ;; *) echo "$1" ;; esac; }

# counts LOG: what go test and Ginkgo counted.
counts() {
  local passed failed
  grep -qE '^(ok|FAIL)\s' "$1" || return 0
  passed=$(grep -cE '^ *--- PASS' "$1" || true)
  failed=$(grep -cE '^ *--- FAIL' "$1" || true)
  printf ': %s passed, %s failed' "$passed" "$failed"
  sed -nE 's/\x1b\[[0-9;]*m//g; s/^(Ran [0-9]+ of [0-9]+ Specs).*/; \1/p' "$1" | paste -sd' ' | tr -d '\n'
}

# closing: the lines that go test ends each package with.
closing() {
  local name
  for name in "$@"; do
    [ ! -f "$LOGS/$name.log" ] || grep -E '^(ok|FAIL)\s+\S+/' "$LOGS/$name.log" || true
  done
}

# slowest: the specs on real Ray that took longest, and the files of specs: where to look when time runs out.
slowest() {
  echo "the slowest specs, in seconds:"
  specs | cut -f 1,2 | sort -rn | sed -n 1,12p
  echo "the files of specs, in seconds:"
  specs | awk -F '\t' '{ sum[$3] += $1 } END { for (file in sum) printf "%.0f\t%s\n", sum[file], file }' | sort -rn
}

# specs: the seconds, text and file of each spec on real Ray.
specs() {
  sed 's/\x1b\[[0-9;]*m//g' "$LOGS/e2e.log" |
    awk 'match($0, /^• .*\[[0-9.]+ seconds\]/) { sub(/.*\[/, ""); seconds = $1; getline text; getline file; sub(/.*\//, "", file); sub(/:.*/, "", file); print seconds "\t" text "\t" file }'
}

status() { bin/localkube status --name "$1" | awk -v key="$2" 'index($0, key) == 1 { print $NF }'; }

# instance NAME OPTIONS...: a fresh local Kubernetes that ends with the step.
instance() {
  local name=$1
  shift
  trap "bin/localkube down --name $name" EXIT
  bin/localkube down --name "$name"
  bin/localkube up --name "$name" "$@"
  KUBECONFIG=$(bin/localkube kubeconfig --name "$name")
  KUBECTL=$(status "$name" kubectl)
  LOCALKUBE_AUDIT_LOG=$(status "$name" "audit log")
  LOCALKUBE=$PWD/bin/localkube LOCALKUBE_NAME=$name HELM=$PWD/bin/helm
  export KUBECONFIG KUBECTL LOCALKUBE LOCALKUBE_NAME LOCALKUBE_AUDIT_LOG HELM
}

# rights_used LAYER: keeps which of its rights the operator used in the instance of a step.
rights_used() {
  mkdir -p .state/rights
  go run ./tests/rights used "$LOCALKUBE_AUDIT_LOG" >".state/rights/$1.txt"
}

step_rights() {
  bin/helm template heliostat helm-chart/heliostat --namespace heliostat-system |
    go run ./tests/rights compare .state/rights/{integration,e2e}.txt
}

# redis: what tests run Redis servers of their own with. Debian starts one for the machine, which nobody needs.
redis() {
  local packages=(redis-server redis-sentinel redis-tools) program
  for program in redis-server redis-sentinel redis-cli; do
    if ! command -v "$program" >/dev/null; then
      [ "$(id -u)" = 0 ] || { echo "$program is missing, and installing it needs root: apt-get install ${packages[*]}"; return 1; }
      apt-get update -q
      RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
      systemctl disable --now redis-server redis-sentinel 2>/dev/null || true # where there is a systemd
      return
    fi
  done
}

step_deps() {
  make bin/localkube bin/images
  local missing
  missing=$( (bin/localkube deps; bin/images deps) | sort -u)
  [ "$(id -u)" = 0 ] || { echo "These tests make network namespaces, mounts and containers, so they need root: sudo make test"; return 1; }
  bin/localkube deps --install
  bin/images deps --install
  redis
}

step_build() {
  make bin/localkube bin/images bin/operator
  bin/images build all >"$LOGS/images.list" & # most of it waits for a network, while Kubernetes links
  local images=$!
  bin/localkube build || { kill $images; return 1; }
  make bin/helm bin/controller-gen bin/crd-ref-docs bin/crdtrim bin/golangci-lint
  wait $images
}

step_verify() { make verify; }
step_lint() { make lint; }

step_unit() {
  redis
  # What needs a Kubernetes has a step of its own.
  go test -v $(go list ./... | grep -vE '/tests/(integration|e2e|bench)')
  go test -C tests/images -v ./...
  go test -C tests/tools -v -count=1 ./crdtrim # reads files that the cache does not watch
  go test -C tests/localkube -v $(cd tests/localkube && go list ./internal/... | grep -v /realtest)
}

step_chart() {
  bin/helm lint --strict helm-chart/heliostat
  HELM=$PWD/bin/helm go test -C tests/tools -v -count=1 ./chart
}

step_integration() {
  instance itest --control-plane-only
  go test -v -count=1 -timeout 25m ./tests/integration/...
  rights_used integration
  go test -v -count=1 -timeout 10m ./tests/bench/fleet # a small fleet: that it can be measured, and what it takes in calls
}

step_localkube() {
  go test -C tests/localkube -v -count=1 -p 1 -timeout 15m . ./internal/realtest
}

# nodes NAME: an instance with two nodes that hold the images of Ray, the operator and Redis.
nodes() {
  local name=$1 images=() tar
  bin/images build ray operator redis >"$LOGS/$name.images"
  while read -r tar; do images+=(--image "$tar"); done <"$LOGS/$name.images"
  instance "$name" --nodes 2 --gpus 2 "${images[@]}"
}

step_e2e() {
  nodes e2e
  # Ginkgo's own limit, an hour otherwise, ends first and tells what hung.
  go test -v -count=1 -timeout 80m ./tests/e2e/... -ginkgo.timeout 75m
  rights_used e2e
  go test -v -count=1 -timeout 10m ./tests/bench/byhand # one round: that it can be measured at all
}

step_bench() {
  nodes bench
  go test -v -count=1 -timeout 30m ./tests/bench/byhand -rounds 5
}

step_accept() {
  [ -n "$AREA" ] || { echo "Which area? make accept AREA=first-light"; return 1; }
  go run ./tests/accept -area "$AREA" ${SCENARIOS:+-scenarios "$SCENARIOS"}
}

declare -A TITLE=(
  [deps]="Debian packages"
  [build]="programs, tools and images (the first time 10 minutes on 2 cores, most of it linking Kubernetes)"
  [verify]="generated files are what make generate writes" [lint]="golangci-lint"
  [unit]="tests of every module that need no Kubernetes" [chart]="the chart renders what Kubernetes accepts"
  [integration]="a real API server" [localkube]="local Kubernetes: up, down, killed in between, devices, policies"
  [e2e]="real kubelets, real Ray" [rights]="the operator used every right that it has, and no other" [accept]="full counts and promised times" [bench]="against the same pods applied by hand"
)
TESTS=(verify lint unit chart integration localkube e2e rights)
[ $# -gt 0 ] || set -- "${TESTS[@]}"

for name in "$@"; do
  [ -n "${TITLE[$name]:-}" ] || { echo "there is no step $name; there are: ${!TITLE[*]}" >&2; exit 2; }
done
# needed: whether a step runs programs that must be built, and packages that must be there.
needed() { case " $* " in *" integration "* | *" localkube "* | *" e2e "* | *" accept "* | *" bench "*) ;; *) return 1 ;; esac; }
if needed "$@"; then
  for name in deps build; do
    step $name
    [ ! -s "$FAILED" ] || exit 1
  done
fi
# What needs no Kubernetes is played at the lowest priority beside the first steps that have one, which wait for it half
# of their time. Real Ray has the machine to itself: its requests are timed.
kubernetes=() code=() beside=
for name in "$@"; do
  case $name in verify | lint | unit | chart) code+=("$name") ;; *) kubernetes+=("$name") ;; esac
done
lane() { for name in "$@"; do step "$name"; done; }
if [ ${#kubernetes[@]} -gt 0 ] && [ ${#code[@]} -gt 0 ]; then
  set -m # a process group of its own, which ends with this run
  (renice -n 19 -p $BASHPID >/dev/null && lane "${code[@]}") &
  beside=$!
  set +m
  trap 'kill -- -$beside 2>/dev/null || true' EXIT
else
  lane "${code[@]}"
fi
for name in "${kubernetes[@]}"; do
  case $name in e2e | accept | bench) wait $beside ;; esac
  step "$name"
done
wait $beside
echo
closing "$@"
case " $* " in *" e2e "*) slowest ;; esac
[ ! -s "$FAILED" ] || { echo "FAILED after ${SECONDS}s: $(paste -sd' ' "$FAILED")"; exit 1; }
echo "all passed in ${SECONDS}s: $*"
