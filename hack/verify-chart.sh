#!/usr/bin/env bash
# Checks what the chart renders with each file in charts/testdata/values: every object has
# the form of its kind (kubeconform), and follows what kube-score recommends. The schemas are
# those of the Kubernetes that the tests run, of Open Cluster Management and of the chart's
# own definitions; nothing is downloaded but Go modules.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

module() { # DIR MODULE: where the module is that the go.mod in DIR requires
	(cd "$1" && go mod download "$2" && go list -m -f '{{.Dir}}' "$2")
}
tool() { # NAME ARGUMENTS: runs a tool of hack/tools
	go tool -modfile="$root/hack/tools/$1/go.mod" "$@"
}

kubernetes=$(module test/fleet/tools k8s.io/kubernetes)
ocm=$(module . open-cluster-management.io/api)
go run ./hack/schemas "$dir/schemas" "$kubernetes/api/openapi-spec/swagger.json" \
	"$ocm"/addon/v1beta1/*.crd.yaml "$ocm"/cluster/v1beta1/*.crd.yaml "$ocm"/cluster/v1beta2/*.crd.yaml \
	charts/cluster-inventory/crds/*.yaml

# The kinds of Prometheus Operator, whose definitions are in no module that is used here. The
# rules in them are tested with Prometheus' engine.
skip=ServiceMonitor,PrometheusRule

# What kube-score recommends and the chart does not do, and why.
ignored=(
	# A version or digest names the image, so that pulling it again brings the same.
	--ignore-test container-image-pull-policy
	# The image names a user that is not root; a fixed one is refused by OpenShift, whose
	# namespaces have their own. The value podSecurityContext sets one.
	--ignore-test container-security-context-user-group-id
	# The root file systems are read-only, and there are no volumes that could be written to.
	--ignore-test container-ephemeral-storage-request-and-limit
	# A limit of CPU slows the manager down just when it has to catch up; memory is limited.
	--ignore-container-cpu-limit
)

for values in charts/testdata/values/*.yaml; do
	name=$(basename "$values" .yaml)
	echo "verify: the chart with the values $name"
	go -C test/fleet run ./cmd/fleet helm -- template ci "$root/charts/cluster-inventory" \
		--namespace inventory-system --include-crds --values "$root/$values" >"$dir/$name.yaml"
	tool kubeconform -strict -summary -skip "$skip" \
		-schema-location "$dir/schemas/{{.ResourceKind}}{{.KindSuffix}}.json" "$dir/$name.yaml"
	more=()
	# NetworkPolicies are off unless a user who knows the network asks for them.
	[ "$name" != default ] || more=(--ignore-test pod-networkpolicy)
	tool kube-score score --output-format ci "${ignored[@]}" "${more[@]}" "$dir/$name.yaml" >"$dir/score" || {
		grep -v '^\[OK\]\|^\[SKIPPED\]' "$dir/score" >&2
		exit 1
	}
done
