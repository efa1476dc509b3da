#!/usr/bin/env bash
# Writes what is generated into a directory laid out like the repository: from the API's and Kueue's Go types deepcopy functions, the
# CRDs, the chart's copies of them, the schemas that package crdcheck evaluates, the catalogue of their rules and the API reference; from the rules the chart's admission policies and their tables; from the
# catalogue the reference of reasons; from the converter's rules the reference of KubeRay's fields; from the job controller's table the phases of jobs; from the
# planner how upgrades go; from the commands the reference of the command line; from the protocol the reference of the server and its OpenAPI document; from the launcher of gangs the variables that it sets; and from the OpenAPI document the page's types. usage: generate.sh [DIRECTORY], by default the repository itself.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-$PWD}")
api=ray-operator/api/v1beta1 crd=ray-operator/config/crd chart=helm-chart/heliostat/files
schemas=ray-operator/crdcheck/schemas
mkdir -p "$out"/{$api,$crd,$schemas,$chart/{admission,crds},docs/reference,apiserver/rest}
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT

bin/controller-gen object crd:generateEmbeddedObjectMeta=true paths="./$api" \
  output:object:dir="$out/$api" output:crd:dir="$raw"
mkdir -p "$out"/ray-operator/internal/kueue
bin/controller-gen object paths=./ray-operator/internal/kueue output:object:dir="$out/ray-operator/internal/kueue"
for name in $(cd "$raw" && ls heliostat.dev_*.yaml); do
  bin/crdtrim <"$raw/$name" >"$out/$crd/$name"
  plural=${name#heliostat.dev_}
  bin/crdtrim -schema <"$raw/$name" >"$out/$schemas/${plural%.yaml}.json"
done
bin/crdtrim -chart "$out/$chart/crds" "$raw"/heliostat.dev_*.yaml
bin/celrules "$api" "$out/$schemas" >"$raw/rules.go"
mkdir -p "$out/ray-operator/validate"
cp "$raw/rules.go" "$out/ray-operator/validate/crdrules.go"
bin/crd-ref-docs --source-path="$api" --config=hack/tools/reference.yaml --renderer=markdown --max-depth=20 \
  --output-path="$out/docs/reference/api.md" >/dev/null
go run ./hack/docgen "$out"
python3 -B ray-operator/launcher/variables.py "$out"
# What only the operator itself knows, its tests write: no program outside of ray-operator can import it.
go test -run '^TestGenerated' ./ray-operator/internal/{admission,job,upgrade} -args -generate "$out"
# The page's types stand beside its sources alone: web/make.sh compares them.
[ $# -gt 0 ] || node web/types.mjs
