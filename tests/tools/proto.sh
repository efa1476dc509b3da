#!/usr/bin/env bash
# Writes the Go code of the protocols in proto/ into a directory laid out like the repository.
# usage: proto.sh [DIRECTORY], by default the repository itself.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p "${1:-.}/proto"
PATH=$PWD/bin:$PATH bin/buf generate proto --template proto/buf.gen.yaml --output "${1:-.}/proto"
