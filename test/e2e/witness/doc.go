// Package witness records what was away, and for how long: a thing that was deleted, that was
// replaced by another of its name, or that left a list. Each thing is followed by a watch, so
// that an absence of milliseconds counts like one that lasts.
package witness
