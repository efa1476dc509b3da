#!/usr/bin/env bash
# Runs the tests, layer by layer. usage: run.sh [STEP...], by default every step that "make test" has. tests/steps.sh
# says what each step does. Each step writes a log of its own to .state/logs/test; here stands only when it began and
# how it ended. Steps run in lanes side by side, and at the end a table says what each cost.
# Variables: FRESH=1 runs also what is unchanged since it passed; MINUTES=80 leaves specs out where all of them would take
# longer (CI sets it); SLOWNESS=3 takes this machine for one that is three times as slow.
set -euo pipefail
cd "$(dirname "$0")/.."
LOGS=.state/logs/test TIMES=.state/times
mkdir -p $LOGS bin
# One run at a time in a checkout. flock keeps the lock to itself, so that no program started here can inherit it.
if [ -z "${HELIOSTAT_LOCKED:-}" ]; then
  flock --nonblock .state/lock true || echo "another run is going on in this checkout; waiting for it to end"
  exec env HELIOSTAT_LOCKED=1 flock --close .state/lock "tests/${0##*/}" "$@"
fi
AREA=${AREA:-} STEP=
FAILED=$LOGS/failed # a file with the names of failed steps, as several lanes write it
. tests/steps.sh
. tests/stamps.sh

# seconds: since the run began, in all lanes alike.
seconds() { echo $(($(date +%s) - BEGAN)); }

# children: the CPU-seconds of all processes that this shell has started and that have ended. They are in a variable, as
# a subshell has no such children.
children() {
  local file=$TIMES/.${LANE:-alone}
  times >"$file"
  CHILDREN=$(awk -F '[ms ]' 'NR == 2 { print $1 * 60 + $2 + $4 * 60 + $5 }' "$file")
}

# step NAME: runs the function step_NAME quietly, tells how it ended, and notes what it cost.
step() {
  local name=$1 log=$LOGS/$1.log began code=0 before skipped
  STEP=$name began=$(seconds)
  if skipped=$(is_unchanged "$name"); then
    printf '[%4ds] %-12s not run: %s\n' "$(seconds)" "$name" "$skipped"
    note "$name" 0 0 false "$skipped"
    return
  fi
  printf '[%4ds] %-12s %s ...\n' "$(seconds)" "$name" "${TITLE[$name]}"
  children
  before=$CHILDREN
  set +e # as a condition of "if", the step would go on after an error
  case $name in
    accept | bench) # what these find is what one runs them for
      (set -e; "step_${name//-/_}") 2>&1 | tee "$log"
      code=${PIPESTATUS[0]}
      ;;
    *)
      (set -e; "step_${name//-/_}") >"$log" 2>&1
      code=$?
      ;;
  esac
  set -e
  children
  skipped=$(cat "$TIMES/$name.skipped" 2>/dev/null || true)
  note "$name" $(($(seconds) - began)) \
    "$(awk -v a="$before" -v b="$CHILDREN" -v i="$(cat "$TIMES/$name.instance" 2>/dev/null)" 'BEGIN { print b - a + i }')" \
    "$([ $code = 0 ] && echo false || echo true)" "$skipped"
  if [ $code = 0 ]; then
    stamp "$name"
    printf '[%4ds] %-12s ok (%ds)%s\n' "$(seconds)" "$name" $(($(seconds) - began)) "$(counts "$log")"
    ! grep -qs . "$TIMES/$name.again" || passed_again "$name"
    return
  fi
  printf '[%4ds] %-12s FAILED (%ds)%s\n' "$(seconds)" "$name" $(($(seconds) - began)) "$(counts "$log")"
  echo "$name" >>"$FAILED"
  failures "$name"
  said "$log"
  printf -- '--- the last lines of %s:\n' "$log"
  tail -n 40 "$log"
  printf -- '--- to run this step alone: make %s\n' "$(target "$name")"
}

# note NAME WALL CPU FAILED SKIPPED: what a step cost, for tests/times.
note() {
  printf '{"name": "%s", "lane": "%s", "wallSeconds": %d, "cpuSeconds": %s, "failed": %s, "skipped": "%s"}\n' \
    "$1" "$(lane_of "$1")" "$2" "$3" "$4" "$5" >"$TIMES/$1.step"
}

