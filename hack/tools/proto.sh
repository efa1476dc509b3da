#!/usr/bin/env bash
# Writes the Go code of the protocols in proto/ into a directory laid out like the repository.
# usage: proto.sh [DIRECTORY], by default the repository itself.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-.}/proto/gen
mkdir -p "$out"
bin/protogen proto "$out" bin/protoc-gen-go bin/protoc-gen-go-grpc bin/protoc-gen-openapiv3:
