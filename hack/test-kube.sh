#!/usr/bin/env bash
# Runs the tests that need an API server, and the journeys on installation, edits and tokens, on
# another version of Kubernetes, which is built first (about 6 minutes once).
#
#	hack/test-kube.sh 1.34|1.35|1.36|1.37
set -euo pipefail
cd "$(dirname "$0")/.."

minor=${1:?"usage: hack/test-kube.sh 1.34|1.35|1.36|1.37"}
fleets=$(go -C test/fleet/tools list -m -f '{{.Version}}' k8s.io/kubernetes)
case "$fleets" in
v"$minor".*) ;; # the fleets' own
*)
	FLEET_KUBE_BINARY=$(go -C test/fleet run ./cmd/fleet kube "$minor")
	export FLEET_KUBE_BINARY OTHER_KUBE=$minor # the pages show the fleets' own version
	;;
esac
hack/test.sh unit
journeys=(
	TestInstallByPlacement TestUninstallLeavesNothing # installation
	TestPropertyIsEditedAndDeleted TestProfileWritesAreTheFewestPossible # edits
	TestQuickStartWorksAsWritten TestTokenGoesWhereItsAccountSays TestTokenIsWithdrawn # tokens
	TestAgentsComeByCertificateAndByToken # the agents' certificates
)
RUN=$(IFS='|' && echo "^(${journeys[*]})\$") exec hack/test.sh e2e
