package kube

import (
	"maps"
	"slices"
)

// SetIndex maps each key to a set of members. Keys without members take no
// memory. It is not safe for concurrent use.
type SetIndex[K, M comparable] map[K]map[M]struct{}

// Insert adds a member to the set of a key.
func (x SetIndex[K, M]) Insert(key K, member M) {
	if x[key] == nil {
		x[key] = map[M]struct{}{}
	}
	x[key][member] = struct{}{}
}

// Delete removes a member from the set of a key and reports whether the set is
// empty now.
func (x SetIndex[K, M]) Delete(key K, member M) (empty bool) {
	delete(x[key], member)
	if len(x[key]) > 0 {
		return false
	}
	delete(x, key)
	return true
}

// Members returns the set of a key as a new slice, in no order.
func (x SetIndex[K, M]) Members(key K) []M {
	return slices.AppendSeq(make([]M, 0, len(x[key])), maps.Keys(x[key]))
}

// Keys returns every key that has members as a new slice, in no order.
func (x SetIndex[K, M]) Keys() []K {
	return slices.AppendSeq(make([]K, 0, len(x)), maps.Keys(x))
}
