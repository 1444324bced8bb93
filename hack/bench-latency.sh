#!/usr/bin/env bash
# Measures, on an idle fleet of its own, how long an edit takes to arrive.
set -euo pipefail
cd "$(dirname "$0")/.."
export FLEET=bench SPOKES=2 HELM_ARGS=
fleet="go -C test/e2e run ./cmd/fleet"
trap '$fleet down' EXIT
$fleet up
$fleet deploy
go -C test/e2e run ./cmd/bench-latency -fleet "$FLEET" -n "${N:-200}"
