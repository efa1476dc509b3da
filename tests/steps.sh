# What each step of the tests does. Sourced by run.sh, which runs the functions step_NAME, and by one.sh.
declare -A TITLE=(
  [deps]="Debian packages"
  [build]="programs, tools and images (the first time 10 minutes on 2 cores, most of it linking Kubernetes)"
  [verify]="generated files are what make generate writes, the API below /v1 breaks no client, and no result is of something that is gone"
  [lint]="golangci-lint"
  [scan]="checkov: the chart and the Dockerfiles"
  [lint-changed]="golangci-lint on what changed"
  [unit]="tests of every module that need no Kubernetes"
  [unit-few]="those that need neither root nor Redis, stories at few points"
  [unit-root]="those that need root or Redis"
  [chart]="the chart renders what Kubernetes accepts, and its alerts fire"
  [chart-few]="the chart renders what Kubernetes accepts"
  [chart-alerts]="alerts of the chart, with promtool"
  [integration]="a real API server"
  [web]="the page: node, and a browser on a real API server"
  [localkube]="local Kubernetes: up, down, killed in between, devices, policies"
  [e2e-clusters]="real kubelets, real Ray: clusters, jobs, autoscaling"
  [e2e-services]="real kubelets, real Ray: services and control stores"
  [e2e-ipv6]="real kubelets, real Ray: a job where there is IPv6 alone"
  [e2e-existing]="real Ray on the Kubernetes that KUBECONFIG names"
  [plan]="the order of the specs, and what a slow machine leaves out"
  [rights]="the operator and the server used every right that they have, and no other"
  [accept]="full counts and promised times"
  [bench]="against the same pods applied by hand"
)

# needs_programs STEP...: whether a step runs programs that must be built, and packages that must be there.
needs_programs() {
  local name
  for name in "$@"; do
    case $name in integration | web | localkube | e2e-* | accept | bench) return 0 ;; esac
  done
  return 1
}

