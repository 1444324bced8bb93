#!/usr/bin/env bash
# Builds the image of a release for this machine's architecture, as IMAGE, into an archive
# that "docker load" and "kind load image-archive" take. It needs neither of them. With
# PROGRAM, it builds the image of that example of a consumer (see test/e2e/consumers).
#
# usage: hack/image.sh IMAGE ARCHIVE [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/version.sh
export VERSION=${VERSION:-v0.0.0} COMMIT=${COMMIT:-unknown} SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0}
arch=$(go env GOHOSTARCH)
programs=$PWD/bin/programs
if [ $# = 3 ]; then
	GOOS=linux GOARCH=$arch CGO_ENABLED=0 \
		go -C test/e2e build -trimpath -buildvcs=false -ldflags='-s -w' -o "$programs/linux_$arch/" "./consumers/$3"
else
	GOOS=linux GOARCH=$arch hack/build.sh "$programs/linux_$arch" ./cmd/manager ./cmd/agent ./cmd/cp-creds
fi
mkdir -p "$(dirname "$2")"
go -C hack/tools/release run . -programs "$programs" archive "$(realpath -m "$2")" "$1" "${@:3}"
echo "image: $1 is in $2"
