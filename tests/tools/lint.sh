#!/usr/bin/env bash
# Runs golangci-lint in every module that has code of ours worth the time: those that only link others' programs have
# a main function each and drag all of Kubernetes in.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD bad=0
for module in . tests/images tests/localkube tests/tools; do
  (cd "$module" && "$root/bin/golangci-lint" run --config "$root/.golangci.yml" ./...) || { bad=1; echo "in the module $module"; }
done
exit $bad
