#!/usr/bin/env bash
# Measures on a fleet of its own: latency (how long an edited property takes to reach its
# profile), credentials (how long a copied token takes to follow its account, and to be
# removed), or scale (what N simulated clusters cost; N may be several numbers, such as
# 1000,3000,10000, each on a fresh hub). Results of scale are written to OUT.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?"usage: hack/bench.sh latency|credentials|scale"}
export FLEET=${BENCH_FLEET:-bench} SPOKES=2 HELM_ARGS= WITH=
[ "$what" != credentials ] || WITH=access
[ "$what" != scale ] || SPOKES=0
fleet="go -C test/fleet run ./cmd/fleet"
bench="go -C test/e2e run ./cmd/bench -fleet $FLEET"
trap '$fleet down' EXIT

if [ "$what" != scale ]; then
	$fleet up
	$fleet deploy
	$bench -n "${N:-200}" "$what"
	exit
fi

out=$(realpath -m "${OUT:-bin/bench-scale}")
mkdir -p "$out"
commit=$(git describe --tags --always --dirty)
files=()
for clusters in $(tr ',' ' ' <<<"${N:-300}"); do
	$fleet up
	$fleet deploy
	file=$out/scale-$clusters.json
	$bench -n "$clusters" -pairs "${PAIRS:-5}" -stream "${STREAM:-60s}" -commit "$commit" -out "$file" scale
	files+=("$file")
	$fleet down
done
trap - EXIT
$bench -plots "$out" report "${files[@]}" | tee "$out/tables.md"
