#!/usr/bin/env bash
# Copies the chart's CustomResourceDefinitions into the tree TREE, from the module that
# defines them, at the version that go.mod pins, and writes the chart's README with a table
# of the values in values.yaml.
#
# usage: charts/generate.sh TREE
set -euo pipefail
tree=$1
module=sigs.k8s.io/cluster-inventory-api

(cd "$tree" && go mod download "$module")
read -r version dir < <(cd "$tree" && go list -m -f '{{.Version}} {{.Dir}}' "$module")
out=$tree/charts/cluster-inventory/crds
mkdir -p "$out"
copy() { # of KIND, defined by KEP, in the file CRD
	{
		echo "# $1 of SIG-Multicluster ($2), from $module $version,"
		echo "# config/crd/bases/$3; make generate writes this file."
		cat "$dir/config/crd/bases/$3"
	} >"$out/$3"
}
copy ClusterProfile KEP-4322 multicluster.x-k8s.io_clusterprofiles.yaml
copy PlacementDecision KEP-5313 multicluster.x-k8s.io_placementdecisions.yaml

# Every value needs a description: a comment that begins with "# -- ", its own or that of
# what it is part of.
(cd "$tree" && go tool -modfile="$tree/hack/tools/helm-docs/go.mod" helm-docs --log-level warning \
	--chart-search-root charts --template-files README.md.gotmpl --sort-values-order file)
