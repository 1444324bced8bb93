#!/usr/bin/env bash
# Measures on a fleet of its own: latency (how long an edited property takes to reach its
# profile), credentials (how long a copied token takes to follow its account, and to be
# removed), agent (how much memory it needs with N properties), scale (what N simulated
# clusters cost; N may be several numbers, such as 1000,3000,10000, each on a fresh hub), or
# placement (what N simulated clusters lose while Placements choose them without interruption; several
# numbers as well). Results of these two are written to OUT; PARTS leaves some of them out.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?"usage: hack/bench.sh latency|credentials|agent|scale|placement"}
export FLEET=${BENCH_FLEET:-bench} SPOKES=2 HELM_ARGS= WITH=
[ "$what" != agent ] || SPOKES=1
[ "$what" != credentials ] || WITH=access
[ "$what" != scale ] || SPOKES=0
[ "$what" != placement ] || SPOKES=0
fleet="go -C test/fleet run ./cmd/fleet"
bench="go -C test/e2e run ./cmd/bench -fleet $FLEET"
trap '$fleet down' EXIT

if [ "$what" = placement ]; then
	out=$(realpath -m "${OUT:-bin/bench-placement}")
	mkdir -p "$out"
	for clusters in $(tr ',' ' ' <<<"${N:-163}"); do
		$fleet up
		HELM_ARGS="--set installStrategy.type=Placements --set installStrategy.placement.clusterSet=bench-all" $fleet deploy
		$bench -n "$clusters" -parts "${PARTS:-}" -rounds "${ROUNDS:-5}" placement | tee "$out/placement-$clusters.md"
		$fleet down
	done
	exit
fi

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
