#!/usr/bin/env bash
# Measures on a fleet of its own: latency (how long an edited property takes to reach its
# profile), credentials (how long a copied token takes to follow its account, and to be
# removed), agent (how much memory it needs with N properties), or scale (what N simulated
# clusters cost; N may be several numbers, such as 1000,3000,10000, each on a fresh hub).
# Results of scale are written to OUT; PARTS leaves some of it out.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?"usage: hack/bench.sh latency|credentials|agent|scale"}
export FLEET=${BENCH_FLEET:-bench} SPOKES=2 HELM_ARGS= WITH=
[ "$what" != agent ] || SPOKES=1
[ "$what" != credentials ] || WITH=access
[ "$what" != scale ] || SPOKES=0
fleet="go -C test/fleet run ./cmd/fleet"
bench="go -C test/e2e run ./cmd/bench -fleet $FLEET"
trap '$fleet down' EXIT

if [ "$what" != scale ]; then
	$fleet up
	$fleet deploy
	default=200
	[ "$what" != agent ] || default=1000
	$bench -n "${N:-$default}" "$what"
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
	$bench -n "$clusters" -pairs "${PAIRS:-5}" -stream "${STREAM:-60s}" -parts "${PARTS:-}" -commit "$commit" -out "$file" scale
	files+=("$file")
	$fleet down
done
trap - EXIT
$bench -plots "$out" report "${files[@]}" | tee "$out/tables.md"
