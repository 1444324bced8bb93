// Package hubtest installs the chart's objects on a test API server, and runs what
// they are for: the manager as a program, or one controller of it in the test's
// process, with exactly the rights and under the policies that the chart ships.
//
//	w := server.World(t, ocmtest.Scheme())
//	hubtest.Install(w, "", hubtest.Rights)            // as a fresh hub gets them
//	user := server.User(t, hubtest.User)              // what the manager may do
//
//	wire := &apitest.Wire{}
//	manager := hubtest.Start(t, wire.Proxy(t, user))  // the program; the wire records it
//	...
//	manager.Stop()
//
// It imports nothing of pkg/hub, so every test there may use it.
package hubtest
