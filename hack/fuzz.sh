#!/usr/bin/env bash
# Fuzzes every parser of what spokes, tenants and clients send, each for FUZZTIME. What is
# found is kept in the package's testdata/fuzz: commit it with the correction, so that the
# tests try it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
while IFS=: read -r file line; do
	target=${line#func }
	target=${target%%(*}
	echo "fuzz: $target of $(dirname "$file")"
	go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-10s}"
done < <(grep -rE '^func Fuzz' --include=*_test.go cmd internal pkg)
echo "fuzz: ok"
