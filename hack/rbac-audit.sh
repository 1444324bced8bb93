#!/usr/bin/env bash
# Runs the journeys with the audit logs of all API servers on, and compares the rights that
# manager, uninstall hook, agent, clean-up Job and cp-creds used with those that chart and
# manifests grant. It fails if they differ, and writes the table of docs/security.md. The
# logs and the report are kept in OUT; with LOGS, a folder of such logs, nothing is run.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${OUT:-bin/rbac-audit}")
if [ -z "${LOGS:-}" ]; then
	LOGS=$out/logs
	rm -rf "$LOGS"
	# The story of the upgrade runs an older version with the same accounts.
	FLEET_AUDIT=$LOGS SKIP='^TestUpgradeAndRollback$' hack/test.sh e2e
fi
mkdir -p "$out"
# The namespace is that of fleets, whose logs are checked.
go -C test/fleet run ./cmd/fleet helm -- template ci "$PWD/charts/cluster-inventory" \
	--namespace open-cluster-management |
	go run ./hack/rbacaudit -docs docs/security.md -logs "$LOGS" | tee "$out/report.txt"
