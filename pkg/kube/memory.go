package kube

import (
	"maps"
	"sync"
)

// Memory is what a process remembers by key, such as the last outcome of every object. The zero
// value is ready to use and safe for concurrent use. All readers get the same value, so it must
// not be changed after it was set.
type Memory[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]V
}

// Load returns the value of a key; known is false if there is none.
func (m *Memory[K, V]) Load(key K) (value V, known bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	value, known = m.values[key]
	return value, known
}

// Set stores a value, and returns the one before.
func (m *Memory[K, V]) Set(key K, value V) (before V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known = m.values[key]
	m.put(key, value)
	return before, known
}

// Forget removes a key, and returns its value.
func (m *Memory[K, V]) Forget(key K) (before V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known = m.values[key]
	delete(m.values, key)
	return before, known
}

// Update replaces the value of a key by what change returns, or removes the key unless keep. All
// other calls wait meanwhile, so change must not call this Memory.
func (m *Memory[K, V]) Update(key K, change func(before V, known bool) (now V, keep bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.values[key]
	if now, keep := change(before, known); keep {
		m.put(key, now)
	} else {
		delete(m.values, key)
	}
}

// put requires the lock.
func (m *Memory[K, V]) put(key K, value V) {
	if m.values == nil {
		m.values = map[K]V{}
	}
	m.values[key] = value
}

// DeleteFunc removes all keys for which remove returns true.
func (m *Memory[K, V]) DeleteFunc(remove func(K, V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.values, remove)
}

// Len returns the number of keys.
func (m *Memory[K, V]) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.values)
}

// All returns a copy of the map.
func (m *Memory[K, V]) All() map[K]V {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.values)
}
