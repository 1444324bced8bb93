#!/usr/bin/env bash
# Runs the tests: all (with the main journeys), unit (those that need no fleet), race (those of this
# module under the race detector), e2e (all journeys, hack/suite/stories.go says which only it
# runs) or consumers (the journeys of Kueue and Knative).
# RUN selects tests, as go test's -run, and SKIP leaves some out, as -skip. With RERUN=1, up to three
# tests that failed run once more when all have run: a busy machine can make them wait too long. The
# summary names them and how they failed all the same.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:?"usage: hack/test.sh all|unit|race|e2e|consumers"}

if [ -n "${TEST_RUNNER:-}" ]; then
	# Called by gotestsum below: prints the test events of all modules as one stream.
	bin=$(mktemp -d)
	trap 'rm -rf "$bin"' EXIT
	go build -o "$bin/suite" ./hack/suite
	"$bin/suite" "$@" # gotestsum adds the test that runs again
	exit
fi

# Package tests run against a real API server.
[ -n "${KUBEBUILDER_ASSETS:-}" ] || KUBEBUILDER_ASSETS=$(go -C test/fleet run ./cmd/fleet assets)
# The fleet runs the same binary.
[ -n "${FLEET_KUBE_BINARY:-}" ] || FLEET_KUBE_BINARY=$(readlink -f "$KUBEBUILDER_ASSETS/etcd")
# API servers, linkers and tests are short-lived: collecting their garbage less often saves CPU time.
[ "$mode" = race ] || export GOGC="${GOGC:-300}"
export KUBEBUILDER_ASSETS FLEET_KUBE_BINARY TEST_RUNNER=1
args=(--format "${TEST_FORMAT:-testname}")
[ -z "${RERUN:-}" ] || args+=(--rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-run-root-test)
exec go tool -modfile=hack/tools/gotestsum/go.mod gotestsum "${args[@]}" --raw-command -- "$0" "$mode"
