#!/usr/bin/env bash
# Draws the chart's dashboard from what the manager serves while a small fleet works: clusters
# join, properties are edited, tokens are copied and one is refused, profiles are withheld and
# refused, and a cluster exceeds its limit of properties. It takes about ten minutes.
#
# SCRAPES names a folder to keep the scrapes in; with DRAW=only they are drawn again.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${MINUTES:-6}
out=${OUT:-docs/metrics/dashboard.svg}
scrapes=${SCRAPES:-$(mktemp -d)}
[ -n "${SCRAPES:-}" ] || trap 'rm -rf "$scrapes"' EXIT
mkdir -p bin
go -C test/monitoring build -o "$PWD/bin/picture" ./cmd/picture

draw() {
	bin/picture draw -dir "$scrapes" -dashboard charts/cluster-inventory/monitoring/dashboard.json -o "$1"
}
if [ "${DRAW:-}" = only ]; then
	draw "$out"
	exit
fi

export FLEET=picture WITH=access SPOKES=2
trap 'make fleet-down; [ -n "${SCRAPES:-}" ] || rm -rf "$scrapes"' EXIT
make fleet-up
make deploy HELM_ARGS='--set profiles.maxProperties=6 --set metrics.readers[0].namespace=default --set metrics.readers[0].name=scraper'
fleet=$PWD/.fleet/$FLEET
on() {
	local cluster=$1
	shift
	"$fleet/bin/kubectl" --kubeconfig "$fleet/$cluster.kubeconfig" "$@" >/dev/null
}
on hub create serviceaccount scraper -n default
"$fleet/bin/kubectl" --kubeconfig "$fleet/hub.kubeconfig" create token scraper -n default --duration 2h >"$scrapes/token"
ip=$("$fleet/bin/kubectl" --kubeconfig "$fleet/hub.kubeconfig" get pods -n open-cluster-management \
	-l app.kubernetes.io/name=cluster-inventory,app.kubernetes.io/component=manager -o jsonpath='{.items[0].status.podIP}')
bin/picture record -url "https://$ip:8080/metrics" -token-file "$scrapes/token" -for "${minutes}m" -dir "$scrapes" &
recording=$!

# edits N: N rounds of edited properties on every spoke.
value=0
edits() {
	for _ in $(seq "$1"); do
		value=$((value + 1))
		for cluster in cluster1 cluster2; do
			for property in region zone tier; do
				on "$cluster" apply -f - <<-YAML
					{apiVersion: about.k8s.io/v1beta1, kind: ClusterProperty, metadata: {name: $property.example.com}, spec: {value: "v$value"}}
				YAML
			done
		done
		sleep 3
	done
}
account() {
	on hub apply -f - <<-YAML
		apiVersion: authentication.open-cluster-management.io/v1beta1
		kind: ManagedServiceAccount
		metadata:
		  name: reader
		  namespace: $1
		  labels: {authentication.open-cluster-management.io/sync-to-clusterprofile: "true"}
		  annotations: {inventory.open-cluster-management.io/sync-to-namespaces: "team-a,team-b,team-c"}
		spec: {rotation: {enabled: true, validity: 1h}}
	YAML
}

sleep 15
for cluster in cluster1 cluster2; do
	on hub apply -f - <<-YAML
		{apiVersion: addon.open-cluster-management.io/v1beta1, kind: ManagedClusterAddOn, metadata: {name: cluster-inventory, namespace: $cluster}, spec: {}}
	YAML
done
for team in team-a team-b team-c team-d team-e team-f; do
	on hub create namespace "$team"
	on hub apply -f - <<-YAML
		{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: default, namespace: $team}, spec: {clusterSet: default}}
	YAML
done
sleep 20
edits 4
# In team-c, a Secret is in the place of one of the copies.
on hub create secret generic cluster2-reader -n team-c
account cluster1
account cluster2
edits 5
# team-b wants a Placement, of which there is none; team-d has a quota, and no profiles any more.
on hub annotate namespace team-b inventory.open-cluster-management.io/require-placement=true
on hub create quota none -n team-d --hard=count/clusterprofiles.multicluster.x-k8s.io=0
sleep 5
on hub delete clusterprofiles --all -n team-d
edits 4
for n in 1 2 3 4 5 6 7 8; do
	on cluster1 apply -f - <<-YAML
		{apiVersion: about.k8s.io/v1beta1, kind: ClusterProperty, metadata: {name: many$n.example.com}, spec: {value: x}}
	YAML
done
edits 4
on hub delete secret cluster2-reader -n team-c
on hub delete quota none -n team-d
on hub delete managedclustersetbinding default -n team-f
edits 4
wait $recording
draw "$out"
