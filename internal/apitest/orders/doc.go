// Package orders explores all orders of what happens in a small world: a hub with at most
// three clusters, two namespaces and one account, and a manager whose caches follow it.
//
// A State holds what is on the hub, what each cache of the manager shows, the events that are
// still on their way to it, what the manager remembers, and writes that it has decided and not
// sent. A step is one change on the hub by others, the delivery of one event, one
// reconciliation, one write, the passing of time, or a crash. Events of one kind are
// delivered in their order; those of different kinds in any. CRDs are deleted with their
// objects, and recreated without them. Search visits every state that some order of steps leads
// to, breadth first, so that what it finds comes with the shortest trace.
//
// The rule (selection.Rule), what it knows of CRDs (watch.Definitions) and the next step of a
// profile (profiles.NextStep) are the manager's own code, which reads the state's caches and,
// where it reads live, the state's hub. What they remember is copied from state to state. What
// connects them with writes is duplicated here, following inventory.Reconciler. Other packages add
// their own part.
//
// What an answer should be is decided by an independent, much shorter version of the rule
// (oracle.go). It also says what may stay for up to two minutes although it is not wanted, because a
// cluster may be moving: anything else must be gone before.
//
// hack/mutants negates the conditions of the manager's code one at a time (package clause), and shows
// which search finds that (negate.go).
package orders
