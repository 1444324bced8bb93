// The Knative operator, with the versions that it was released with.
module open-cluster-management.io/cluster-inventory-addon/test/fleet/tools/knative-operator

go 1.26

tool knative.dev/operator/cmd/operator
