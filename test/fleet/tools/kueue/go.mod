// Kueue, with the versions that it was released with.
module open-cluster-management.io/cluster-inventory-addon/test/fleet/tools/kueue

go 1.26

tool sigs.k8s.io/kueue/cmd/kueue
