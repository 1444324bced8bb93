// Package fair is the work queue of controllers whose requests belong to groups, usually
// namespaces. Any of these may be slow: a webhook that takes ten seconds for every write in
// one namespace must not delay other namespaces, and removals must not wait for additions.
//
// A Queue hands out requests of a higher priority first; among requests of the same
// priority, groups take turns. It bounds how many requests of one group are in progress,
// and gives no group more workers than are left idle, so that several slow groups cannot
// take them all. It keeps some workers for higher priorities. A request does not wait for
// requests of lower priority in its own group, either.
//
// A request counts with the lowest priority until its own has been looked up. Workers look up a few before each
// request that they are handed.
//
// The queue implements controller-runtime's PriorityQueue, maintains the metrics that all
// controllers have (workqueue_*, the depth by priority), and hands out nothing after
// shutdown.
package fair
