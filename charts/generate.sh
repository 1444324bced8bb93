#!/usr/bin/env bash
# Copies the chart's CustomResourceDefinitions into the tree TREE, from the module that
# defines them, at the version that go.mod pins.
#
# usage: charts/generate.sh TREE
set -euo pipefail
tree=$1
module=sigs.k8s.io/cluster-inventory-api
crd=multicluster.x-k8s.io_clusterprofiles.yaml

(cd "$tree" && go mod download "$module")
read -r version dir < <(cd "$tree" && go list -m -f '{{.Version}} {{.Dir}}' "$module")
out=$tree/charts/cluster-inventory/crds
mkdir -p "$out"
{
	echo "# ClusterProfile of SIG-Multicluster (KEP-4322), from $module $version,"
	echo "# config/crd/bases/$crd; make generate writes this file."
	cat "$dir/config/crd/bases/$crd"
} >"$out/$crd"
