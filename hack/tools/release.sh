#!/usr/bin/env bash
# Makes a release of the command line: an archive for each platform with the program and its manual, their checksums, and the
# manifest by which krew installs it. The same commit and version give the same bytes: no archive has a time, a user or a
# path of this machine. usage: VERSION=vX.Y.Z release.sh DIRECTORY [OS/ARCHITECTURE...], by default for five platforms.
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ ${VERSION:-} =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "VERSION=${VERSION:-} is no version; give one such as v0.1.0"; exit 1; }
out=$(realpath -m "$1")
shift
[ $# != 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
project=https://github.com/heliostat-dev/heliostat
export CGO_ENABLED=0 # with cgo, the program would differ with this machine's C libraries
committed=$(git log -1 --format=%ct)
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/man"
go run -trimpath ./hack/docgen man "$work/man"

manifest=$out/heliostat.yaml
cat >"$manifest" <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: heliostat
spec:
  version: $VERSION
  homepage: $project
  shortDescription: Use Ray clusters, jobs and services
  description: |
    Does the daily work with Ray clusters, jobs and services of the operator Heliostat, from a kubeconfig alone: create,
    watch and explain them, follow outputs, open dashboards, and convert manifests of KubeRay.
  platforms:
END

for platform in "$@"; do
  os=${platform%/*} arch=${platform#*/} program=heliostat
  [ "$os" != windows ] || program=heliostat.exe
  archive=heliostat_${VERSION}_${os}_$arch.tar.gz
  rm -rf "$work/files"
  mkdir "$work/files"
  GOOS=$os GOARCH=$arch go build -trimpath -ldflags "-s -w -X github.com/heliostat-dev/heliostat/cli/about.release=$VERSION" -o "$work/files/$program" ./cli/cmd/heliostat
  cp -r "$work/man" LICENSE "$work/files"
  tar -C "$work/files" --sort=name --mtime="@$committed" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - . |
    gzip -n9 >"$out/$archive"
  cat >>"$manifest" <<END
  - selector:
      matchLabels: {os: $os, arch: $arch}
    uri: $project/releases/download/$VERSION/$archive
    sha256: $(sha256sum "$out/$archive" | cut -d ' ' -f 1)
    bin: $program
END
done
(cd "$out" && sha256sum -- *.tar.gz heliostat.yaml >checksums.txt)