# passed_again STEP: which of its tests failed first and passed when they were run once more, and what they said.
passed_again() {
  printf -- '--- passed only when run again (find out why: %s):\n' "$LOGS/$1.log"
  cat "$TIMES/$1.again"
  failures "$1"
}

# failures STEP: which of its tests failed, and what failing specs said.
failures() {
  sed 's/\x1b\[[0-9;]*m//g' "$LOGS/$1.log" | cut -c1-1000 | awk '
    /^ *--- FAIL|^FAIL|^ *\[FAIL\]|^panic:/ && !seen[$0]++ { print; next }
    /^  \[FAILED\] / && !/\[FAILED\] in \[/ { rest = 5 }
    rest-- > 0' | head -n 40
}

# said LOG: what the first tests that failed said last; go test prints it before the verdict, Ginkgo after it.
said() {
  local at
  for at in $(grep -nE '^ *--- FAIL|\[FAILED\]' "$1" | cut -d: -f1 | head -n 3); do
    printf -- '--- around line %d of %s:\n' "$at" "$1"
    sed -n "$((at > 30 ? at - 30 : 1)),$((at + 5))p" "$1" | cut -c1-300
  done
}

target() {
  case $1 in
    localkube | web) echo "$1-test" ;;
    accept) echo "accept AREA=$AREA" ;;
    unit-few | chart-few | lint-changed) echo check ;;
    unit-root | chart-alerts) echo check-root ;;
    e2e-clusters | e2e-services | e2e-ipv6) echo e2e ;;
    plan | rights) echo test ;; # they need what a whole run leaves
    *) echo "$1" ;;
  esac
}

# counts LOG: what go test and Ginkgo counted.
counts() {
  local passed failed
  passed=$(grep -cE '^ *--- PASS' "$1" || true)
  failed=$(grep -cE '^ *--- FAIL' "$1" || true)
  [ "$passed$failed" = 00 ] || printf ': %s passed, %s failed' "$passed" "$failed"
  sed -nE 's/\x1b\[[0-9;]*m//g; s/^(Ran [0-9]+ of [0-9]+ Specs).*/; \1/p' "$1" | paste -sd' ' | tr -d '\n'
}

# total STEP...: one line with the sums of what go test and Ginkgo counted in these steps.
total() {
  local name logs=(/dev/null)
  for name in "$@"; do [ ! -f "$LOGS/$name.log" ] || logs+=("$LOGS/$name.log"); done
  sed 's/\x1b\[[0-9;]*m//g' "${logs[@]}" | awk '
    /^ *--- PASS/ { passed++ } /^ *--- FAIL/ { failed++ }
    /^(SUCCESS|FAIL)! --/ { for (i = 2; i < NF; i++) { if ($(i + 1) == "Passed") passed += $i; if ($(i + 1) == "Failed") failed += $i } }
    END { printf "%d passed, %d failed", passed, failed }'
  ! has_left_out || sed -nE 's/^ *"leftOutSpecs": ([0-9]+).*/, \1 skipped/p' $TIMES/plan.json | tr -d '\n'
  echo
}

# has_left_out: whether the plan of this run leaves specs out.
has_left_out() { grep -qs '"leftOutSpecs"' $TIMES/plan.json; }

# lane_of STEP: steps of a lane run one after another. Unit tests come first, as they starve beside others. Then lanes run
# side by side: the two with a Kubernetes wait a part of their time, and static checks take what they leave. A third
# Kubernetes starves them on 2 cores.
lane_of() {
  case $1 in
    unit*) echo units ;;
    e2e-clusters | e2e-ipv6 | localkube | web) echo clusters ;;
    integration | e2e-services) echo services ;;
    chart* | scan | verify | lint*) echo static ;;
    *) echo alone ;;
  esac
}

# in_lane LANE STEP...: those of the steps that belong to a lane.
in_lane() {
  local lane=$1 name
  shift
  for name in "$@"; do [ "$(lane_of "$name")" != "$lane" ] || echo "$name"; done
}

