#!/usr/bin/env bash
# Measures on an idle fleet of its own: latency (how long an edited property takes to
# reach its profile) or credentials (how long a copied token takes to follow its
# account, and to be removed).
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?"usage: hack/bench.sh latency|credentials"}
export FLEET=bench SPOKES=2 HELM_ARGS= WITH=
[ "$what" = latency ] || WITH=access
fleet="go -C test/fleet run ./cmd/fleet"
trap '$fleet down' EXIT
$fleet up
$fleet deploy
go -C test/e2e run ./cmd/bench -fleet "$FLEET" -n "${N:-200}" "$what"
