#!/usr/bin/env bash
# Builds programs, such as ./cmd/manager, into the directory OUT for GOOS and GOARCH. They
# know from what (VERSION, COMMIT and SOURCE_DATE_EPOCH, by default what git says), and
# nothing else of this machine gets into them.
#
# usage: hack/build.sh OUT PACKAGE...
set -euo pipefail
out=$(realpath -m "${1:?"usage: hack/build.sh OUT PACKAGE..."}")
shift
cd "$(dirname "$0")/.."
. hack/version.sh
flags="-s -w"
set_variable() { # NAME VALUE
	[ -z "$2" ] || flags="$flags -X open-cluster-management.io/cluster-inventory-addon/pkg/version.$1=$2"
}
set_variable version "$VERSION"
set_variable revision "$COMMIT"
set_variable date "${SOURCE_DATE_EPOCH:+$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)}"
export CGO_ENABLED=0
exec go build -trimpath -buildvcs=false -ldflags="$flags" -o "$out/" "$@"
