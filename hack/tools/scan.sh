#!/usr/bin/env bash
# Looks with checkov at what the chart renders and at the Dockerfiles. Its findings are 0, or explained in .checkov.yaml.
# checkov comes from PyPI, into a virtual environment in the user's cache. With --install it does nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=3.3.30
home=${XDG_CACHE_HOME:-$HOME/.cache}/heliostat/checkov-$version
if [ ! -e "$home/complete" ]; then
  python3 -m venv --clear "$home"
  "$home/bin/pip" install --quiet --disable-pip-version-check "checkov==$version"
  touch "$home/complete"
fi
[ "${1:-}" != --install ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin/helm template heliostat helm-chart/heliostat --namespace heliostat-system \
  --set server.enabled=true,server.url=https://a.example.com,server.dashboards.enabled=true,server.dashboards.wildcard=b.example.com \
  --set server.ingress.enabled=true --set history.enabled=true,history.store.url=s3://bucket >"$work/chart.yaml"
# It would ask its vendor for texts about what it finds.
export BC_SKIP_MAPPING=TRUE
"$home/bin/checkov" --config-file .checkov.yaml --framework kubernetes --file "$work/chart.yaml"
"$home/bin/checkov" --config-file .checkov.yaml --framework dockerfile --directory images
