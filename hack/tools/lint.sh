#!/usr/bin/env bash
# Runs golangci-lint on every module that has code of ours worth the time: those that link others' programs have few
# lines each and drag all of Kubernetes in. All modules are looked at in one run, in a workspace that only
# this script uses: what several of them import is then loaded and analysed once, at one version.
#
# With --changed it looks only at the packages whose files differ from the main branch, committed or not. It looks at
# everything where git does not know since when (a shallow clone, no repository), and where settings of the linters or
# a go.mod differ. A package that uses a changed one is left to a run without --changed.
#
# The types of the kinds are also held to the conventions of Kubernetes' API.
set -euo pipefail
cd "$(dirname "$0")/../.."
modules=(. tests/imagebuild tests/localkube hack/tools hack/tools/apilint hack/tools/openapi hack/tools/monitoring)

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

# list_packages: the packages of the modules that have a changed file, as patterns.
list_packages() {
  local directory
  grep '\.go$' <<<"$changes" | grep -v '/testdata/' | xargs -r dirname | sort -u | while read -r directory; do
    case " ${modules[*]} " in *" $(find_module "$directory") "*) echo "./$directory" ;; esac
  done
}

# write_workspace: makes go.work of the modules, where nothing but GOWORK finds it.
write_workspace() {
  mkdir -p .state/lint
  {
    echo "go $(for module in "${modules[@]}"; do sed -n 's/^go //p' "$module/go.mod"; done | sort -V | tail -n 1)"
    printf 'use ../../%s\n' "${modules[@]}"
  } >.state/lint/go.work
}

packages=(./...)
for module in "${modules[@]:1}"; do packages+=("./$module/..."); done
if [ "${1:-}" = --changed ]; then
  if ! changes=$(list_changes); then
    echo "git does not know what changed since the main branch: looking at everything"
  elif grep -qE '^\.golangci\.yml$|(^|/)go\.mod$' <<<"$changes"; then
    echo "settings or a go.mod changed: looking at everything"
  else
    mapfile -t packages < <(list_packages)
    [ ${#packages[@]} != 0 ] || exit 0
  fi
fi
bin/apilint ./ray-operator/api/v1beta1
write_workspace
# Another checkout of the same machine may be linting.
GOWORK=$PWD/.state/lint/go.work bin/golangci-lint run --allow-parallel-runners --config .golangci.yml "${packages[@]}"