# debian PROGRAM=PACKAGE...: installs the packages whose programs are missing. Debian starts some of them for the machine,
# which nobody needs.
debian() {
  local packages=() pair
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || packages+=("${pair#*=}")
  done
  [ ${#packages[@]} != 0 ] || return 0
  [ "$(id -u)" = 0 ] || { echo "these packages are missing, and installing them needs root: apt-get install ${packages[*]}"; return 1; }
  apt-get update -q
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
  systemctl disable --now "${packages[@]}" 2>/dev/null || true # where there is a systemd, and of what is a service
}

# redis: what tests run Redis servers of their own with.
redis() { debian redis-server=redis-server redis-sentinel=redis-sentinel redis-cli=redis-tools; }

# web: what builds the page and tests it in a browser, and what the dashboard proxy is measured beside.
web() { debian node=nodejs npm=npm chromium=chromium nginx=nginx wrk=wrk; }

# python: what the tests of python and the virtual environment of checkov need. Debian has ensurepip in a package of its own.
python() {
  debian python3=python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || debian ensurepip=python3-venv
}

step_deps() {
  make bin/localkube bin/images
  local missing
  missing=$( (bin/localkube deps; bin/images deps) | sort -u)
  [ "$(id -u)" = 0 ] || { echo "These tests make network namespaces, mounts and containers, so they need root: sudo make test"; return 1; }
  bin/localkube deps --install
  bin/images deps --install
  redis
  web
  python
  debian promtool=prometheus
}

step_build() {
  make web bin/localkube bin/images bin/kueue
  bin/images build ray operator redis frameworks >"$LOGS/images.list" & # most of it waits for a network, while Kubernetes links
  local images=$!
  bin/localkube build || { kill $images; return 1; }
  make bin/helm bin/gotestsum
  [ -z "${WHOLE:-}" ] || build_tools
  wait $images
}

# build_tools: what generators and static checks run. "make test" builds it here, as it changes rarely; a step that runs alone
# builds what it needs.
build_tools() {
  hack/tools/scan.sh --install & # most of it waits for a network
  local checkov=$!
  make tools || { kill $checkov; return 1; }
  wait $checkov || echo "checkov could not be installed; the step scan tries again"
}

step_verify() { make verify; }
step_lint() { make lint; }

step_scan() {
  make bin/helm
  python
  hack/tools/scan.sh
}

step_lint_changed() {
  make bin/golangci-lint bin/apilint
  hack/tools/lint.sh --changed
}

# gotest STEP DIRECTORY PACKAGES FLAGS...: go test -v in a module, which also leaves its events for tests/times. golangci-lint
# has vet look at everything already. With AGAIN, few tests that failed are run once more, and .again names them.
gotest() {
  local step=$1 dir=$2 packages=$3 root=$PWD bad=0
  shift 3
  (cd "$dir" && "$root/bin/gotestsum" --format standard-verbose --hide-summary=all --jsonfile "$root/$TIMES/$step.go.part" \
    ${AGAIN:+--rerun-fails=1 --rerun-fails-max-failures=8 --rerun-fails-run-root-test --rerun-fails-report="$root/$TIMES/$step.again"} \
    --packages "$packages" -- -vet=off "$@") || bad=1
  cat "$TIMES/$step.go.part" >>"$TIMES/$step.go.json"
  rm "$TIMES/$step.go.part"
  return $bad
}

# NEEDS_MACHINE matches packages whose tests need root or Redis servers, but no Kubernetes.
NEEDS_MACHINE='/(ray-operator/internal/controlstore|tests/redistest|tests/internal/(packets|podnet)|localkube/internal/netpol)$'

# test_python: tests the module python, the launcher of gangs and the site of the documentation with the standard library alone.
test_python() {
  command -v python3 >/dev/null || { echo "python3 is missing: install it"; return 1; }
  local bad=0
  for tests in python/tests ray-operator/launcher/tests hack/site/tests; do
    python3 -B -m unittest discover -s "$tests" && continue
    echo "--- the tests of $tests failed; they run once more, as those of Go do (find out why)"
    python3 -B -m unittest discover -s "$tests" || bad=1
  done
  return $bad
}

# test_packages STEP GREP...: runs those packages of the large modules that need no Kubernetes and that grep selects.
test_packages() {
  local step=$1 packages bad=0
  shift
  # What needs a Kubernetes has a step of its own. Without packages gotestsum would test all.
  packages=$(go list ./... | grep -vE '/tests/(integration|web|e2e|bench/(byhand|fleet))$' | grep "$@" |
    go run ./tests/times order packages) || return 1
  gotest "$step" . "$packages" -timeout 20m || bad=1
  packages=$(cd tests/localkube && go list ./internal/... | grep -v /realtest | grep "$@") || return 1
  gotest "$step" tests/localkube "$packages" || bad=1
  return $bad
}

# test_small STEP: tests the small modules, which need nothing else.
test_small() {
  local step=$1 bad=0
  gotest "$step" . ./tests/bench/fleet -skip '^TestASmallFleet$' || bad=1 # make bench runs that one
  gotest "$step" tests/imagebuild ./... || bad=1
  gotest "$step" hack/tools "./celrules ./crdtrim ./protogen ./schema" -count=1 || bad=1 # they read files that the cache does not watch
  gotest "$step" hack/tools/openapi ./... || bad=1
  gotest "$step" hack/tools/apilint ./... || bad=1
  gotest "$step" tests/oldest ./... -count=1 || bad=1 # it reads files that the cache does not watch
  return $bad
}

step_unit() {
  local bad=0
  redis
  debian python3=python3
  test_python || bad=1
  make bin/gotestsum
  test_packages unit "" || bad=1
  test_small unit || bad=1
  # It links kubectl, and reads files that the cache does not watch.
  gotest unit tests/localkube/kube ./pages -count=1 || bad=1
  return $bad
}

# step_unit_few: plays stories without disturbance. What they promise is still checked at each revision. It installs nothing.
step_unit_few() {
  local bad=0
  export HELIOSTAT_POINTS=none
  test_python || bad=1
  make bin/gotestsum
  test_packages unit-few -vE "$NEEDS_MACHINE" || bad=1
  test_small unit-few || bad=1
  return $bad
}

step_unit_root() {
  [ "$(id -u)" = 0 ] || { echo "these tests make network namespaces, so they need root: sudo make check-root"; return 1; }
  redis
  debian ip=iproute2 iptables=iptables ipset=ipset
  make bin/gotestsum
  test_packages unit-root -E "$NEEDS_MACHINE"
}

# test_chart STEP: tests what the chart renders. It installs nothing.
test_chart() {
  make bin/helm bin/gotestsum
  bin/helm lint --strict helm-chart/heliostat
  HELM=$PWD/bin/helm gotest "$1" hack/tools ./chart -count=1 -timeout 20m
}

# test_alerts STEP: tests the alerts with promtool, and the boards.
test_alerts() {
  make bin/gotestsum
  debian promtool=prometheus
  gotest "$1" hack/tools/monitoring ./... -count=1 # it reads files that the cache does not watch
}

step_chart() {
  test_chart chart
  test_alerts chart
}

step_chart_few() { test_chart chart-few; }
step_chart_alerts() { test_alerts chart-alerts; }

status() { bin/localkube status --name "$1" | awk -v key="$2" 'index($0, key) == 1 { print $NF }'; }

# instance NAME OPTIONS...: a local Kubernetes. It is fresh and ends with the step, unless KEEP is set. Names are the machine's:
# INSTANCE=mine makes mine-NAME of them, for a second checkout.
instance() {
  local name=${INSTANCE:+$INSTANCE-}$1
  shift
  if [ -z "${KEEP:-}" ]; then
    trap "instance_down $name" EXIT
    bin/localkube down --name "$name"
  fi
  bin/localkube up --name "$name" "$@"
  KUBECONFIG=$(bin/localkube kubeconfig --name "$name")
  KUBECTL=$(status "$name" kubectl)
  LOCALKUBE_AUDIT_LOG=$(status "$name" "audit log")
  LOCALKUBE_CPU_STAT=$(status "$name" "cpu stat")
  LOCALKUBE=$PWD/bin/localkube LOCALKUBE_NAME=$name HELM=$PWD/bin/helm
  export KUBECONFIG KUBECTL LOCALKUBE LOCALKUBE_NAME LOCALKUBE_AUDIT_LOG LOCALKUBE_CPU_STAT HELM
}

# instance_down NAME: takes it down, and notes how many CPU-seconds it used, for the step.
instance_down() {
  awk '$1 == "usage_usec" { print $2 / 1e6 }' "$LOCALKUBE_CPU_STAT" >"$TIMES/$STEP.instance" || true
  bin/localkube down --name "$1"
}

# rights_used NAME [ACCOUNT]: keeps which of its rights the operator, or another account of ours, used in the instance of a step.
rights_used() {
  mkdir -p .state/rights
  go run ./tests/rbac used "heliostat-system/${2:-heliostat}" "$LOCALKUBE_AUDIT_LOG" >".state/rights/$1.txt"
}

# step_rights: specs that were left out may be those that need a right. Then it looks only for rights that are missing.
step_rights() {
  local compare=compare
  ! has_left_out || compare=missing
  bin/helm template heliostat helm-chart/heliostat --namespace heliostat-system --set server.enabled=true,server.dashboards.enabled=true,kueue.enabled=true \
    --set 'schedulers={Volcano,KAI,SchedulerPlugins,Kubernetes}' | # as specs install it, and as tests/integration does
    go run ./tests/rbac $compare heliostat-system/heliostat .state/rights/{integration,e2e-clusters,e2e-services}.txt
  bin/helm template heliostat helm-chart/heliostat --namespace heliostat-system --values tests/integration/testdata/server.yaml |
    go run ./tests/rbac compare heliostat-system/heliostat-server .state/rights/integration-server.txt
}

step_integration() {
  instance itest --control-plane-only --pod-groups
  # Most of these tests wait: for Leases, budgets, and an API server that gives up kinds.
  AGAIN=1 gotest integration . ./tests/integration/... -count=1 -parallel 8 -timeout 25m
  rights_used integration
  rights_used integration-server heliostat-server
}

step_web() {
  instance web --control-plane-only
  AGAIN=1 gotest web . ./tests/web -count=1 -timeout 15m -skip '^TestFronts$' # Traefik takes minutes to build
}

step_localkube() {
  AGAIN=1 gotest localkube tests/localkube ". ./internal/realtest" -count=1 -p 1 -timeout 15m
}

# nodes NAME OPTIONS...: an instance with two nodes that hold the images of Ray, the operator and Redis, and those that MORE
# names, and with both families of addresses, unless an option says otherwise.
nodes() {
  local name=$1 images=() tar
  shift
  bin/images build ray operator redis ${MORE:-} >"$LOGS/$name.images"
  while read -r tar; do images+=(--image "$tar"); done <"$LOGS/$name.images"
  instance "$name" --nodes 2 --gpus 2 --ip-families ipv4,ipv6 "${images[@]}" "$@"
}

# build_specs: links the specs on real Ray once for all steps that run them. Go does nothing where it is up to date.
build_specs() { flock .state/specs.lock go test -c -vet=off -o .state/e2e.test ./tests/e2e; }

# specs STEP FILTER FLAGS...: runs the specs on real Ray that a filter of labels selects. Ginkgo's own limit ends before
# Go's and says what hung.
specs() {
  local step=$1 filter=$2 root=$PWD
  shift 2
  build_specs || return # nothing else ends a function that stands before "||", and a former program would run
  (cd tests/e2e && "$root/.state/e2e.test" -test.v -test.timeout 60m -ginkgo.timeout 55m -ginkgo.label-filter "$filter" \
    -ginkgo.json-report "$root/$TIMES/$step.ginkgo.json" "$@")
}

# step_plan: orders the specs by what they cost when a run was recorded. In CI, which ends a run after 90 minutes, it
# leaves out specs where the run would take more than 80; MINUTES gives another limit.
step_plan() {
  local root=$PWD minutes=${MINUTES:-${CI:+80}} filter='!accept' name steps=()
  for name in $(in_lane clusters "${STEPS[@]}") $(in_lane services "${STEPS[@]}") $(in_lane static "${STEPS[@]}"); do
    is_unchanged "$name" >/dev/null || steps+=("$name")
  done
  ! is_unchanged contract >/dev/null || filter+=' && !contract'
  build_specs
  (cd tests/e2e && "$root/.state/e2e.test" -ginkgo.dry-run -ginkgo.label-filter "$filter" -ginkgo.json-report "$root/$TIMES/specs.json")
  go run ./tests/times plan -commit "$(git rev-parse HEAD)" -slowness "$SLOWNESS" -elapsed "$(seconds)" -cores "$(nproc)" \
    -limit $((${minutes:-0} * 60)) "${steps[@]}"
}

# specs_again STEP FILTER: runs the containers of the specs that failed once more, where they are few, and .again names them.
specs_again() {
  local focus
  focus=$(go run ./tests/times failed "$TIMES/$1.ginkgo.json") || return 1
  specs "$1-again" "$2" -ginkgo.focus "$focus" || return 1
  echo "$focus" >"$TIMES/$1.again"
}

# specs_on_nodes FILTER: runs specs on a local Kubernetes of their own.
specs_on_nodes() {
  local filter="!accept && !left-out && ($1)" why
  nodes "$STEP"
  # What the fake head promises is shown on the real one again when either changed.
  if why=$(is_unchanged contract); then
    filter+=" && !contract"
    echo "contract of the fake head: $why" >"$TIMES/$STEP.skipped"
  fi
  specs "$STEP" "$filter" || specs_again "$STEP" "$filter"
  rights_used "$STEP"
}

# The lanes are to end at about the same time, so the stores that the operator makes are with the clusters.
step_e2e_clusters() { MORE=frameworks specs_on_nodes "!service && (!store || managed-store)"; }
step_e2e_services() { specs_on_nodes "service || store && !managed-store"; }

# step_e2e_ipv6: what needs no second node, where pods have no other address.
step_e2e_ipv6() {
  nodes "$STEP" --nodes 1 --ip-families ipv6
  specs "$STEP" ipv6-test || specs_again "$STEP" ipv6-test
}

step_e2e_existing() {
  [ -n "${KUBECONFIG:-}" ] || { echo "Which Kubernetes? make e2e-existing KUBECONFIG=FILE"; return 1; }
  unset LOCALKUBE LOCALKUBE_NAME
  specs e2e-existing "!localkube && !accept"
  echo "specs that need what only the local Kubernetes can do were left out (label localkube)" | tee "$TIMES/$STEP.skipped"
}

step_bench() {
  nodes bench
  go test -v -count=1 -timeout 30m ./tests/bench/byhand -rounds 5
  go test -v -count=1 -timeout 10m -run '^TestASmallFleet$' ./tests/bench/fleet
  go run ./tests/results ages
}

step_accept() {
  [ -n "$AREA" ] || { echo "Which area? make accept AREA=first-light"; return 1; }
  go run ./tests/acceptance -area "$AREA" ${SCENARIOS:+-scenarios "$SCENARIOS"}
}
