#!/usr/bin/env bash
# Runs the tests: all, unit (everything that needs no fleet) or e2e (journeys).
# RUN narrows them as go test's -run does.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:?"usage: hack/test.sh all|unit|e2e"}
args=(-json -count=1)
[ -z "${RUN:-}" ] || args+=(-run "$RUN")

# The tests of the packages run against a real API server.
[ -n "${KUBEBUILDER_ASSETS:-}" ] || KUBEBUILDER_ASSETS=$(go -C test/fleet run ./cmd/fleet assets)
export KUBEBUILDER_ASSETS
# The fleet and its node run the same binary.
[ -n "${FLEET_KUBE_BINARY:-}" ] || FLEET_KUBE_BINARY=$(readlink -f "$KUBEBUILDER_ASSETS/etcd")
export FLEET_KUBE_BINARY

unit() {
	go test "${args[@]}" -timeout 40m ./... || failed=1
	go -C test/fleet test "${args[@]}" -timeout 40m ./... || failed=1
	go -C test/e2e test "${args[@]}" -timeout 40m $(go -C test/e2e list ./... | grep -v /journeys) || failed=1
}
journeys() {
	go -C test/e2e test "${args[@]}" -timeout 40m ./journeys/... || failed=1
}

failed=0
case "${GOTESTSUM_INNER:-}" in
'')
	# One runner over all modules, so that there is one summary.
	export GOTESTSUM_INNER=$mode
	exec go tool -modfile=hack/tools/gotestsum/go.mod gotestsum --format "${TEST_FORMAT:-testname}" --raw-command -- "$0" "$mode"
	;;
unit) unit ;;
e2e) journeys ;;
all) unit; journeys ;;
*) echo "hack/test.sh: unknown mode $mode: want all, unit or e2e" >&2; exit 2 ;;
esac
exit "$failed"
