#!/usr/bin/env bash
# Builds Traefik, a gateway that speaks Gateway API, from its Go module, and prints the program's path. It is kept by the
# content of this directory; the first time takes about five minutes on one core.
set -euo pipefail
cd "$(dirname "$0")"
key=$(cat go.mod go.sum build.sh ext/* dns/* | sha256sum | cut -c1-16)
out=${XDG_CACHE_HOME:-$HOME/.cache}/heliostat/gateway/$key
if [ ! -x "$out/traefik" ]; then
  rm -rf "$out" && mkdir -p "$out"
  cp -r go.mod go.sum ext "$out/"
  version=$(sed -n 's|^\tgithub.com/go-acme/lego/v5 \(v[^ ]*\).*|\1|p' go.mod)
  lego=$(cd / && go mod download -json "github.com/go-acme/lego/v5@$version" | sed -n 's|^\t"Dir": "\(.*\)",$|\1|p')
  cp -r "$lego" "$out/lego" && chmod -R u+w "$out/lego"
  rm -rf "$out"/lego/{cmd,e2e,main.go} "$out"/lego/providers/dns/*
  cp dns/providers.go "$out/lego/providers/dns/"
  (cd "$out" && CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o traefik.new github.com/traefik/traefik/v3/cmd/traefik) >&2
  rm -rf "$out/lego"
  mv "$out/traefik.new" "$out/traefik"
fi
echo "$out/traefik"
