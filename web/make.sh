#!/usr/bin/env bash
# Builds the page into dashboard-proxy/web/dist, where the server embeds it, after its types and tests of what is pure
# have been checked. It needs node, npm and a registry of packages; go build needs none of them.
set -euo pipefail
cd "$(dirname "$0")"
command -v node >/dev/null && command -v npm >/dev/null || {
  echo "node and npm are missing, which the page is built with: make deps installs them"
  exit 1
}
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-progress
node types.mjs --check
npx prettier --config package.json --check --log-level warn . "../tests/web/*.mjs"
npx tsc --noEmit
node test.mjs
node build.mjs