# run_side_by_side STEP...: runs each lane in a session of its own: Linux shares the CPU among sessions first.
run_side_by_side() {
  local lane chosen
  LANES=()
  trap 'for lane in "${LANES[@]}"; do kill -- "-$lane" 2>/dev/null || true; done' EXIT
  for lane in clusters services static; do
    chosen=$(in_lane $lane "$@")
    [ -n "$chosen" ] || continue
    LANE=$lane setsid "tests/${0##*/}" $chosen &
    LANES+=($!)
  done
  for lane in "${LANES[@]}"; do wait "$lane"; done
  LANES=()
  stamp_contract "$@"
}

# stamp_contract STEP...: notes that the contract specs passed. Both steps of specs hold a part of them.
stamp_contract() {
  [[ " $* " == *" e2e-clusters "* && " $* " == *" e2e-services "* ]] || return 0
  has_left_out || grep -q e2e "$FAILED" || is_unchanged contract >/dev/null || stamp contract
}

if [ -n "${LANE:-}" ]; then # started by run_side_by_side
  [ "$LANE" != static ] || echo 19 >/proc/self/autogroup 2>/dev/null || true
  for name in "$@"; do step "$name"; done
  exit 0
fi

BEGAN=$(date +%s)
export BEGAN
rm -rf $TIMES
mkdir -p $TIMES
: >"$FAILED"
WHOLE=
[ $# -gt 0 ] || { WHOLE=1; set -- unit chart integration web e2e localkube verify lint scan rights; }
steps=()
for name in "$@"; do [ "$name" = e2e ] && steps+=(e2e-clusters e2e-services e2e-ipv6) || steps+=("$name"); done
[ "${steps[*]}" != build ] || steps=(deps build)
for name in "${steps[@]}"; do
  [ -n "${TITLE[$name]:-}" ] || { echo "there is no step $name; there are: ${!TITLE[*]}" >&2; exit 2; }
  rm -f "$LOGS/$name.log" # a step that is not run has nothing to count
done

GIVEN=${SLOWNESS:-}
calibrated() { if [ -n "$GIVEN" ]; then echo "$GIVEN"; else go run ./tests/times calibrate; fi; }
SLOWNESS=1
[ -z "$WHOLE" ] || SLOWNESS=$(calibrated) # before anything else keeps the machine busy
if needs_programs "${steps[@]}"; then
  for name in deps build; do
    step $name
    [ ! -s "$FAILED" ] || exit 1
  done
fi
for name in $(in_lane units "${steps[@]}"); do step "$name"; done
if [ -n "$WHOLE" ]; then
  ordered=$(printf '%s\n' "${steps[@]}" | go run ./tests/times order steps)
  mapfile -t steps <<<"$ordered"
  STEPS=("${steps[@]}")
  step plan
  ! grep -qx plan "$FAILED" || { echo "FAILED after $(seconds)s: $(paste -sd' ' "$FAILED")"; exit 1; }
  export HELIOSTAT_PLAN=$PWD/$TIMES/plan.json
fi
run_side_by_side "${steps[@]}"
for name in $(in_lane alone "${steps[@]}"); do
  [ "$name" != rights ] || ! grep -qE '^(integration|e2e)' "$FAILED" || continue # it compares what whole steps left
  step "$name"
done

[ -z "$WHOLE" ] || SLOWNESS=$(printf '%s\n' "$SLOWNESS" "$(calibrated)" | sort -g | tail -n 1)
printf '{"slowness": %s, "wallSeconds": %d}\n' "$SLOWNESS" "$(seconds)" >$TIMES/run.json
over=0
[ ! -d $TIMES ] || go run ./tests/times report -judge="$([ -n "$WHOLE" ] && echo true || echo false)" || over=1
total "${steps[@]}"
for name in "${steps[@]}"; do ! grep -qs . "$TIMES/$name.again" || passed_again "$name"; done
if [ -s "$FAILED" ]; then
  while read -r name; do failures "$name"; done <"$FAILED"
  echo "FAILED after $(seconds)s: $(paste -sd' ' "$FAILED")"
  exit 1
fi
[ $over = 0 ] || { echo "FAILED after $(seconds)s: over tests/budget.yaml"; exit 1; }
echo "all passed in $(seconds)s: ${steps[*]}"
