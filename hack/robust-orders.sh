#!/usr/bin/env bash
# Searches all orders of what happens in a small world (internal/apitest/orders). STATES is the most
# states that it visits in each scenario, CHANGES how many changes others make at most. With
# MUTANTS=1 it negates each clause of the decisions instead, one at a time, and prints what finds
# each (hack/mutants); ONLY is a regular expression of their places. It keeps the results in
# bin/mutants, and continues where the last run ended unless the source has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

export CGO_ENABLED=0
if [ -n "${MUTANTS:-}" ]; then
	exec go run ./hack/mutants -states="${STATES:-300}" -only="${ONLY:-}"
fi
go test -count=1 -timeout=0 -v -run='^Test(Orders|Profiles)$' \
	./internal/apitest/orders ./pkg/hub/decisions ./pkg/hub/credentials \
	-args -orders.states="${STATES:-100000}" -orders.changes="${CHANGES:-0}"
