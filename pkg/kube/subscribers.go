package kube

import "sync"

// Subscribers are functions that are called when something has changed. The zero value has none,
// is ready to use and safe for concurrent use.
type Subscribers[T any] struct {
	mu  sync.Mutex
	all []func(T)
}

// Subscribe has changed called with each change from now on. It must return at once.
func (s *Subscribers[T]) Subscribe(changed func(T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, changed)
}

// Any reports whether there are any.
func (s *Subscribers[T]) Any() bool { return len(s.present()) > 0 }

// Notify calls all of them with a change.
func (s *Subscribers[T]) Notify(change T) {
	for _, changed := range s.present() {
		changed(change)
	}
}

func (s *Subscribers[T]) present() []func(T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
