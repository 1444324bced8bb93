#!/usr/bin/env bash
# Checks code, chart and scripts with pinned tools; changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

tool="go tool -modfile=$PWD/hack/tools/golangci-lint/go.mod golangci-lint"
config=$PWD/.golangci.yaml
echo "lint: the addon"
$tool run --config "$config" ./...
echo "lint: words"
# Comments say which client, user or caller they mean.
if grep -rnE --include='*.go' \
	'//.*\b([Ww]hoever|[Aa]nybody|[Nn]obody|[Ss]omebody|[Ee]verybody|as far as|for ever|for good|anew|once more|next to no|all along|past every cache)\b' \
	pkg cmd internal charts hack test; then
	echo "lint: these comments contain words that CONTRIBUTING.md advises against" >&2
	exit 1
fi
echo "lint: the fleet"
(cd test/fleet && $tool run --config "$config" ./...)
echo "lint: the journeys"
(cd test/e2e && $tool run --config "$config" ./...)
echo "lint: fault injection"
(cd test/faults && $tool run --config "$config" ./...)
echo "lint: alerts"
(cd test/monitoring && $tool run --config "$config" ./...)
echo "lint: the release"
(cd hack/tools/release && $tool run --config "$config" ./...)
echo "lint: the programs the fleet is built from"
# Analysing them would analyse all of Kubernetes. The fleet builds them, which is enough.
[ -z "$(gofmt -l test/fleet/tools)" ] || { gofmt -d test/fleet/tools; exit 1; }
echo "lint: the chart"
go -C test/fleet run ./cmd/fleet helm -- lint --strict "$PWD/charts/cluster-inventory"
echo "lint: workflows"
go tool -modfile="$PWD/hack/tools/actionlint/go.mod" actionlint -no-color
echo "lint: scripts"
for script in hack/*.sh .ci/run; do
	bash -n "$script"
done
echo "lint: ok"
