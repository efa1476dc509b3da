#!/usr/bin/env bash
# Builds the documentation site of docs/ into a directory, by default .state/site. A dead link, a
# missing anchor or a page without a place in the navigation fails the build.
# Sphinx and its theme come from PyPI, and Mermaid, which draws the diagrams, from npm. Both go into the user's cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-.state/site}
mermaid=11.12.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/heliostat
python=$cache/site-$(sha256sum hack/site/requirements.txt | cut -c1-16)
script=$cache/mermaid-$mermaid
for program in python3 npm; do
  command -v $program >/dev/null || { echo "$program is missing: install it, or run make deps, and run make docs again"; exit 1; }
done
if [ ! -e "$python/complete" ]; then
  echo "install Sphinx ..."
  python3 -m venv --clear "$python"
  "$python/bin/pip" install --quiet --disable-pip-version-check -r hack/site/requirements.txt
  touch "$python/complete"
fi
if [ ! -e "$script/complete" ]; then
  echo "install Mermaid ..."
  npm install --no-save --no-progress --no-audit --no-fund --prefix "$script" "mermaid@$mermaid" >/dev/null
  touch "$script/complete"
fi
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
python3 -B hack/site/prepare.py . "$source"
mkdir -p "$source/_static/mermaid/chunks"
cp "$script/node_modules/mermaid/dist/mermaid.esm.min.mjs" "$source/_static/mermaid/"
cp -r "$script/node_modules/mermaid/dist/chunks/mermaid.esm.min" "$source/_static/mermaid/chunks/"
rm -rf "$out"
"$python/bin/sphinx-build" --quiet --fail-on-warning --keep-going --doctree-dir "$source/.doctrees" --builder html "$source" "$out"
echo "The site is in $out. Browsers draw its diagrams over HTTP alone: python3 -m http.server --bind 127.0.0.1 --directory $out"
