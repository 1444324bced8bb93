package hub

import (
	"strings"
	"sync"
)

const (
	// internLimit is the number of strings after which an interner begins to forget those
	// not requested since.
	internLimit = 1 << 15

	// maxInterned is the longest string that is interned, in bytes.
	maxInterned = 1 << 10

	// internBytes and blobBytes are what the recent strings and byte slices may have
	// together. A hundred bytes each, the strings of a fleet reach internLimit first.
	internBytes = 4 << 20
	blobBytes   = 4 << 20

	// blobLimit is internLimit for byte slices of minBlob to maxBlob bytes, such as
	// certificates, which thousands of objects repeat.
	blobLimit = 1 << 8
	minBlob   = 1 << 8
	maxBlob   = 1 << 17
)

// interner returns one shared copy of equal values, so that a cache stores only once what
// many of its objects repeat. The zero value is ready to use and safe for concurrent use.
//
// Its memory is bounded: per kind, the last internLimit or blobLimit values, of internBytes
// or blobBytes, and as many before. Forgetting costs memory, never correctness.
type interner struct {
	mu      sync.Mutex
	strings generations[string]
	blobs   generations[[]byte]
}

// generations are the values requested recently, of so many bytes, and those before.
type generations[V any] struct {
	recent, older map[string]V
	bytes         int
}

// String returns a string equal to s.
func (i *interner) String(s string) string {
	if s == "" || len(s) > maxInterned {
		return s
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.strings.recent[s]; ok {
		return known
	}
	known, ok := i.strings.older[s]
	if !ok {
		known = strings.Clone(s) // s may be a part of something larger
	}
	i.strings.add(known, known, internLimit, internBytes)
	return known
}

// Bytes returns a slice equal to b, which must not be changed.
func (i *interner) Bytes(b []byte) []byte {
	if len(b) < minBlob || len(b) > maxBlob {
		return b
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.blobs.recent[string(b)]; ok {
		return known
	}
	known, ok := i.blobs.older[string(b)]
	if !ok {
		known = b
	}
	i.blobs.add(string(b), known, blobLimit, blobBytes)
	return known
}

// Map returns a map equal to m.
func (i *interner) Map(m map[string]string) map[string]string {
	if len(m) == 0 {
		return m
	}
	interned := make(map[string]string, len(m))
	for key, value := range m {
		interned[i.String(key)] = i.String(value)
	}
	return interned
}

func (g *generations[V]) add(key string, value V, limit, bytes int) {
	if g.recent == nil || len(g.recent) >= limit || g.bytes+len(key) > bytes {
		g.older, g.recent, g.bytes = g.recent, map[string]V{}, 0
	}
	g.recent[key] = value
	g.bytes += len(key)
}
