// Package apitest gives tests a real API server: etcd and kube-apiserver as
// processes, with the custom resources of Open Cluster Management and
// SIG-Multicluster taken from their Go modules. No controllers run in it, so
// nothing is garbage collected, no quota is counted and a deleted namespace
// stays Terminating: tests that need more belong to the fleet in test/fleet.
//
// The binaries are found through KUBEBUILDER_ASSETS, which "make test" sets;
// without it a test fails, it is never skipped.
//
// A package of tests shares servers, started when first needed:
//
//	var hub = apitest.New(apitest.Hub(), apitest.ClusterProfile())
//
//	func TestMain(m *testing.M) { apitest.Main(m, hub) }
//
//	func TestX(t *testing.T) {
//		cfg := hub.Config(t)          // a copy, own it
//		ns := hub.Namespace(t, nil)   // a fresh namespace
//		...
//	}
//
// A test that changes cluster-wide state (CRDs, a stopped server) starts one of
// its own with Start, which stops it when the test ends.
//
// Wire records every request a client sends and can make chosen ones fail. With
// APITEST_SLOW=1s in the environment, every request of every client takes up to that
// long: tests must pass all the same.
package apitest
