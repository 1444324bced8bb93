#!/usr/bin/env bash
# Runs the chart with Helm 4 in place of Helm 3: lint and template with all values of the tests,
# then the journeys that install, upgrade, roll back and uninstall, and the quick start. Helm 4 is
# built first (a few minutes once).
set -euo pipefail
cd "$(dirname "$0")/.."

FLEET_HELM_BINARY=$(go -C test/fleet run ./cmd/fleet helm4)
export FLEET_HELM_BINARY
"$FLEET_HELM_BINARY" version --short
for values in charts/testdata/values/*.yaml; do
	"$FLEET_HELM_BINARY" lint --strict --quiet charts/cluster-inventory --values "$values"
	"$FLEET_HELM_BINARY" template ci charts/cluster-inventory --namespace inventory-system --include-crds \
		--values "$values" >/dev/null
done
journeys=(
	TestInstallByPlacement TestWrongValuesAreRefused TestUninstallLeavesNothing # installation
	TestQuickStartWorksAsWritten TestUpgradeAndRollback # credentials
)
RUN=$(IFS='|' && echo "^(${journeys[*]})\$") exec hack/test.sh e2e
