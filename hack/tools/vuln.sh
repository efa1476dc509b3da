#!/usr/bin/env bash
# Looks with govulncheck for known vulnerabilities in what the programs of modules call. usage: vuln.sh MODULE...
# It needs a database: https://vuln.go.dev, or a copy of it that GOVULNDB names, such as file:///var/lib/vulndb.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD database=${GOVULNDB:-https://vuln.go.dev} found=0
go build -C hack/tools/vuln -o "$root/bin/govulncheck" golang.org/x/vuln/cmd/govulncheck
for module in "$@"; do
  echo "== $module"
  code=0
  (cd "$module" && "$root/bin/govulncheck" -db "$database" ./...) || code=$?
  case $code in
    0) ;;
    3) found=3 ;; # something that is called is vulnerable
    *)
      echo "the database $database could not be used: name a copy of https://vuln.go.dev with GOVULNDB" >&2
      exit "$code"
      ;;
  esac
done
exit $found
