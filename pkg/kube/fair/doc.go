// Package fair is the work queue of controllers whose requests belong to groups,
// usually namespaces, of which any may be slow: a webhook that takes ten seconds for
// every write in one namespace must not delay what is done in others, and what takes
// something away must not wait for what is new.
//
// A Queue hands out requests of a higher priority first, and among those of the same
// priority, groups take turns. How many requests of one group are worked on at a time
// is bounded, and no group gets more workers than are left idle, so that several slow
// groups cannot take them all. Some workers are kept for higher priorities. A request
// does not wait for those of lower priority in its own group either.
//
// The queue implements controller-runtime's PriorityQueue, keeps the metrics that all
// controllers have (workqueue_*, the depth by priority), and hands out nothing after
// it was shut down.
package fair
