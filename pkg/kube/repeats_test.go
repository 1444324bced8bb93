package kube

import (
	"maps"
	"reflect"
	"testing"
)

// TestRepeatsReturnsOneCopy of equal values; if many others come between them, two.
func TestRepeatsReturnsOneCopy(t *testing.T) {
	r := &Repeats[map[string]string]{}
	same := func(a, b map[string]string) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	labels := map[string]string{"a": "b"}
	first := r.Of(maps.Clone(labels))
	if other := r.Of(map[string]string{"a": "c"}); other["a"] != "c" {
		t.Errorf("another value became %v", other)
	}
	if !same(first, r.Of(maps.Clone(labels))) {
		t.Error("two copies of equal maps")
	}
	for n := range maxRepeats {
		r.Of(map[string]string{"n": string(rune('a' + n))})
	}
	if again := r.Of(maps.Clone(labels)); same(first, again) || again["a"] != "b" {
		t.Errorf("what was forgotten became %v", again)
	}
	if len(r.lately) != maxRepeats {
		t.Errorf("it remembers %d values", len(r.lately))
	}
}
