#!/usr/bin/env bash
# Runs golangci-lint in every module that has code of ours worth the time: those that only link others' programs have
# a main function each and drag all of Kubernetes in.
#
# With --changed it looks only at the packages whose files differ from the main branch, committed or not. It looks at
# everything where git does not know since when (a shallow clone, no repository), and where settings of the linters or
# a go.mod differ. A package that uses a changed one is left to a run without --changed.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
modules=(. tests/imagebuild tests/localkube tests/oldest hack/tools hack/tools/openapi hack/tools/monitoring)

# list_changes: the files that differ from the commit at which the main branch was left.
list_changes() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null) || return
  git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard
}

# find_module DIRECTORY: the module that a package belongs to.
find_module() {
  local module=$1
  while [ ! -f "$module/go.mod" ]; do module=$(dirname "$module"); done
  echo "$module"
}

# list_packages MODULE: the packages of a module that have a changed file, as patterns.
list_packages() {
  local directory
  grep '\.go$' <<<"$changes" | grep -v '/testdata/' | xargs -r dirname | sort -u | while read -r directory; do
    [ "$(find_module "$directory")" != "$1" ] || echo "./$(realpath --relative-to "$1" "$directory")"
  done
}

# lint MODULE PACKAGE...: reports what it finds in the packages of a module.
lint() {
  (cd "$1" && "$root/bin/golangci-lint" run --config "$root/.golangci.yml" "${@:2}") && return
  echo "in the module $1"
  return 1
}

everything=yes
if [ "${1:-}" = --changed ]; then
  if ! changes=$(list_changes); then
    echo "git does not know what changed since the main branch: looking at everything"
  elif grep -qE '^\.golangci\.yml$|(^|/)go\.mod$' <<<"$changes"; then
    echo "settings or a go.mod changed: looking at everything"
  else
    everything=
  fi
fi
bad=0
for module in "${modules[@]}"; do
  packages=(./...)
  [ -n "$everything" ] || mapfile -t packages < <(list_packages "$module")
  [ ${#packages[@]} = 0 ] || lint "$module" "${packages[@]}" || bad=1
done
exit $bad
