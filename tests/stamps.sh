# Stamps: what passed once is not run again while its inputs are the same. A stamp is an empty file in the user's cache,
# named after the step and the content of its inputs, so that checkouts share it. Sourced by run.sh.
STAMPS=${XDG_CACHE_HOME:-$HOME/.cache}/heliostat/stamps

# The inputs of what can be left out, as git's pathspecs.
declare -A INPUTS=(
  [verify]="apiserver cli dashboard-proxy portal ray-operator proto helm-chart/heliostat/files docs/reference docs/results hack/docgen hack/tools go.mod go.sum Makefile tests"
  [lint]="*.go *go.mod *go.sum .golangci.yml hack/tools"
  [chart]="helm-chart apiserver/cmd ray-operator/cmd ray-operator/config ray-operator/api docs hack/tools"
  [scan]="helm-chart images .checkov.yaml hack/tools/scan.sh"
  [web]="web tests/web tests/live tests/internal/podnet tests/internal/fakekubelet apiserver dashboard-proxy portal proto helm-chart ray-operator/api ray-operator/headclient go.mod"
  [localkube]="tests/localkube"
  [contract]="ray-operator/headclient images/ray tests/imagebuild tests/e2e/*contract* proto go.mod"
)
INPUTS[chart-few]=${INPUTS[chart]} INPUTS[chart-alerts]=${INPUTS[chart]}

# stamp_of NAME: the path of its stamp.
stamp_of() {
  local inputs
  read -ra inputs <<<"${INPUTS[$1]}"
  echo "$STAMPS/$1-$({
    go version
    git ls-files -z --cached --others --exclude-standard -- "${inputs[@]}" | LC_ALL=C sort -zu |
      while IFS= read -rd '' file; do [ ! -f "$file" ] || sha256sum "$file"; done
  } | sha256sum | cut -c1-32)"
}

# is_unchanged NAME: prints why a step need not be run, or fails. CI believes no stamp that is more than a week old.
is_unchanged() {
  local file
  [ -n "${INPUTS[$1]:-}" ] && [ -z "${FRESH:-}" ] || return 1
  file=$(stamp_of "$1")
  [ -e "$file" ] || return 1
  [ -z "${CI:-}" ] || [ -n "$(find "$file" -mtime -7)" ] || return 1
  echo "unchanged since it passed on $(date -u -r "$file" '+%F %R') UTC; FRESH=1 runs it"
}

# stamp NAME: notes that it passed.
stamp() {
  [ -n "${INPUTS[$1]:-}" ] || return 0
  mkdir -p "$STAMPS"
  find "$STAMPS" -type f -mtime +30 -delete
  touch "$(stamp_of "$1")"
}
