// Package apitest gives tests a real API server and the means to use it: etcd and
// kube-apiserver as processes, with the custom resources of Open Cluster Management
// and SIG-Multicluster taken from their Go modules. No controllers run in it, so
// nothing is garbage collected, no quota is counted and a deleted namespace stays
// Terminating: tests that need more belong to the fleet in test/fleet.
//
// The binaries are found through KUBEBUILDER_ASSETS, which "make test" sets;
// without it a test fails, it is never skipped.
//
// # Servers
//
// A package of tests shares servers, started when first needed. A test that changes
// cluster-wide state (CRDs, a stopped server) starts its own with Start.
//
//	var hub = apitest.New(apitest.Hub(), apitest.ClusterProfile())
//
//	func TestMain(m *testing.M) { apitest.Main(m, hub) }
//
// A World is one test's view of a server. It creates, edits and deletes as the
// administrator and fails the test on an error; names from Name and Namespace are the
// test's own, so tests on one server do not interfere.
//
//	w := hub.World(t, scheme)
//	ns := w.Namespace("team", nil)
//	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x"}}
//	w.MustCreate(cm)
//	apitest.Edit(w, cm, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"a": "b"} })
//	w.MustDelete(cm)
//	w.EventuallyGone(cm)
//
// A package embeds it to add its own words; Edit and EditStatus accept that, too:
//
//	type world struct {
//		*apitest.World
//		wire *apitest.Wire
//	}
//
// # Waiting
//
// Eventually waits for something to happen, Stays checks for a while that something does
// not change. A check returns "" or what it saw instead, so cmp.Diff fits:
//
//	w.Eventually("the value arrives", func() string { return cmp.Diff("b", value()) })
//	w.Stays(300*time.Millisecond, "no copy", func() string { ... })
//	w.Eventually("the object exists", apitest.Succeeds(func() error { return w.Get(...) }))
//
// Within is for attempts that need a context, because they may hang:
//
//	apitest.Within(t, time.Minute, "the Pod answers", func(ctx context.Context) error { ... })
//
// # Requests
//
// A Wire records every request of the clients made from its configurations, and
// can make chosen ones fail. Its Proxy does so for programs that read a kubeconfig.
//
//	wire := &apitest.Wire{}
//	cfg := wire.Tap(hub.User(t, "system:serviceaccount:ns:manager"))
//	wire.Settle(t, apitest.Patience, time.Second) // until it has written nothing for a second
//	wire.Reset()
//	wire.Quiet(t, time.Second, "after a restart") // fails at the first write
//	wire.Sent("clusterprofiles")                  // ["POST clusterprofiles"]
//
// # Running
//
// Run starts something that ends with its context, such as a manager, stops it
// with the test, and shows its log if the test fails:
//
//	mgr := apitest.NewManager(t, cfg, scheme, cached)
//	apitest.Must(t, Add(t.Context(), mgr, opts))
//	stop := apitest.Run(t, mgr.Start)
//
// Package hubtest runs the whole manager with the chart's rights; package ocmtest
// plays Open Cluster Management. Time is k8s.io/utils/clock/testing.
//
// With APITEST_SLOW=1s in the environment, every request of every client takes up to that
// long: tests must still pass.
package apitest
