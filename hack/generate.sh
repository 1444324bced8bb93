#!/usr/bin/env bash
# Generates all derived files of a tree: the one given as argument, or this one.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$(cd "${1:-.}" && pwd)
charts/generate.sh "$tree"
# The table of rights.
go -C test/fleet run ./cmd/fleet helm -- template ci "$tree/charts/cluster-inventory" |
	(cd "$tree" && go run ./hack/rbacaudit -docs docs/security.md)
# The table of durations.
(cd "$tree" && go run ./hack/durations docs/architecture.md pkg/hub pkg/kube)
