package kube

import (
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// maxRepeats is how many different values Repeats remembers: most objects of a fleet have
// one of a few.
const maxRepeats = 16

// Repeats returns one shared copy of equal lists, maps or pointers, so that a cache stores
// only once what many of its objects repeat. Like everything in a cache, it must not be
// changed. The zero value is ready to use and safe for concurrent use.
type Repeats[T any] struct {
	mu     sync.Mutex
	lately []T // the latest first
}

// Of returns a value equal to this one.
func (r *Repeats[T]) Of(value T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, known := range r.lately {
		if apiequality.Semantic.DeepEqual(known, value) {
			copy(r.lately[1:i+1], r.lately[:i])
			r.lately[0] = known
			return known
		}
	}
	if len(r.lately) < maxRepeats {
		r.lately = append(r.lately, value)
	}
	copy(r.lately[1:], r.lately)
	r.lately[0] = value
	return value
}
